// SPDX-License-Identifier: Apache-2.0
// w[kh,kw] = Σ_{n,o} x[n, o − P + (kh,kw)] · y[n, o] of one channel, on planes that are small enough to be in
// shared memory whole.
//
// A block takes a channel and 32 images at a time, a lane each. A thread keeps two rows of y and all K² sums
// in registers and reads the K + 1 rows of x that meet them; products with columns beyond the edge are left
// out by the compiler. In the end the block adds what its threads have, in a fixed order.
//
// Rows beyond the edge are zeros; a sum that is NaN is taken from the formula.
#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/dense/tile_mma.cuh"
#include "kernels/cuda/depthwise/depthwise_repair.cuh"
#include "kernels/cuda/depthwise/depthwise_whole.cuh"
#include "kernels/cuda/depthwise/depthwise_whole.h"
#include "kernels/cuda/part_sums.h"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

// 16-bit planes leave room for the next ones, which come while these are computed with.
template <class T>
constexpr int kStages = sizeof(T) == 2 ? 2 : 1;
template <class T>
constexpr int kStageWords = 2 * kWholePlanes* Whole<T>::kPitch;

template <class T, int kK>
constexpr int shared_words() {
  constexpr int kPlanes = kStages<T> * kStageWords<T>, kSums = kWholeThreads * kK * kK;
  return kPlanes > kSums ? kPlanes : kSums;
}

// With kFinish there is one part, and the sums are the results.
template <class T, int kK, bool kFinish>
__global__ void __launch_bounds__(kWholeThreads, kK == 7 ? 2 : 3)
    grad_weight_kernel(const __grid_constant__ Conv conv, int channels, int images, int images_in_part,
                       const T* x, const T* y, float* parts) {
  using W = Whole<T>;
  constexpr int kP = kK / 2, kTaps = kK * kK, kPlane = kWholeWidth * kWholeWidth;
  extern __shared__ uint32_t shared[];
  const int64_t channel = blockIdx.x, distance = static_cast<int64_t>(channels) * kPlane;
  const int first = static_cast<int>(blockIdx.y) * images_in_part, last = min(first + images_in_part, images);
  const int lane = static_cast<int>(threadIdx.x) % kWholePlanes,
            row0 = static_cast<int>(threadIdx.x) / kWholePlanes * kWholeRows;
  float sums[kTaps] = {};
  const auto load = [&](int round) {
    const int image = first + round * kWholePlanes;
    if (image < last) {
      const int64_t at = image * distance + channel * kPlane;
      const int count = min(kWholePlanes, last - image);
      uint32_t* const stage = shared + round % kStages<T> * kStageWords<T>;
      W::load(stage, x + at, distance, count);
      W::load(stage + kWholePlanes * W::kPitch, y + at, distance, count);
    }
    close_copies();
  };
  if (kStages<T> == 2) load(0);
  for (int round = 0; first + round * kWholePlanes < last; ++round) {
    const int count = min(kWholePlanes, last - first - round * kWholePlanes);
    load(round + kStages<T> - 1);
    wait_for_copies<kStages<T> - 1>();
    __syncthreads();
    const uint32_t* const of_x = shared + round % kStages<T> * kStageWords<T>;
    const uint32_t* const of_y = of_x + kWholePlanes * W::kPitch;
    if (lane < count) {
      float values[kWholeRows][kWholeWidth];
#pragma unroll
      for (int a = 0; a < kWholeRows; ++a) W::row(of_y + lane * W::kPitch, row0 + a, values[a]);
#pragma unroll
      for (int r = -kP; r <= kWholeRows - 1 + kK - 1 - kP; ++r) {
        float row[kWholeWidth];
        W::row(of_x + lane * W::kPitch, row0 + r, row);
#pragma unroll
        for (int a = 0; a < kWholeRows; ++a) {
          const int kh = r - a + kP;
          if (kh < 0 || kh >= kK) continue;
#pragma unroll
          for (int b = 0; b < kWholeWidth; ++b)
#pragma unroll
            for (int kw = 0; kw < kK; ++kw)
              if (b + kw - kP >= 0 && b + kw - kP < kWholeWidth)
                sums[kh * kK + kw] = fmaf(row[b + kw - kP], values[a][b], sums[kh * kK + kw]);
        }
      }
    }
    __syncthreads();
  }
  wait_for_copies<0>();
  __syncthreads();
  auto* const all = reinterpret_cast<float*>(shared);  // [thread][kTaps], an odd number
#pragma unroll
  for (int i = 0; i < kTaps; ++i) all[threadIdx.x * kTaps + i] = sums[i];
  __syncthreads();
  bool suspect = false;
  for (int tap = static_cast<int>(threadIdx.x) / 32; tap < kTaps; tap += kWholeThreads / 32) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kWholeStrips; ++i) sum += all[(i * 32 + lane) * kTaps + tap];
    sum = warp_sum(sum);
    suspect = suspect || isnan(sum);
    if (lane != 0) continue;
    if constexpr (kFinish) {
      const Index5 at{channel, 0, 0, tap / kK, tap % kK};
      store_any(conv.w.dtype, conv.w.data, offset_of(conv.w, at), sum);
    } else {
      parts[(blockIdx.y * int64_t{channels} + channel) * kTaps + tap] = sum;
    }
  }
  if constexpr (kFinish)
    if (__syncthreads_or(suspect))
      repair_channel(conv, channel, kTaps, static_cast<int>(threadIdx.x) / 32, kWholeThreads / 32);
}

template <class T, int kK>
void launch(const Conv& conv, float* workspace, Stream stream) {
  constexpr int kBytes = shared_words<T, kK>() * 4;
  const auto kernel =
      depthwise_whole_parts(conv) == 1 ? grad_weight_kernel<T, kK, true> : grad_weight_kernel<T, kK, false>;
  if (kBytes > 48 << 10) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  const dim3 grid(static_cast<unsigned>(conv.groups), static_cast<unsigned>(depthwise_whole_parts(conv)));
  kernel<<<grid, kWholeThreads, kBytes, stream>>>(
      conv, static_cast<int>(conv.groups), static_cast<int>(conv.batch),
      static_cast<int>(whole_images_in_part(conv)), static_cast<const T*>(conv.x.data),
      static_cast<const T*>(conv.y.data), workspace);
}

}  // namespace

void depthwise_whole_grad_weight(const Conv& conv, float* workspace, Stream stream) {
  with_type(conv.x.dtype, [&](auto type) {
    using T = decltype(type);
    switch (conv.axes[2].kernel) {
      case 3:
        return launch<T, 3>(conv, workspace, stream);
      case 5:
        return launch<T, 5>(conv, workspace, stream);
      default:
        return launch<T, 7>(conv, workspace, stream);
    }
  });
  const int64_t parts = depthwise_whole_parts(conv);
  if (parts > 1)
    add_parts(conv, parts, PartOrder::kTapsOfChannel,
              PartRows::of_images(whole_images_in_part(conv), conv.axes[1].y), workspace, stream);
}

}  // namespace retrograd::kernels::cuda
