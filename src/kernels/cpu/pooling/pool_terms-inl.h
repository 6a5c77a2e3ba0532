// SPDX-License-Identifier: Apache-2.0
// Small volumes: vectors of results across rows and volumes, each the sum of a few vectors of quotients.
//
// Included once for every instruction set.
#include <array>
#include <cstddef>

#include "kernels/cpu/elements-inl.h"
#include "kernels/cpu/pooling/pool_vectors-inl.h"
#include "kernels/cpu/pooling/row_pool.h"

#if defined(RETROGRAD_KERNELS_CPU_POOL_TERMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETROGRAD_KERNELS_CPU_POOL_TERMS_INL_H_
#undef RETROGRAD_KERNELS_CPU_POOL_TERMS_INL_H_
#else
#define RETROGRAD_KERNELS_CPU_POOL_TERMS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {

// Where the next term is described.
struct Terms {
  const int32_t *lanes, *from;
};
HWY_INLINE hn::Vec<Floats<kLanes>> next_term(Terms& at, const float* quotients) {
  const Floats<kLanes> d;
  const hn::RebindToSigned<decltype(d)> integers;
  const auto code = hn::LoadU(integers, at.lanes);
  const auto lanes = hn::IndicesFromVec(d, hn::And(code, hn::Set(integers, kLanes - 1)));
  const auto term = hn::TableLookupLanes(load(d, quotients + *at.from), lanes);
  at.lanes += kLanes;
  ++at.from;
  return hn::And(hn::BitCast(d, hn::ShiftRight<31>(code)), term);
}
template <bool kOnes>
HWY_INLINE hn::Vec<Floats<kLanes>> term_sum(Terms& at, int64_t terms, const float* quotients) {
  auto sum = next_term(at, quotients);
  if constexpr (!kOnes)
    for (int64_t t = 1; t < terms; ++t) sum = hn::Add(sum, next_term(at, quotients));
  return sum;
}

template <bool kOnes, class E>
HWY_NOINLINE void put_terms(const E& codec, const PoolTerms& all, const float* quotients, int64_t windows,
                            int64_t results, std::byte* out) {
  const Floats<kLanes> d;
  const E elements = codec;
  const PoolTerms listed = all;
  for (; results > 0; results -= listed.vectors * kLanes, quotients += listed.volumes * windows) {
    Terms at{listed.lanes, listed.from};
    const int32_t* count = listed.counts;
    const int32_t* const end = count + HWY_MIN(listed.vectors, results / kLanes);
    for (; count != end; ++count, out += kLanes * E::kBytes)
      elements.store(term_sum<kOnes>(at, *count, quotients), d, out);
    const int64_t left = results % kLanes;
    if (results >= listed.vectors * kLanes || left == 0) continue;
    // The last volumes do not fill the list.
    HWY_ALIGN std::array<float, kLanes> last;
    hn::Store(term_sum<kOnes>(at, *count, quotients), d, last.data());
    in_vectors(left, [&](auto tag, int64_t i) {
      elements.store(load(tag, last.data() + i), tag, out + i * E::kBytes);
    });
  }
}

void put_listed(const PoolVolumes& p, const float* quotients, int64_t count, std::byte* out) {
  const int64_t windows = p.depth_windows * p.row_windows * p.y, results = count * p.depths * p.rows * p.x;
  with_pool_elements(p.out.dtype, [&](auto elements) {
    p.listed.ones ? put_terms<true>(elements, p.listed, quotients, windows, results, out)
                  : put_terms<false>(elements, p.listed, quotients, windows, results, out);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
