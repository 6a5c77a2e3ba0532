// SPDX-License-Identifier: Apache-2.0
// x[q] = Σ_k y[q + P − k] · w[k] on small planes, on tensor cores.
//
// A plane is a matrix of 16 x 16, zeros around it. Row kh of the kernel along the diagonals of another one
// makes all columns of a result from all columns of y: two products of 16 x 16 and 16 x 8 matrices for each
// kh, with the rows of y that are P − kh away. A warp keeps the matrices of its channel in registers and
// takes image after image; the next planes are on their way meanwhile. Bytes: y once, x once.
//
// Values beyond the edge are zeros, and so are the matrices beside their diagonals; a result that is NaN,
// where a zero may have met an infinity, is taken from the formula.
#include <type_traits>

#include "kernels/cuda/depthwise/depthwise_band.cuh"
#include "kernels/cuda/depthwise/depthwise_plan.h"
#include "kernels/cuda/depthwise/depthwise_repair.cuh"
#include "kernels/cuda/depthwise/depthwise_small.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pack.cuh"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int64_t kWantedParts = 8;  // of the images

template <class T, class Plane, int kK, int kAhead>
__global__ void __launch_bounds__(kWarps * 32, 6)
    small_gather_kernel(const __grid_constant__ Conv conv, int channels, int images, int in_part, const T* y,
                        const T* weights, T* x) {
  constexpr int kP = kK / 2, kBytes = small_bytes(kP);
  __shared__ __align__(16) unsigned char shared[kWarps][kBytes + kSmallOutBytes];
  __shared__ __align__(16) unsigned char kernels[kWarps][BandKernel<T, kK>::kBytes];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int channel = static_cast<int>(blockIdx.x) * kWarps + warp;
  const int first = static_cast<int>(blockIdx.y) * in_part, last = min(first + in_part, images);
  if (channel >= channels) return;
  unsigned char* const own = shared[warp];
  for (int i = lane; i < kBytes / 16; i += 32) reinterpret_cast<uint4*>(own)[i] = uint4{};
  __syncwarp();
  const uint32_t base = shared_address(own);
  const Plane plane(conv);
  const SmallCopy<Plane> copy(plane, lane, base, kP);
  const int places = plane.width() * plane.height();
  const int64_t distance = static_cast<int64_t>(channels) * places;
  const T* const from = y + (static_cast<int64_t>(first) * channels + channel) * places;
  typename Plane::Piece ahead[kAhead][kSmallPieces];
#pragma unroll
  for (int i = 0; i < kAhead; ++i)
    if (first + i < last) copy.fetch(ahead[i], from + i * distance);

  T* const kernel = reinterpret_cast<T*>(kernels[warp]);
  BandKernel<T, kK>::load(kernel, conv, weights, channel, lane);
  __syncwarp();
  const int q = lane / 4, t = lane % 4;
  uint32_t band[kK][2][2];  // of kernel row kh and eight results: columns 2t, 2t + 1 and 2t + 8, 2t + 9 of y
#pragma unroll
  for (int kh = 0; kh < kK; ++kh)
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        band[kh][half][i] = BandKernel<T, kK>::pair(kernel, kh, q + 8 * half + kP - 2 * t - 8 * i);
  const uint32_t matrix = (lane % 8 + lane / 8 % 2 * 8) * kSmallPitch + lane / 16 * 16;
  T* const out = reinterpret_cast<T*>(own + kBytes);
  float witness = 0;
  for (int n0 = first; n0 < last; n0 += kAhead) {
#pragma unroll
    for (int v = 0; v < kAhead; ++v) {
      const int n = n0 + v;
      if (n >= last) break;
      copy.put(ahead[v]);
      __syncwarp();
      if (n + kAhead < last) copy.fetch(ahead[v], from + (n + kAhead - first) * distance);
      float sums[2][4] = {};
#pragma unroll
      for (int o = 0; o < kK; ++o) {
        uint32_t rows[4];
        load_matrices<false>(base + matrix + o * kSmallPitch, rows);
#pragma unroll
        for (int half = 0; half < 2; ++half)
          multiply_add(sums[half], rows, band[2 * kP - o][half][0], band[2 * kP - o][half][1], T{});
      }
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int row = q + 8 * i, column = 8 * half + 2 * t;
          if (row >= plane.height() || column >= plane.width()) continue;
          const float pair[2] = {sums[half][2 * i], sums[half][2 * i + 1]};
          T* const to = out + row * plane.width() + column;
          watch(witness, pair[0]);
          if constexpr (std::is_same_v<Plane, FourteenPlane>) {
            watch(witness, pair[1]);
            store_pack<T, 2>(to, pair);
          } else {
            to[0] = from_float<T>(pair[0]);
            if (column + 1 >= plane.width()) continue;
            watch(witness, pair[1]);
            to[1] = from_float<T>(pair[1]);
          }
        }
      __syncwarp();
      copy.take(x + (static_cast<int64_t>(n) * channels + channel) * places, out);
      __syncwarp();
    }
  }
  if (__any_sync(~0u, isnan(witness)))
    for (int n = first; n < last; ++n)
      repair_rows<T>(conv, Result::kGradInput, n, channel, 0, plane.height());
}

template <class T, class Plane, int kK, int kAhead = 3>
void launch(const Conv& conv, Stream stream) {
  const int64_t in_part = (conv.batch + kWantedParts - 1) / kWantedParts;
  start(small_gather_kernel<T, Plane, kK, kAhead>,
        {(conv.groups + kWarps - 1) / kWarps, (conv.batch + in_part - 1) / in_part}, kWarps * 32, 0, stream,
        conv, static_cast<int>(conv.groups), static_cast<int>(conv.batch), static_cast<int>(in_part),
        conv.y.data, conv.w.data, conv.x.data);
}

}  // namespace

void depthwise_small_grad_input(const Conv& conv, Stream stream) {
  with_half(conv.x.dtype, [&](auto type) {
    using T = decltype(type);
    with_one_of<3, 5, 7>(conv.axes[2].kernel, [&](auto taps) {
      is_tiny(conv) ? launch<T, TinyPlane, taps()>(conv, stream)
                    : launch<T, FourteenPlane, taps()>(conv, stream);
    });
  });
}

}  // namespace retrograd::kernels::cuda
