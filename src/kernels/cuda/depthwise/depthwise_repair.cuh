// SPDX-License-Identifier: Apache-2.0
// Results that are NaN, where a zero beside a kernel's diagonal may have met an infinity, are taken from the
// formula by those that have written them, once they are done: the loops only watch for them.
#pragma once

#include "kernels/cuda/repair.cuh"

namespace retrograd::kernels::cuda {

// Becomes NaN with the first value that is not finite.
__device__ inline void watch(float& witness, float value) { witness = fmaf(value, 0.0f, witness); }

// Rows of one plane of x, or of y if `result` is kForward.
template <class T>
__device__ __noinline__ void repair_rows(const Conv& conv, Result result, int64_t image, int channel, int row,
                                         int rows) {
  const bool forward = result == Result::kForward;
  const int width = static_cast<int>(forward ? conv.axes[2].y : conv.axes[2].x);
  const Tensor& target = forward ? conv.y : conv.x;
  const Tensor& source = forward ? conv.x : conv.y;
  const Axis &ah = conv.axes[1], &aw = conv.axes[2];
  // The term of the kernel's middle is there for every result; most NaN are found by it.
  const bool same = is_same(ah) && is_same(aw);
  const float middle = to_float(
      static_cast<const T*>(conv.w.data)[offset_of(conv.w, {channel, 0, 0, ah.kernel / 2, aw.kernel / 2})]);
  if (same && isnan(middle)) return;
  const auto terms_along = [&](const Axis& a, int64_t at) {
    return forward ? taps_of_output(a, at) : taps_of_input(a, at);
  };
  const T* const plane = static_cast<const T*>(source.data) + offset_of(source, {image, channel, 0, 0, 0});
  const T* const kernel = static_cast<const T*>(conv.w.data) + channel * conv.w.strides[0];
  const float bias = bias_of(conv, channel);
  const auto index_of = [&](int i) { return Index5{image, channel, 0, row + i / width, i % width}; };
  const auto compute = [&](int i) {
    const Index5 at = index_of(i);
    const AxisTerms down = terms_along(ah, at.h), across = terms_along(aw, at.w);
    const int64_t source_step = across.other_step * source.strides[4],
                  kernel_step = across.first_step * conv.w.strides[4];
    float sum = bias;
    for (int64_t kh = 0; kh < down.count && !isnan(sum); ++kh) {
      const T* const from =
          plane + (down.other + kh * down.other_step) * source.strides[3] + across.other * source.strides[4];
      const T* const with =
          kernel + (down.first + kh * down.first_step) * conv.w.strides[3] + across.first * conv.w.strides[4];
#pragma unroll 4
      for (int64_t kw = 0; kw < across.count; ++kw)
        sum = fmaf(to_float(from[kw * source_step]), to_float(with[kw * kernel_step]), sum);
    }
    static_cast<T*>(target.data)[offset_of(target, at)] = from_float<T>(sum);
  };
  // What is to be computed waits, one result a lane, until there are 32: mostly they lie along an edge.
  constexpr int kAhead = 4;
  const int lane = static_cast<int>(threadIdx.x) % 32, all = rows * width;
  int waiting = 0, count = 0;  // count: of lanes with one
  __syncwarp();
#pragma unroll 1
  for (int first = 0; first < all; first += 32 * kAhead) {
    bool open[kAhead];
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      const int i = first + 32 * j + lane;
      const Index5 at = index_of(min(i, all - 1));
      const float value = to_float(static_cast<const T*>(target.data)[offset_of(target, at)]);
      const float met = same ? to_float(static_cast<const T*>(source.data)[offset_of(source, at)]) : 0.0f;
      open[j] = i < all && isnan(value) && !isnan(met);
    }
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      const unsigned bits = __ballot_sync(~0u, open[j]);
      const int more = __popc(bits);
      if (count + more > 32) {
        if (lane < count) compute(waiting);
        __syncwarp();
        count = 0;
      }
      if (lane >= count && lane < count + more) waiting = first + 32 * j + nth_bit(bits, lane - count);
      count += more;
    }
  }
  if (lane < count) compute(waiting);
}

// The weights of a channel, which the block has written: a warp each.
inline __device__ __noinline__ void repair_channel(const Conv& conv, int64_t channel, int taps, int warp,
                                                   int warps) {
  for (int tap = warp; tap < taps; tap += warps) {
    const Index5 at{channel, 0, 0, tap / conv.axes[2].kernel, tap % conv.axes[2].kernel};
    const int64_t offset = offset_of(conv.w, at);
    if (!isnan(load_any(conv.w.dtype, conv.w.data, offset)) || begins_with_nan(conv, Result::kGradWeight, at))
      continue;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const float sum = warp_sum(by_formula(conv, Result::kGradWeight, at, lane, 32));
    if (lane == 0) store_any(conv.w.dtype, conv.w.data, offset, sum);
  }
}

}  // namespace retrograd::kernels::cuda
