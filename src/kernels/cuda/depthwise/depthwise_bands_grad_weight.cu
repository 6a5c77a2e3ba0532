// SPDX-License-Identifier: Apache-2.0
// w[kh,kw] = Σ_{n,h,v} x[n, h − P + kh, v − P + kw] · y[n, h, v] of one channel, on tensor cores.
//
// Rows are cut into groups of eight columns. D_kh[p][q] = Σ_j x[8j + p − 4] · y[8j + q], over groups j of
// rows that are kh apart, is a product of a 16 x 16 and a 16 x 8 matrix for sixteen groups, and w[kh,kw] is
// the sum of D_kh along the diagonal p − q = kw − P + 4: 56 of 128 products count, at some ten times the rate
// of FP32 units. A warp takes the rows of as many images as have sixteen groups and walks down them: a row of
// x meets the last K rows of y, whose fragments stay in registers. Rows come through shared memory, K at a
// time; ldmatrix turns groups into columns. Bytes: x once, y once.
//
// Values beyond the edge are zeros; who adds the parts takes a sum that is NaN from the formula.
#include "kernels/cuda/dense/tile_mma.cuh"
#include "kernels/cuda/depthwise/depthwise_plan.h"
#include "kernels/cuda/launch.cuh"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kWarps = kBandsWarps;
constexpr int kZeroBytes = 16;  // what groups that are not there read

__device__ inline void copy_8(uint32_t shared, const void* global) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(shared), "l"(global) : "memory");
}
__device__ inline void copy_16(uint32_t shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(global) : "memory");
}

// Of a row: y, and x with four columns more on either side of an image's row.
__host__ __device__ inline int row_bytes(const Bands& p) { return p.in_warp * (2 * p.groups + 1) * 16; }

