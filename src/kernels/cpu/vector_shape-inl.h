// SPDX-License-Identifier: Apache-2.0
// The vectors of the instruction set that is compiled for. Included once for every one, after Highway.
#if defined(RETROGRAD_KERNELS_VECTOR_SHAPE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETROGRAD_KERNELS_VECTOR_SHAPE_INL_H_
#undef RETROGRAD_KERNELS_VECTOR_SHAPE_INL_H_
#else
#define RETROGRAD_KERNELS_VECTOR_SHAPE_INL_H_
#endif

#include "kernels/cpu/vector_shape.h"
#include "kernels/cpu/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {

// x86 has 16 vector registers before AVX-512. Vectors whose size only the processor knows have the most that
// Highway allows here: a rule that counts floats must ask hn::Lanes() there.
#if RG_EIGHT_LANES
constexpr VectorShape kShape = kPortableShape;
#else
constexpr VectorShape kShape{.floats = static_cast<int64_t>(HWY_LANES(float)),
                             .registers = HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3 ? 16 : 32,
                             .masked_loads = RG_HAS_MASKED_LOADS};
#endif

// For static_assert beside a kernel's own lanes.
constexpr bool has_lanes(size_t lanes, int64_t by_rule) { return static_cast<int64_t>(lanes) == by_rule; }

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
