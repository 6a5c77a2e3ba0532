// SPDX-License-Identifier: Apache-2.0
// Which vectors a kernel is being compiled for: those of an instruction set, through Highway, or the eight
// floats of eight_lanes.h. RG_VECTORS is the namespace of their operations; what kernels would ask HWY_TARGET
// for is asked here. Included once for every instruction set.
#include "hwy/highway.h"

#ifndef RG_VECTORS
#define RG_EIGHT_LANES 0
#define RG_VECTORS hwy::HWY_NAMESPACE
#endif

#ifndef RG_VECTOR_BYTES
#define RG_VECTOR_BYTES (RG_EIGHT_LANES ? 32 : HWY_MAX_BYTES)
#define RG_VECTOR_FLOATS (RG_EIGHT_LANES ? 8 : static_cast<int>(HWY_LANES(float)))
// Loads that do not touch the lanes which they leave out.
#define RG_HAS_MASKED_LOADS (RG_EIGHT_LANES || (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2))
#define RG_HAS_FUSED_PRODUCTS (RG_HAS_MASKED_LOADS || HWY_ARCH_ARM_A64)
// Masks that cost nothing.
#define RG_HAS_AVX512 (!RG_EIGHT_LANES && HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3)
// More than one lane.
#define RG_HAS_LANES (RG_EIGHT_LANES || HWY_TARGET != HWY_SCALAR)
#endif
