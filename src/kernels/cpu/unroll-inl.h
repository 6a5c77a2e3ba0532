// SPDX-License-Identifier: Apache-2.0
// What kernels with many sums in registers share. Included once for every instruction set, after Highway.
#if defined(RETROGRAD_KERNELS_UNROLL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETROGRAD_KERNELS_UNROLL_INL_H_
#undef RETROGRAD_KERNELS_UNROLL_INL_H_
#else
#define RETROGRAD_KERNELS_UNROLL_INL_H_
#endif

#include <utility>

#include "kernels/cpu/vector_shape-inl.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {

constexpr bool kFewRegisters = kShape.few_registers();

// body(0), body(1), … with constants. The front end unrolls it: g++ 12 keeps arrays with constant indices in
// registers, and leaves those that its loop passes unroll on the stack.
template <int... I, class Body>
HWY_INLINE void each(std::integer_sequence<int, I...>, const Body& body) {
  (body(std::integral_constant<int, I>()), ...);
}
template <int kCount>
using Indices = std::make_integer_sequence<int, kCount>;

// For lambdas that work on sums in registers: a call that is not inlined leaves all of them in memory, and
// g++ 12 stops inlining where a file has many.
#define RG_INLINED HWY_ATTR __attribute__((always_inline))

// A vector that must stay in its register: g++ 12 otherwise reads it from memory again for each of up to
// three multiply-adds, which costs a third of the speed.
template <class V>
HWY_INLINE V held(V value) {
#if HWY_COMPILER_GCC_ACTUAL && HWY_ARCH_X86 && !RG_EIGHT_LANES && HWY_TARGET != HWY_SCALAR && \
    HWY_TARGET != HWY_EMU128
  asm("" : "+v"(value.raw));
#endif
  return value;
}

// sum + a · b where the mask is set and sum elsewhere, whatever a holds there; b must hold zeros there.
// AVX-512 masks for nothing; elsewhere a blend would take longer than the product.
template <class Mask, class V>
HWY_INLINE V masked_mul_add(Mask mask, V a, V b, V sum) {
  namespace hn = RG_VECTORS;
  if constexpr (RG_HAS_AVX512)
    return hn::IfThenElse(mask, hn::MulAdd(a, b, sum), sum);
  else
    return hn::MulAdd(hn::IfThenElseZero(mask, a), b, sum);
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
