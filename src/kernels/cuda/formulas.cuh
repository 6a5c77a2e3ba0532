// SPDX-License-Identifier: Apache-2.0
// The sums of problem/pass.h for one element, with any strides, sizes and types. Runs of terms are kept apart
// before they are added, which keeps FP32 accurate over long sums. Threads may share the terms of a sum; a
// sum that is NaN stays NaN, so nobody reads on.
#pragma once

#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/terms.h"

namespace retrograd::kernels::cuda {

// An operand of a type known only when the kernel runs. Loading and decoding are apart, so that loads can go
// ahead; decoding has every type and rounding and is called from many places, so a kernel has it once.
static __device__ __noinline__ float decode_any(DType dtype, OperandRounding rounding, uint32_t bits) {
  switch (dtype) {
    case DType::kF32:
      return round_operand(rounding, __uint_as_float(bits));
    case DType::kF16:
      return round_operand(rounding, to_float(__ushort_as_half(static_cast<uint16_t>(bits))));
    case DType::kBF16:
      return round_operand(rounding, to_float(__ushort_as_bfloat16(static_cast<uint16_t>(bits))));
    case DType::kHiF8:
      return round_operand(rounding, to_float(HiF8{static_cast<uint8_t>(bits)}));
    case DType::kE4M3:
      return round_operand(rounding, to_float(E4M3{static_cast<uint8_t>(bits)}));
  }
  return 0;
}
struct Source {
  const void* data;
  DType dtype;
  OperandRounding rounding;
  __device__ Source(const Tensor& tensor, OperandRounding r)
      : data(tensor.data), dtype(tensor.dtype), rounding(r) {}
  __device__ uint32_t load(int64_t offset) const {
    if (dtype == DType::kF32) return static_cast<const uint32_t*>(data)[offset];
    if (dtype == DType::kF16 || dtype == DType::kBF16) return static_cast<const uint16_t*>(data)[offset];
    return static_cast<const uint8_t*>(data)[offset];
  }
  __device__ float value(uint32_t bits) const { return decode_any(dtype, rounding, bits); }
  __device__ float operator()(int64_t offset) const { return value(load(offset)); }
};
// As Source, of a type that the compiler knows.
template <class T>
struct TypedSource {
  const T* data;
  __device__ float load(int64_t offset) const { return to_float(data[offset]); }
  __device__ float value(float loaded) const { return loaded; }
  __device__ float operator()(int64_t offset) const { return load(offset); }
};

struct Range {
  int64_t begin, end;
};

__device__ inline Range clamped(int64_t begin, int64_t end, int64_t highest) {
  begin = max(int64_t{0}, min(begin, highest));
  return {begin, max(begin, min(end, highest))};
}
// Of x; −1: beyond its edge.
__device__ inline int64_t position(const Axis& a, int64_t output, int64_t tap) {
  const int64_t index = output * a.stride - a.pad + tap * a.dilation;
  return index < a.x ? max(index, int64_t{-1}) : -1;
}
// −1: none
__device__ inline int64_t output_reading(const Axis& a, int64_t index, int64_t tap) {
  const int64_t scaled = index + a.pad - tap * a.dilation;
  if (scaled < 0) return -1;
  const int64_t output = a.stride == 1 ? scaled : scaled / a.stride;
  if (output * a.stride != scaled) return -1;
  return output < a.y ? output : -1;
}

__device__ inline Index5 split(int64_t flat, int64_t c, int64_t d, int64_t h, int64_t w) {
  Index5 i;
  i.w = flat % w;
  flat /= w;
  i.h = flat % h;
  flat /= h;
  i.d = flat % d;
  flat /= d;
  i.c = flat % c;
  i.n = flat / c;
  return i;
}
__device__ inline float bias_of(const ChannelBias& bias, int64_t channel) {
  return bias.data == nullptr ? 0.0f : load_any(bias.dtype, bias.data, channel * bias.stride);
}
__device__ inline float bias_of(const Conv& p, int64_t channel) { return bias_of(p.bias, channel); }

// Calls function(a, b) with what loads elements of both: of types known to the compiler if they are the usual
// ones, which need no calls.
template <class Function>
__device__ float with_loads(const Source& a, const Source& b, Function&& function) {
  const auto typed = [&](auto type) {
    using T = decltype(type);
    return function(TypedSource<T>{static_cast<const T*>(a.data)},
                    TypedSource<T>{static_cast<const T*>(b.data)});
  };
  if (a.rounding == OperandRounding::kNone && a.dtype == b.dtype) {
    if (a.dtype == DType::kF32) return typed(float{});
    if (a.dtype == DType::kF16) return typed(__half{});
    if (a.dtype == DType::kBF16) return typed(__nv_bfloat16{});
  }
  return function(a, b);
}

// Of the terms from `begin` to `end`, cut into pieces of kTermsAhead: pieces number, number + step, … Loads
// go ahead of the products. One copy in a kernel, and of it one walk for all types: it is long, and compilers
// take minutes over many of it.
static __device__ __noinline__ float sum_of_terms(const Conv& p, Result result, const Terms& of_result,
                                                  int64_t begin, int64_t end, int64_t number, int64_t step) {
  constexpr int kAhead = kTermsAhead;
  begin += number * kAhead;
  if (begin >= end) return 0.0f;
  const Terms terms = joined(of_result);
  const Source a(result == Result::kGradInput ? p.y : p.x, p.rounding),
      b(result == Result::kGradWeight ? p.y : p.w, p.rounding);
  TermWalk walk(terms, begin, kAhead * step);
  float sum = 0;
#pragma unroll 1
  for (int64_t i = begin; i < end; i += kAhead * step, walk.next()) {
    int64_t at_a[kAhead], at_b[kAhead];
    int live = kAhead;
    if (walk.run() >= kAhead && i + kAhead <= end) {  // without asking where each lies
#pragma unroll
      for (int j = 0; j < kAhead; ++j) {
        at_a[j] = walk.a + j * terms.a_step[3];
        at_b[j] = walk.b + j * terms.b_step[3];
      }
    } else {
      live = static_cast<int>(min(end - i, int64_t{kAhead}));
      TermWalk each = walk.each();
#pragma unroll
      for (int j = 0; j < kAhead; ++j, each.next()) at_a[j] = each.a, at_b[j] = each.b;
    }
    sum += with_loads(a, b, [&](auto of_a, auto of_b) {
      decltype(of_a.load(0)) left[kAhead];
      decltype(of_b.load(0)) right[kAhead];
#pragma unroll
      for (int j = 0; j < kAhead; ++j) {
        left[j] = j < live ? of_a.load(at_a[j]) : 0;
        right[j] = j < live ? of_b.load(at_b[j]) : 0;
      }
      float part = 0;
#pragma unroll
      for (int j = 0; j < kAhead; ++j) part = fmaf(of_a.value(left[j]), of_b.value(right[j]), part);
      return part;
    });
    if (isnan(sum)) return sum;
  }
  return sum;
}

// This thread's share, `number` of `step`, of an element. The first has the bias.
__device__ inline float sum_of(const Conv& p, Result result, const Index5& at, int64_t number = 0,
                               int64_t step = 1) {
  const Terms terms = terms_of(p, result, at);
  const float sum = sum_of_terms(p, result, terms, 0, terms.all(), number, step);
  return result == Result::kGradWeight || number != 0 ? sum : sum + bias_of(p, at.c);
}

}  // namespace retrograd::kernels::cuda
