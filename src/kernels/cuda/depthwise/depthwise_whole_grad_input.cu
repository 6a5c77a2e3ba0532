// SPDX-License-Identifier: Apache-2.0
// x[q] = Σ_k y[q + P − k] · w[k] on planes that are small enough to be in shared memory whole: they come and
// go in one piece, whatever the alignment of their rows. A thread makes two rows of results; products with
// columns beyond the edge are left out by the compiler.
//
// Rows beyond the edge are zeros. Zero times a weight that is not finite would be NaN, so a block that finds
// such a weight takes results that are NaN from the formula.
#include "kernels/cuda/depthwise/depthwise_whole.cuh"
#include "kernels/cuda/depthwise/depthwise_whole.h"
#include "kernels/cuda/repair.cuh"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

template <class T>
__device__ __noinline__ void repair(const Conv& conv, int64_t first, int count, T* x) {
  constexpr int kPlane = kWholeWidth * kWholeWidth;
  for (int i = static_cast<int>(threadIdx.x); i < count * kPlane; i += kWholeThreads) {
    T& result = x[first * kPlane + i];
    if (!isnan(to_float(result))) continue;
    const int64_t plane = first + i / kPlane;
    const Index5 at{plane / conv.groups, plane % conv.groups, 0, i % kPlane / kWholeWidth, i % kWholeWidth};
    if (!begins_with_nan(conv, Result::kGradInput, at))
      result = from_float<T>(by_formula(conv, Result::kGradInput, at));
  }
}

template <class T, int kK>
__global__ void __launch_bounds__(kWholeThreads, kK == 7 ? 2 : 4)
    grad_input_kernel(const __grid_constant__ Conv conv, int64_t planes, const T* y, const T* weights, T* x) {
  using W = Whole<T>;
  constexpr int kP = kK / 2, kTaps = kK * kK;
  __shared__ uint32_t shared[kWholePlanes * W::kPitch];
  __shared__ float kernels[kWholePlanes * kTaps];
  const int64_t first = blockIdx.x * int64_t{kWholePlanes};
  const int count = static_cast<int>(min(int64_t{kWholePlanes}, planes - first));
  constexpr int kPlane = kWholeWidth * kWholeWidth;
  W::load(shared, y + first * kPlane, kPlane, count);
  bool finite = true;
  for (int i = static_cast<int>(threadIdx.x); i < count * kTaps; i += kWholeThreads) {
    const int64_t channel = (first + i / kTaps) % conv.groups;
    const int tap = i % kTaps;
    const float value = to_float(
        weights[channel * conv.w.strides[0] + tap / kK * conv.w.strides[3] + tap % kK * conv.w.strides[4]]);
    kernels[i] = value;
    finite = finite && isfinite(value);
  }
  copy_async_wait();
  finite = __syncthreads_and(finite);

  const int lane = static_cast<int>(threadIdx.x) % kWholePlanes,
            row0 = static_cast<int>(threadIdx.x) / kWholePlanes * kWholeRows;
  float sums[kWholeRows][kWholeWidth] = {};
  if (lane < count) {
    float w[kTaps];
#pragma unroll
    for (int i = 0; i < kTaps; ++i) w[i] = kernels[lane * kTaps + i];
#pragma unroll
    for (int r = kP - (kK - 1); r <= kWholeRows - 1 + kP; ++r) {
      float row[kWholeWidth];
      W::row(shared + lane * W::kPitch, row0 + r, row);
#pragma unroll
      for (int a = 0; a < kWholeRows; ++a) {
        const int kh = a + kP - r;
        if (kh < 0 || kh >= kK) continue;
#pragma unroll
        for (int kw = 0; kw < kK; ++kw)
#pragma unroll
          for (int b = 0; b < kWholeWidth; ++b)
            if (b + kP - kw >= 0 && b + kP - kw < kWholeWidth)
              sums[a][b] = fmaf(row[b + kP - kw], w[kh * kK + kw], sums[a][b]);
      }
    }
  }
  __syncthreads();
  if (lane < count)
#pragma unroll
    for (int a = 0; a < kWholeRows; ++a)
#pragma unroll
      for (int i = 0; i < W::kRowWords; ++i) {
        Pack<T, W::kOfWord> pack;
#pragma unroll
        for (int j = 0; j < W::kOfWord; ++j) pack.values[j] = from_float<T>(sums[a][i * W::kOfWord + j]);
        shared[lane * W::kPitch + (row0 + a) * W::kRowWords + i] = reinterpret_cast<const uint32_t&>(pack);
      }
  __syncthreads();
  auto* out = reinterpret_cast<uint32_t*>(x + first * kPlane);
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < count * W::kWords; i += kWholeThreads)
    out[i] = shared[i + i / W::kWords];
  if (finite) return;
  __syncthreads();
  repair<T>(conv, first, count, x);
}

template <class T, int kK>
void launch(const Conv& conv, Stream stream) {
  const int64_t planes = conv.batch * conv.groups;
  const auto blocks = static_cast<unsigned>((planes + kWholePlanes - 1) / kWholePlanes);
  grad_input_kernel<T, kK><<<blocks, kWholeThreads, 0, stream>>>(
      conv, planes, static_cast<const T*>(conv.y.data), static_cast<const T*>(conv.w.data),
      static_cast<T*>(conv.x.data));
}

}  // namespace

void depthwise_whole_grad_input(const Conv& conv, Stream stream) {
  with_type(conv.x.dtype, [&](auto type) {
    using T = decltype(type);
    switch (conv.axes[2].kernel) {
      case 3:
        return launch<T, 3>(conv, stream);
      case 5:
        return launch<T, 5>(conv, stream);
      default:
        return launch<T, 7>(conv, stream);
    }
  });
}

}  // namespace retrograd::kernels::cuda
