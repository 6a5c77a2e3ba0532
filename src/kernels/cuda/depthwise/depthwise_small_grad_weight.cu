// SPDX-License-Identifier: Apache-2.0
// w[kh,kw] = Σ_{n,h,v} x[n, h − P + kh, v − P + kw] · y[n, h, v] of one channel, on small planes, on
// tensor cores.
//
// D_kh[p][q] = Σ_h x[h − P + kh][p] · y[h][q] is a product of 16 x 16 matrices, and w[kh,kw] the sum of D_kh
// along the diagonal p − q = kw − P. A block takes one channel, a warp every fourth image; the sums stay in
// registers over all images, and the next planes are on their way meanwhile. Bytes: x once, y once.
//
// Values beyond the edge are zeros; a sum that is NaN is taken from the formula.
#include "kernels/cuda/depthwise/depthwise_plan.h"
#include "kernels/cuda/depthwise/depthwise_repair.cuh"
#include "kernels/cuda/depthwise/depthwise_small.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/part_sums.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kWarps = kSmallWarps;

// With kFinish there is one part, and the sums are the results.
template <class T, class Plane, int kK, int kAhead, bool kFinish>
__global__ void __launch_bounds__(kWarps * 32, kK == 7 ? 5 : 6)
    small_weight_kernel(const __grid_constant__ Conv conv, int channels, int images, int in_part, const T* x,
                        const T* y, float* parts) {
  constexpr int kP = kK / 2, kTaps = kK * kK;
  constexpr int kXBytes = small_bytes(kP), kBytes = kXBytes + small_bytes(0);
  static_assert(kBytes >= 16 * 17 * 4);
  __shared__ __align__(16) unsigned char shared[kWarps][kBytes];
  __shared__ float of_warps[kWarps][kTaps];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t channel = blockIdx.x;
  const int first = static_cast<int>(blockIdx.y) * in_part + warp,
            last = min(static_cast<int>(blockIdx.y + 1) * in_part, images);
  unsigned char* const own = shared[warp];
  for (int i = lane; i < kBytes / 16; i += 32) reinterpret_cast<uint4*>(own)[i] = uint4{};
  __syncwarp();
  const uint32_t base = shared_address(own);
  using Piece = typename Plane::Piece;
  const Plane plane(conv);
  const SmallCopy<Plane> copy_x(plane, lane, base, kP), copy_y(plane, lane, base + kXBytes, 0);
  const int64_t pitch = static_cast<int64_t>(channels) * plane.width() * plane.height();
  const int64_t distance = pitch * kWarps;
  const int64_t from = first * pitch + channel * plane.width() * plane.height();
  Piece of_x[kAhead][kSmallPieces], of_y[kAhead][kSmallPieces];
  const auto fetch = [&](int number, Piece(&to_x)[kSmallPieces], Piece(&to_y)[kSmallPieces]) {
    if (first + number * kWarps >= last) return;
    copy_x.fetch(to_x, x + from + number * distance);
    copy_y.fetch(to_y, y + from + number * distance);
  };
#pragma unroll
  for (int i = 0; i < kAhead; ++i) fetch(i, of_x[i], of_y[i]);

  // The fragments are the planes turned around: rows of shared memory are the terms of the sums.
  const uint32_t at_x = base + (lane % 8 + lane / 16 * 8) * kSmallPitch + lane / 8 % 2 * 16;
  const uint32_t at_y = base + kXBytes + (lane % 8 + lane / 8 % 2 * 8) * kSmallPitch + lane / 16 * 16;
  float sums[kK][2][4] = {};
  for (int n0 = 0; first + n0 * kWarps < last; n0 += kAhead) {
#pragma unroll
    for (int v = 0; v < kAhead; ++v) {
      if (first + (n0 + v) * kWarps >= last) break;
      copy_x.put(of_x[v]);
      copy_y.put(of_y[v]);
      __syncwarp();
      fetch(n0 + v + kAhead, of_x[v], of_y[v]);
      uint32_t columns[4];
      load_matrices<true>(at_y, columns);
#pragma unroll
      for (int kh = 0; kh < kK; ++kh) {
        uint32_t rows[4];
        load_matrices<true>(at_x + kh * kSmallPitch, rows);
#pragma unroll
        for (int half = 0; half < 2; ++half)
          multiply_add(sums[kh][half], rows, columns[2 * half], columns[2 * half + 1], T{});
      }
      __syncwarp();
    }
  }
  // Diagonals, through this warp's own shared memory: [p][q] of one kh after another.
  auto* const matrix = reinterpret_cast<float*>(own);
  constexpr int kPitch = 17;
#pragma unroll
  for (int kh = 0; kh < kK; ++kh) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        matrix[(lane / 4 + j / 2 * 8) * kPitch + half * 8 + lane % 4 * 2 + j % 2] = sums[kh][half][j];
    __syncwarp();
    if (lane < kK) {
      float diagonal = 0;
      for (int q = 0; q < plane.width(); ++q) {
        const int p = q + lane - kP;
        if (p >= 0 && p < plane.width()) diagonal += matrix[p * kPitch + q];
      }
      of_warps[warp][kh * kK + lane] = diagonal;
    }
    __syncwarp();
  }
  __syncthreads();
  bool suspect = false;
  for (int tap = static_cast<int>(threadIdx.x); tap < kTaps; tap += kWarps * 32) {
    float sum = 0;
    for (int i = 0; i < kWarps; ++i) sum += of_warps[i][tap];
    if constexpr (kFinish) {
      const Index5 at{channel, 0, 0, tap / kK, tap % kK};
      suspect = suspect || isnan(sum);
      store_any(conv.w.dtype, conv.w.data, offset_of(conv.w, at), sum);
    } else {
      parts[(blockIdx.y * int64_t{channels} + channel) * kTaps + tap] = sum;
    }
  }
  if constexpr (kFinish)
    if (__syncthreads_or(suspect)) repair_channel(conv, channel, kTaps, warp, kWarps);
}

// By the blocks themselves.
bool is_finished(const Conv& conv) { return small_images_in_part(conv) == conv.batch; }

template <class T, class Plane, int kK, int kAhead = 2>
void launch(const Conv& conv, float* workspace, Stream stream) {
  const int64_t in_part = small_images_in_part(conv);
  const auto kernel = is_finished(conv) ? small_weight_kernel<T, Plane, kK, kAhead, true>
                                        : small_weight_kernel<T, Plane, kK, kAhead, false>;
  start(kernel, {conv.groups, (conv.batch + in_part - 1) / in_part}, kWarps * 32, 0, stream, conv,
        static_cast<int>(conv.groups), static_cast<int>(conv.batch), static_cast<int>(in_part), conv.x.data,
        conv.y.data, workspace);
}

}  // namespace

void depthwise_small_grad_weight(const Conv& conv, float* workspace, Stream stream) {
  with_half(conv.x.dtype, [&](auto type) {
    using T = decltype(type);
    with_one_of<3, 5, 7>(conv.axes[2].kernel, [&](auto taps) {
      is_tiny(conv) ? launch<T, TinyPlane, taps()>(conv, workspace, stream)
                    : launch<T, FourteenPlane, taps()>(conv, workspace, stream);
    });
  });
  if (!is_finished(conv))
    add_parts(conv, depthwise_small_parts(conv), PartOrder::kTapsOfChannel,
              PartRows::of_images(small_images_in_part(conv), conv.axes[1].y), workspace, stream);
}

}  // namespace retrograd::kernels::cuda
