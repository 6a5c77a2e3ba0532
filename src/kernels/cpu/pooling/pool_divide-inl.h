// SPDX-License-Identifier: Apache-2.0
// Vectors of quotients: grad_output / divisor.
//
// Included once for every instruction set.
#include <bit>
#include <cmath>

#include "kernels/cpu/elements-inl.h"
#include "kernels/cpu/pooling/pool_vectors-inl.h"

#if defined(RETROGRAD_KERNELS_CPU_POOL_DIVIDE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETROGRAD_KERNELS_CPU_POOL_DIVIDE_INL_H_
#undef RETROGRAD_KERNELS_CPU_POOL_DIVIDE_INL_H_
#else
#define RETROGRAD_KERNELS_CPU_POOL_DIVIDE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {

#if RG_HAS_FUSED_PRODUCTS
inline constexpr bool kFusesProducts = true;
#else
inline constexpr bool kFusesProducts = false;
#endif

struct ByProduct {
  float reciprocal;
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> v) const {
    return hn::Mul(v, hn::Set(d, reciprocal));
  }
};
struct ByTwoProducts {
  float high, low;
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> v) const {
    return hn::MulAdd(v, hn::Set(d, high), hn::Mul(v, hn::Set(d, low)));
  }
};
struct ByDivision {
  float divisor;
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> v) const {
    return hn::Div(v, hn::Set(d, divisor));
  }
};

// Any of them, asked at every vector: for types other than FLOAT.
class ByAny {
 public:
  explicit ByAny(ByProduct by) : kind_(Kind::kProduct), first_(by.reciprocal) {}
  explicit ByAny(ByTwoProducts by) : kind_(Kind::kTwoProducts), first_(by.high), low_(by.low) {}
  explicit ByAny(ByDivision by) : kind_(Kind::kDivision), first_(by.divisor) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> v) const {
    if (kind_ == Kind::kProduct) return ByProduct{first_}(d, v);
    if (kFusesProducts && kind_ == Kind::kTwoProducts) return ByTwoProducts{first_, low_}(d, v);
    return ByDivision{first_}(d, v);
  }

 private:
  enum class Kind { kProduct, kTwoProducts, kDivision } kind_;
  float first_, low_ = 0;
};

// Calls body(divide) with what divides as the mathematics says. By a power of two a product is exact. By any
// other whole number below 2^20, products with the two parts of its reciprocal, cut and remainder, round as
// the quotient does: where FP32 changes from one number to the next, a quotient is at least 2^-25 / divisor
// of itself away, and the parts are wrong by 2^-46. (Below 2^-101 the last bit may differ.) Both parts have
// the same sign, so that infinity stays infinity.
template <class E, class Body>
HWY_INLINE void with_divide(float divisor, const Body& of_kind) {
  const auto body = [&](auto by) {
    if constexpr (kIsFloat<E>) {
      of_kind(by);
    } else {
      of_kind(ByAny(by));
    }
  };
  const float reciprocal = 1 / divisor;
  const auto magnitude = std::bit_cast<uint32_t>(divisor) & 0x7fff'ffffu;
  if ((magnitude & 0x7f'ffffu) == 0) return body(ByProduct{reciprocal});
  if (!kFusesProducts || magnitude >= std::bit_cast<uint32_t>(0x1p20F)) return body(ByDivision{divisor});
  const double exact = 1 / static_cast<double>(divisor);
  const bool beyond = std::abs(static_cast<double>(reciprocal)) > std::abs(exact);
  const float high = std::bit_cast<float>(std::bit_cast<uint32_t>(reciprocal) - (beyond ? 1u : 0u));
  body(ByTwoProducts{high, static_cast<float>(exact - static_cast<double>(high))});
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
