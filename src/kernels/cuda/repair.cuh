// SPDX-License-Identifier: Apache-2.0
// Results once more from their formula, where products with zeros that stand for padding may have made them
// NaN. An infinity cannot come from such a product, nor from FP32 split into TF32 numbers (Inf - Inf), so
// only NaN is suspect; and without a split only where a tap lies beyond the edge. What the formula does not
// find to be NaN with its first term, a warp computes together: as many sums at once as their length allows,
// since each alone would wait for memory. Rarely needed, so it is kept out of the loops that call it.
#pragma once

#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/formulas.cuh"
#include "kernels/cuda/layout/channel_rows.h"

namespace retrograd::kernels::cuda {

// Whether dense products of these operands are sums of three TF32 products
// (engines/cuda/dense/row_products.cpp).
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

// Sums of places and of weights are functions of their own: most kernels need one kind, and hold no code of
// the other.

__device__ inline bool begins_with_nan(const Conv& p, Result result, const Terms& terms) {
  if (terms.all() == 0) return false;
  const Source a(result == Result::kGradInput ? p.y : p.x, p.rounding),
      b(result == Result::kGradWeight ? p.y : p.w, p.rounding);
  return isnan(a(terms.a) * b(terms.b));
}
static __device__ __noinline__ bool place_begins_with_nan(const Conv& p, Result result, const Index5& at) {
  return begins_with_nan(p, result, terms_of_place(p, result == Result::kForward, at));
}
static __device__ __noinline__ bool weight_begins_with_nan(const Conv& p, const Index5& at) {
  return begins_with_nan(p, Result::kGradWeight, terms_of_weight(p, at));
}
// Whether the first term of a result is NaN: then so is the result.
__device__ inline bool begins_with_nan(const Conv& conv, Result result, const Index5& at) {
  return result == Result::kGradWeight ? weight_begins_with_nan(conv, at)
                                       : place_begins_with_nan(conv, result, at);
}

// Whether every index of x is one of y too, and the kernel's middle is live for all of them.
__device__ inline bool is_same(const Axis& a) {
  return a.x == a.y && a.stride == 1 && a.kernel % 2 == 1 && a.pad == a.kernel / 2 * a.dilation;
}

// The first live term of a place's results, which have its source in common: of `channel` here, and `step`
// weights further of the next one in the group.
struct FirstTerm {
  bool any;
  float source;
  int64_t weight, step, channel;

  // Whether it is NaN of every channel.
  __device__ bool is_all_nan() const { return any && isnan(source); }
  // Whether it is NaN of another channel: then so is the result.
  __device__ bool is_nan(const Conv& p, int64_t of_channel) const {
    return any && isnan(source * Source(p.w, p.rounding)(weight + (of_channel - channel) * step));
  }
};
static __device__ __noinline__ FirstTerm first_term(const Conv& p, Result result, const Index5& at) {
  const bool forward = result == Result::kForward;
  const Terms terms = terms_of_place(p, forward, at);
  const bool any = terms.all() != 0;
  return {any, any ? Source(forward ? p.x : p.y, p.rounding)(terms.a) : 0.0f, terms.b,
          p.w.strides[forward ? 0 : 1], at.c};
}

static __device__ __noinline__ float place_by_formula(const Conv& conv, Result result, const Index5& at,
                                                      int number = 0, int lanes = 1) {
  return sum_of(conv, result, at, number, lanes);
}
static __device__ __noinline__ float weight_by_formula(const Conv& conv, const Index5& at, int number = 0,
                                                       int lanes = 1) {
  return sum_of(conv, Result::kGradWeight, at, number, lanes);
}
// The share of one of so many lanes.
__device__ inline float by_formula(const Conv& conv, Result result, const Index5& at, int number = 0,
                                   int lanes = 1) {
  return result == Result::kGradWeight ? weight_by_formula(conv, at, number, lanes)
                                       : place_by_formula(conv, result, at, number, lanes);
}

// How many terms a result has that reaches no edge.
__device__ inline int64_t most_terms(const Conv& p, Result result) {
  const Axis(&a)[3] = p.axes;
  if (result == Result::kGradWeight) return p.batch * a[0].y * a[1].y * a[2].y;
  return a[0].kernel * a[1].kernel * a[2].kernel * (result == Result::kForward ? p.x_channels : p.y_channels);
}

__device__ inline int nth_bit(unsigned bits, int n) {
  for (; n > 0; --n) bits &= bits - 1;
  return __ffs(static_cast<int>(bits)) - 1;
}

// Sums of so many terms, or parts of them, for the indices of the lanes with `mine`, some lanes each and as
// many at once as that leaves: function(index, number, lanes) is the share of one lane. Their owners store
// them. All lanes of the warp must call it.
template <class Function, class Store>
__device__ void in_turn(bool mine, const Index5& at, int64_t terms, int64_t parts, Function&& function,
                        Store&& store) {
  const unsigned open = __ballot_sync(~0u, mine);
  if (open == 0) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int count = __popc(open), rank = __popc(open & ((1u << lane) - 1));
  const int lanes = lanes_of_sum(count, terms, parts), at_once = 32 / lanes;
#pragma unroll 1
  for (int first = 0; first < count; first += at_once) {
    const int owner = nth_bit(open, min(first + lane / lanes, count - 1));
    const auto of_owner = [&](int64_t value) {
      return static_cast<int64_t>(__shfl_sync(~0u, static_cast<long long>(value), owner));
    };
    const Index5 index{of_owner(at.n), of_owner(at.c), of_owner(at.d), of_owner(at.h), of_owner(at.w)};
    float value = function(index, lane % lanes, lanes);
    __syncwarp();
    for (int distance = lanes / 2; distance > 0; distance /= 2)
      value += __shfl_xor_sync(~0u, value, distance);
    const bool is_now = mine && rank >= first && rank < first + at_once;
    const float sum = __shfl_sync(~0u, value, is_now ? (rank - first) * lanes : 0);
    if (is_now) store(sum);
  }
}

// All lanes of a warp must call it. open: of this lane, that the result at `at` is NaN and may be wrong, and
// its first term is not NaN.
template <class Store>
__device__ void repair_open(const Conv& conv, Result result, bool open, const Index5& at, Store&& store) {
  in_turn(
      open, at, most_terms(conv, result), 0,
      [&](const Index5& index, int number, int lanes) {
        return by_formula(conv, result, index, number, lanes);
      },
      store);
}
// The same, where the first term has not been looked at.
template <class Store>
__device__ void repair_in_warp(const Conv& conv, Result result, bool suspect, const Index5& at,
                               Store&& store) {
  repair_open(conv, result, suspect && !begins_with_nan(conv, result, at), at, store);
}

}  // namespace retrograd::kernels::cuda