template <class T, int kK, int kStages>
__global__ void __launch_bounds__(kWarps * 32, 6)
    bands_kernel(const __grid_constant__ Bands p, const T* x, const T* y, float* parts) {
  constexpr int kP = kK / 2, kTaps = kK * kK;
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ float of_warps[kWarps][kTaps];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int channel = static_cast<int>(blockIdx.x);
  const int x_row = (p.groups + 1) * 16, y_row = p.groups * 16;  // bytes of an image's row in a stage
  const int x_image = kK * x_row, y_image = kK * y_row, y_begin = p.in_warp * x_image;
  const int stage_bytes = kK * row_bytes(p), warp_bytes = kStages * stage_bytes + kZeroBytes;
  unsigned char* const own = shared + warp * warp_bytes;
  for (int i = lane; i < warp_bytes / 16; i += 32) reinterpret_cast<uint4*>(own)[i] = uint4{};
  __syncwarp();
  const int image0 = (static_cast<int>(blockIdx.y) * kWarps + warp) * p.in_warp;
  const int images = min(p.in_warp, p.images - image0);
  const uint32_t base = shared_address(own), zero = base + kStages * stage_bytes;

  const int64_t distance = static_cast<int64_t>(p.channels) * p.height * p.width;
  const int64_t begin = (static_cast<int64_t>(image0) * p.channels + channel) * p.height * p.width;
  // Lanes share a row of x in pieces of four columns, and several rows at once where they can.
  const int pieces = 2 * p.groups, at_once = 32 / pieces;
  const int my_row = lane / pieces, my_piece = lane % pieces;
  const int steps = images > 0 ? p.height + kP : 0;
  // Rows t0 to t0 + K − 1 of y, and those of x that are P above them.
  const auto start = [&](int t0, uint32_t stage) {
    if (t0 < steps) {
      const int first = max(t0 - kP, 0), last = min(t0 + kK - kP, p.height), y_last = min(t0 + kK, p.height);
      for (int image = 0; image < images; ++image) {
        const T* const of_x = x + begin + image * distance + my_piece * 4;
        const uint32_t to_x = stage + image * x_image + 8 + my_piece * 8;
        if (my_row < at_once)
#pragma unroll 4
          for (int row = first + my_row; row < last; row += at_once)
            copy_8(to_x + (row - t0 + kP) * x_row, of_x + row * p.width);
        const char* const of_y = reinterpret_cast<const char*>(y + begin + image * distance + t0 * p.width);
        const uint32_t to_y = stage + y_begin + image * y_image;
#pragma unroll 2
        for (int i = lane * 16; i < (y_last - t0) * y_row; i += 512) copy_16(to_y + i, of_y + i);
      }
    }
    close_copies();
  };
#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) start(i * kK, base + i * stage_bytes);
  // Group k of the sixteen: image k / groups. Lanes 0 to 7 and 16 to 23 name the first chunks of groups, the
  // others the second ones, which are the first of the next group.
  const int k = lane % 8 + lane / 16 * 8, image = k / p.groups;
  const bool there = image < images;
  const uint32_t from_x = there ? image * x_image + k % p.groups * 16 + lane / 8 % 2 * 16 : 0;
  const int ky = lane % 16, image_y = ky / p.groups;
  const bool there_y = image_y < images;
  const uint32_t from_y = y_begin + image_y * y_image + ky % p.groups * 16;
  const uint32_t x_step = there ? x_row : 0, y_step = there_y ? y_row : 0;

  float sums[kK][4] = {};
  uint32_t rows[kK][2] = {};  // fragments of y: row t in slot t % K
  uint32_t stage = base;
  for (int t0 = 0; t0 < steps; t0 += kK) {
    wait_for_copies<kStages - 2>();
    __syncwarp();
    uint32_t next = stage + (kStages - 1) * stage_bytes;
    if (next >= zero) next -= kStages * stage_bytes;
    start(t0 + (kStages - 1) * kK, next);
    const uint32_t at_x = there ? stage + from_x : zero, at_y = there_y ? stage + from_y : zero;
#pragma unroll
    for (int u = 0; u < kK; ++u) {
      const int t = t0 + u;
      if (t >= steps) break;
      load_pair(t < p.height ? at_y + u * y_step : zero, rows[u]);
      if (t < kP) continue;
      uint32_t of_row[4];
      load_matrices<true>(at_x + u * x_step, of_row);
#pragma unroll
      for (int kh = 0; kh < kK; ++kh) {
        const uint32_t(&row)[2] = rows[(u - kh + kK) % kK];
        multiply_add(sums[kh], of_row, row[0], row[1], T{});
      }
    }
    stage += stage_bytes;
    if (stage >= zero) stage = base;
  }
  wait_for_copies<0>();
  __syncwarp();
  // Diagonals, through this warp's own shared memory: [p][q] of one kh after another.
  auto* const matrix = reinterpret_cast<float*>(own);
  for (int kh = 0; kh < kK; ++kh) {
    float sum[4];
#pragma unroll
    for (int i = 0; i < kK; ++i)
      if (i == kh)
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[j] = sums[i][j];
#pragma unroll
    for (int j = 0; j < 4; ++j) matrix[(lane / 4 + j / 2 * 8) * 8 + lane % 4 * 2 + j % 2] = sum[j];
    __syncwarp();
    if (lane < kK) {
      float diagonal = 0;
      for (int q = 0; q < 8; ++q) diagonal += matrix[(q + lane - kP + 4) * 8 + q];
      of_warps[warp][kh * kK + lane] = diagonal;
    }
    __syncwarp();
  }
  __syncthreads();
  for (int tap = static_cast<int>(threadIdx.x); tap < kTaps; tap += kWarps * 32) {
    float sum = 0;
    for (int i = 0; i < kWarps; ++i) sum += of_warps[i][tap];
    parts[(blockIdx.y * int64_t{p.channels} + channel) * kTaps + tap] = sum;
  }
}

template <class T, int kK, int kStages = 2>
void launch(const Conv& conv, float* workspace, Stream stream) {
  const Bands p = bands_of(conv);
  const int bytes = kWarps * (kStages * kK * row_bytes(p) + kZeroBytes);
  start(bands_kernel<T, kK, kStages>, {conv.groups, depthwise_bands_parts(conv)}, kWarps * 32, bytes, stream,
        p, conv.x.data, conv.y.data, workspace);
}

}  // namespace

void depthwise_bands_grad_weight(const Conv& conv, float* workspace, Stream stream) {
  with_half(conv.x.dtype, [&](auto type) {
    with_one_of<5, 7>(conv.axes[2].kernel,
                      [&](auto taps) { launch<decltype(type), taps()>(conv, workspace, stream); });
  });
}

}  // namespace retrograd::kernels::cuda
