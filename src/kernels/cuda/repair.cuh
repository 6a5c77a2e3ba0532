// SPDX-License-Identifier: Apache-2.0
// Results once more from their formula, where products with zeros that stand for padding may have made them
// NaN. An infinity cannot come from such a product, nor from FP32 split into TF32 numbers (Inf - Inf), so
// only NaN is suspect; and without a split only where a tap lies beyond the edge. What the formula does not
// find to be NaN with its first term, a warp computes together. Rarely needed, so it is kept out of the loops
// that call it.
#pragma once

#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/formulas.cuh"
#include "kernels/cuda/layout/results.h"

namespace retrograd::kernels::cuda {

// Whether dense products of these operands are sums of three TF32 products
// (engines/cuda/dense/row_steps.cpp).
__device__ inline bool are_split(const Conv& conv, const Tensor& a, const Tensor& b) {
  const auto in_f16 = [&](DType dtype) {
    return dtype != DType::kBF16 && (dtype != DType::kF32 || conv.rounding == OperandRounding::kF16);
  };
  if (in_f16(a.dtype) && in_f16(b.dtype)) return false;
  if (a.dtype == DType::kBF16 && b.dtype == DType::kBF16) return false;
  return conv.rounding != OperandRounding::kHf32Bits10;
}

// Whether some terms of the whole sum of a result lie beyond the edge of an operand.
__device__ inline bool reaches_edge(const Conv& conv, Result result, const Index5& at) {
  const int64_t index[3] = {at.d, at.h, at.w};
  bool reaches = false;
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    const Axis& a = conv.axes[i];
    const int64_t reach = (a.kernel - 1) * a.dilation;
    if (result == Result::kForward) {
      const int64_t start = index[i] * a.stride - a.pad;
      reaches = reaches || start < 0 || start + reach >= a.x;
    } else if (result == Result::kGradInput) {
      const int64_t scaled = index[i] + a.pad;
      reaches = reaches || scaled < reach || scaled >= a.y * a.stride;
    } else {
      const int64_t shift = index[i] * a.dilation - a.pad;
      reaches = reaches || shift < 0 || (a.y - 1) * a.stride + shift >= a.x;
    }
  }
  return reaches;
}

struct FirstTerm {
  bool there;
  int64_t tap, other;  // other: the index into the other operand
};
__device__ inline FirstTerm first_term(const Axis& a, Result result, int64_t index) {
  // Where both sides are of one size any term will do, and the middle one is always there.
  if (a.stride == 1 && a.x == a.y && a.pad == (a.kernel / 2) * a.dilation && a.kernel % 2 == 1)
    return {true, a.kernel / 2, index};
  if (result == Result::kForward) {
    const int64_t start = index * a.stride - a.pad;
    const int64_t tap = start >= 0 ? 0 : a.dilation == 1 ? -start : ceil_div(-start, a.dilation);
    return {tap < a.kernel && start + tap * a.dilation < a.x, tap, start + tap * a.dilation};
  }
  if (a.stride == 1) {
    const int64_t beyond = index + a.pad - (a.y - 1);
    const int64_t tap = beyond <= 0 ? 0 : a.dilation == 1 ? beyond : ceil_div(beyond, a.dilation);
    const int64_t output = index + a.pad - tap * a.dilation;
    return {tap < a.kernel && output >= 0, tap, output};
  }
  for (int64_t tap = 0; tap < a.kernel; ++tap)
    if (const int64_t output = output_reading(a, index, tap); output >= 0) return {true, tap, output};
  return {false, 0, 0};
}

// Sums of places and of weights are functions of their own: most kernels need one kind, and hold no code of
// the other.

