// SPDX-License-Identifier: Apache-2.0
// Interleaving, once for every instruction set.
#include "kernels/cpu/interleave.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/interleave.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/targets.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Whole vectors of D from pair i on; returns the first pair that is left.
template <class D>
HWY_INLINE int64_t in_vectors_of(D d, const float* even, const float* odd, float* out, int64_t i,
                                 int64_t pairs) {
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  for (; i + n <= pairs; i += n)
    hn::StoreInterleaved2(hn::LoadU(d, even + i), hn::LoadU(d, odd + i), d, out + 2 * i);
  return i;
}

// memcpy: callers hand over rows of tensors, which may start at any byte.
void interleave(const float* even, const float* odd, float* out, int64_t pairs) {
  int64_t i = in_vectors_of(hn::ScalableTag<float>(), even, odd, out, 0, pairs);
  i = in_vectors_of(hn::CappedTag<float, 4>(), even, odd, out, i, pairs);
  for (; i < pairs; ++i) {
    std::memcpy(out + 2 * i, even + i, sizeof(float));
    std::memcpy(out + 2 * i + 1, odd + i, sizeof(float));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {
namespace {

HWY_EXPORT(interleave);

using Interleave = void (*)(const float*, const float*, float*, int64_t);

}  // namespace

void interleave(const float* even, const float* odd, float* out, int64_t pairs) {
  static const Interleave chosen = RG_CHOSEN(interleave);
  chosen(even, odd, out, pairs);
}

}  // namespace retrograd::kernels::cpu
#endif
