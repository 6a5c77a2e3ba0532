// SPDX-License-Identifier: Apache-2.0
// result[q] = Σ_t source[q − offset + t] · w[t] along lines, on tensor cores; grad_input is the same with the
// kernel turned around.
//
// Eight results of a group are sums over a window of a few groups: a product of the window and a matrix that
// has the kernel along its diagonals. Sixteen groups make a tile; 31 taps take three products of 16 x 16 and
// 16 x 8 matrices. A warp keeps the matrices of its channel in registers and takes the lines of several
// images; the next line is on its way meanwhile. Bytes: source once, result once.
//
// Values beyond the edge are zeros, and so are the matrices beside their diagonals; a result that is not
// finite, where a zero may have met an infinity, is taken from the formula.
#include "kernels/cuda/depthwise/depthwise_plan.h"
#include "kernels/cuda/depthwise/depthwise_repair.cuh"
#include "kernels/cuda/depthwise/depthwise_spans.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pack.cuh"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kMostTiles = 7;  // of a piece
constexpr int kImages = 8;     // of a warp

struct Spans {
  bool forward;
  int channels, images, in_warp;  // images of a warp
  int groups, result_groups;      // of a line
  int taps, reach, extra;         // a window starts `reach` groups before its group, `extra` places too early
  int pieces, tiles;              // of a line; of a piece
};

template <class T, int kSteps, int kStages>
__global__ void __launch_bounds__(kWarps * 32, 6)
    spans_kernel(const __grid_constant__ Conv conv, const __grid_constant__ Spans p, const T* source,
                 const T* weights, T* result) {
  extern __shared__ __align__(16) unsigned char shared[];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int channel = static_cast<int>(blockIdx.x) * kWarps + warp;
  if (channel >= p.channels) return;
  const int first = static_cast<int>(blockIdx.y) * p.in_warp, images = min(p.in_warp, p.images - first);
  const int reached = span_reached(p.tiles, kSteps), items = images * p.pieces;
  const uint32_t base = shared_address(shared) + warp * kStages * reached * 16;
  const auto line_of = [&](int item) {
    return static_cast<int64_t>(first + item / p.pieces) * p.channels + channel;
  };
  const auto start = [&](int item) {
    if (item < items)
      start_groups(base + item % kStages * reached * 16, reached, source + line_of(item) * p.groups * 8,
                   item % p.pieces * p.tiles * kSpanGroups - p.reach, p.groups, lane);
    close_copies();
  };
#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) start(i);

  const int q = lane / 4, t = lane % 4;
  uint32_t band[kSteps][2];  // places 2t, 2t + 1 and 2t + 8, 2t + 9 of the window's fragments; result q
#pragma unroll
  for (int s = 0; s < kSteps; ++s)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      Pack<T, 2> pair;
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int tap = 16 * s + 8 * i + 2 * t + j - q - p.extra;
        const int from = p.forward ? tap : p.taps - 1 - tap;
        pair.values[j] = tap >= 0 && tap < p.taps
                             ? weights[channel * conv.w.strides[0] + from * conv.w.strides[4]]
                             : from_float<T>(0.0f);
      }
      band[s][i] = reinterpret_cast<const uint32_t&>(pair);
    }
  const float bias = bias_of(conv, channel);
  const uint32_t matrix = (lane % 8 + lane / 8 % 2 * 8 + lane / 16) * 16;
  float witness = 0;
  for (int item = 0; item < items; ++item) {
    wait_for_copies<kStages - 2>();
    __syncwarp();
    start(item + kStages - 1);
    const uint32_t stage = base + item % kStages * reached * 16 + matrix;
    const int group0 = item % p.pieces * p.tiles * kSpanGroups;
    T* const out = result + line_of(item) * p.result_groups * 8;
#pragma unroll 2
    for (int tile = 0; tile < p.tiles; ++tile) {
      float sums[4] = {};
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
        uint32_t rows[4];
        load_matrices<false>(stage + (tile * kSpanGroups + 2 * s) * 16, rows);
        multiply_add(sums, rows, band[s][0], band[s][1], T{});
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int group = group0 + tile * kSpanGroups + q + 8 * i;
        if (group >= p.result_groups) continue;
        const float pair[2] = {sums[2 * i] + bias, sums[2 * i + 1] + bias};
        watch(witness, pair[0]);
        watch(witness, pair[1]);
        store_pack<T, 2>(out + group * 8 + 2 * t, pair);
      }
    }
  }
  if (__any_sync(~0u, isnan(witness)))
    for (int i = first; i < first + images; ++i)
      repair_rows<T>(conv, p.forward ? Result::kForward : Result::kGradInput, i, channel, 0, 1);
}

Spans spans_of(const Conv& conv, bool forward, int most_tiles, int in_warp) {
  const Axis& w = conv.axes[2];
  const int offset = static_cast<int>(forward ? w.pad : w.kernel - 1 - w.pad);
  Spans p;
  p.forward = forward;
  p.channels = static_cast<int>(conv.groups);
  p.images = static_cast<int>(conv.batch);
  p.in_warp = in_warp;
  p.groups = static_cast<int>((forward ? w.x : w.y) / 8);
  p.result_groups = static_cast<int>((forward ? w.y : w.x) / 8);
  p.taps = static_cast<int>(w.kernel);
  p.reach = span_reach(offset);
  p.extra = p.reach * 8 - offset;
  const int tiles = (p.result_groups + kSpanGroups - 1) / kSpanGroups;
  p.pieces = (tiles + most_tiles - 1) / most_tiles;
  p.tiles = (tiles + p.pieces - 1) / p.pieces;
  return p;
}

template <class T, int kSteps, int kStages = 2>
void launch(const Conv& conv, const Spans& p, Stream stream) {
  const int bytes = kWarps * kStages * span_reached(p.tiles, kSteps) * 16;
  const Tensor& source = p.forward ? conv.x : conv.y;
  const Tensor& result = p.forward ? conv.y : conv.x;
  start(spans_kernel<T, kSteps, kStages>,
        {(p.channels + kWarps - 1) / kWarps, (p.images + p.in_warp - 1) / p.in_warp}, kWarps * 32, bytes,
        stream, conv, p, source.data, conv.w.data, result.data);
}

}  // namespace

void depthwise_spans_gather(const Conv& conv, bool forward, Stream stream) {
  const Spans p = spans_of(conv, forward, kMostTiles, kImages);
  with_half(conv.x.dtype, [&](auto type) {
    with_one_of<1, 2, 3, 4, 5>((p.extra + 7 + p.taps + 15) / 16,
                               [&](auto steps) { launch<decltype(type), steps()>(conv, p, stream); });
  });
}

}  // namespace retrograd::kernels::cuda
