// SPDX-License-Identifier: Apache-2.0
// w[t] = Σ_{n,o} x[n, o − P + t] · y[n, o] of one channel along lines, on tensor cores.
//
// D[p][q] = Σ_j x[8j + p − reach] · y[8j + q], over groups j, is a product of matrices for sixteen groups,
// and w[t] the sum of D along a diagonal. A block takes a channel and some of its images; a warp keeps its
// sums in registers and takes piece after piece of lines; the next piece is on its way meanwhile. Bytes: x
// once, y once.
//
// Values beyond the edge are zeros; who adds the parts takes a sum that is not finite from the formula.
#include "kernels/cuda/depthwise/depthwise_plan.h"
#include "kernels/cuda/depthwise/depthwise_spans.cuh"
#include "kernels/cuda/launch.cuh"

namespace retrograd::kernels::cuda {
namespace {

using namespace spans_weight;

constexpr int kWarps = 4;

template <class T, int kSteps, int kStages>
__global__ void __launch_bounds__(kWarps * 32)
    spans_weight_kernel(const __grid_constant__ Spans p, const T* x, const T* y, float* parts) {
  extern __shared__ __align__(16) unsigned char shared[];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int channel = static_cast<int>(blockIdx.x);
  const int first = static_cast<int>(blockIdx.y) * p.in_part, images = min(p.in_part, p.images - first);
  const int reached = span_reached(p.tiles, kSteps), own_groups = p.tiles * kSpanGroups;
  const int stage_bytes = (reached + own_groups) * 16, items = images * p.pieces;
  unsigned char* const own = shared + warp * kStages * stage_bytes;
  const uint32_t base = shared_address(own);
  uint32_t into = 0;
  int next = warp;
  const auto start = [&]() {
    if (next < items) {
      const int64_t line = static_cast<int64_t>(first + next / p.pieces) * p.channels + channel;
      const int group0 = next % p.pieces * own_groups;
      start_groups(base + into, reached, x + line * p.x_groups * 8, group0 - p.reach, p.x_groups, lane);
      start_groups(base + into + reached * 16, own_groups, y + line * p.y_groups * 8, group0, p.y_groups,
                   lane);
    }
    close_copies();
    next += kWarps;
    into = into + stage_bytes == kStages * stage_bytes ? 0 : into + stage_bytes;
  };
#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) start();

  const uint32_t of_x = (lane % 8 + lane / 8 % 2 + lane / 16 * 8) * 16, of_y = (reached + lane % 16) * 16;
  float sums[kSteps][4] = {};
  uint32_t stage = 0;
  for (int item = warp; item < items; item += kWarps) {
    wait_for_copies<kStages - 2>();
    __syncwarp();
    start();
#pragma unroll 2
    for (int tile = 0; tile < p.tiles; ++tile) {
      const uint32_t at = base + stage + tile * kSpanGroups * 16;
      uint32_t columns[2];
      load_pair(at + of_y, columns);
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
        uint32_t rows[4];
        load_matrices<true>(at + of_x + s * 32, rows);
        multiply_add(sums[s], rows, columns[0], columns[1], T{});
      }
    }
    stage = stage + stage_bytes == kStages * stage_bytes ? 0 : stage + stage_bytes;
  }
  wait_for_copies<0>();
  __syncthreads();
  // [warp][p][q]
  auto* const matrix = reinterpret_cast<float*>(shared);
#pragma unroll
  for (int s = 0; s < kSteps; ++s)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      matrix[((warp * kSteps + s) * 16 + lane / 4 + j / 2 * 8) * 8 + lane % 4 * 2 + j % 2] = sums[s][j];
  __syncthreads();
  for (int tap = static_cast<int>(threadIdx.x); tap < p.taps; tap += kWarps * 32) {
    float sum = 0;
    for (int i = 0; i < kWarps; ++i) {
      float of_warp = 0;
      for (int q = 0; q < 8; ++q) of_warp += matrix[(i * kSteps * 16 + q + tap + p.extra) * 8 + q];
      sum += of_warp;
    }
    parts[(blockIdx.y * int64_t{p.channels} + channel) * p.taps + tap] = sum;
  }
}

template <class T, int kSteps, int kStages = 2>
void launch(const Spans& p, const Conv& conv, float* workspace, Stream stream) {
  const int pieces = kWarps * kStages * (span_reached(p.tiles, kSteps) + p.tiles * kSpanGroups) * 16;
  const int at_end = kWarps * kSteps * 16 * 8 * 4, bytes = pieces > at_end ? pieces : at_end;
  start(spans_weight_kernel<T, kSteps, kStages>, {p.channels, (p.images + p.in_part - 1) / p.in_part},
        kWarps * 32, bytes, stream, p, conv.x.data, conv.y.data, workspace);
}

}  // namespace

void depthwise_spans_grad_weight(const Conv& conv, float* workspace, Stream stream) {
  const Spans p = spans_of(conv);
  with_half(conv.x.dtype, [&](auto type) {
    with_one_of<1, 2, 3, 4, 5>((p.extra + 7 + p.taps + 15) / 16, [&](auto steps) {
      launch<decltype(type), steps()>(p, conv, workspace, stream);
    });
  });
}

}  // namespace retrograd::kernels::cuda