static __device__ __noinline__ bool place_begins_with_nan(const Conv& p, Result result, const Index5& at) {
  const FirstTerm d = first_term(p.axes[0], result, at.d), h = first_term(p.axes[1], result, at.h),
                  k = first_term(p.axes[2], result, at.w);
  if (!d.there || !h.there || !k.there || p.x_channels == 0 || p.y_channels == 0) return false;
  const Source x(p.x, p.rounding), y(p.y, p.rounding), w(p.w, p.rounding);
  if (result == Result::kForward)
    return isnan(x(offset_of(p.x, {at.n, at.c / p.y_channels * p.x_channels, d.other, h.other, k.other})) *
                 w(offset_of(p.w, {at.c, 0, d.tap, h.tap, k.tap})));
  const int64_t first = at.c / p.x_channels * p.y_channels;
  return isnan(y(offset_of(p.y, {at.n, first, d.other, h.other, k.other})) *
               w(offset_of(p.w, {first, at.c % p.x_channels, d.tap, h.tap, k.tap})));
}
static __device__ __noinline__ bool weight_begins_with_nan(const Conv& p, const Index5& at) {
  const Axis(&a)[3] = p.axes;
  const Range d = live_outputs(a[0], at.d), h = live_outputs(a[1], at.h), k = live_outputs(a[2], at.w);
  if (p.batch == 0 || d.begin == d.end || h.begin == h.end || k.begin == k.end) return false;
  const Source x(p.x, p.rounding), y(p.y, p.rounding);
  return isnan(x(offset_of(p.x, {0, at.n / p.y_channels * p.x_channels + at.c, position(a[0], d.begin, at.d),
                                 position(a[1], h.begin, at.h), position(a[2], k.begin, at.w)})) *
               y(offset_of(p.y, {0, at.n, d.begin, h.begin, k.begin})));
}
// Whether the first term of a result is NaN: then so is the result.
__device__ inline bool begins_with_nan(const Conv& conv, Result result, const Index5& at) {
  return result == Result::kGradWeight ? weight_begins_with_nan(conv, at)
                                       : place_begins_with_nan(conv, result, at);
}

static __device__ __noinline__ float place_by_formula(const Conv& conv, Result result, const Index5& at) {
  return result == Result::kForward ? forward_sum(conv, at) : grad_input_sum(conv, at);
}
static __device__ __noinline__ float weight_by_formula(const Conv& conv, const Index5& at) {
  return grad_weight_sum(conv, at, 0, 1);
}
__device__ inline float by_formula(const Conv& conv, Result result, const Index5& at) {
  return result == Result::kGradWeight ? weight_by_formula(conv, at) : place_by_formula(conv, result, at);
}

static __device__ __noinline__ float place_by_warp(const Conv& conv, Result result, const Index5& at) {
  return warp_sum(result == Result::kForward
                      ? forward_sum(conv, at, Share::of_lane(conv, conv.x_channels))
                      : grad_input_sum(conv, at, Share::of_lane(conv, conv.y_channels)));
}
static __device__ __noinline__ float weight_by_warp(const Conv& conv, const Index5& at) {
  return warp_sum(grad_weight_sum(conv, at, threadIdx.x % 32, 32));
}
// Every lane of the warp gets the sum.
__device__ inline float by_warp(const Conv& conv, Result result, const Index5& at) {
  return result == Result::kGradWeight ? weight_by_warp(conv, at) : place_by_warp(conv, result, at);
}

// Calls function(index) in all lanes for the index of every lane with `mine`, one after another; the owner of
// the index stores what it returns.
template <class Function, class Store>
__device__ void in_turn(bool mine, const Index5& at, Function&& function, Store&& store) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (unsigned rest = __ballot_sync(~0u, mine); rest != 0; rest &= rest - 1) {
    const int owner = __ffs(static_cast<int>(rest)) - 1;
    const auto of_owner = [&](int64_t value) {
      return static_cast<int64_t>(__shfl_sync(~0u, static_cast<long long>(value), owner));
    };
    const Index5 index{of_owner(at.n), of_owner(at.c), of_owner(at.d), of_owner(at.h), of_owner(at.w)};
    const float value = function(index);
    if (lane == owner) store(value);
  }
}

// All lanes of a warp must call it. suspect: of this lane, that the result at `at` is NaN and may be wrong.
template <class Store>
__device__ void repair_in_warp(const Conv& conv, Result result, bool suspect, const Index5& at,
                               Store&& store) {
  const bool mine = suspect && !begins_with_nan(conv, result, at);
  in_turn(
      mine, at, [&](const Index5& index) { return by_warp(conv, result, index); }, store);
}

}  // namespace retrograd::kernels::cuda
