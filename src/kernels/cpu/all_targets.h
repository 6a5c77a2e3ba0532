// SPDX-License-Identifier: Apache-2.0
// Compiles the kernel file that HWY_TARGET_INCLUDE names once for every instruction set, as Highway's
// foreach_target.h does, and once more with the vectors of eight_lanes.h. The file goes on as
//
//   #include "kernels/cpu/vectors.h"
//   namespace hn = RG_VECTORS;
//
// The additional pass needs a target that Highway has macros and a namespace for and that is not compiled
// otherwise: one of the two without vectors. Builds with RETROGRAD_ONE_TARGET, the sanitizers', do without
// it.
#ifndef RETROGRAD_KERNELS_CPU_ALL_TARGETS_H_
#define RETROGRAD_KERNELS_CPU_ALL_TARGETS_H_

#include "hwy/foreach_target.h"

#ifndef RETROGRAD_ONE_TARGET
#include "kernels/cpu/eight_lanes.h"

#undef HWY_ONCE
#define HWY_ONCE 0
#undef HWY_TARGET
#if HWY_STATIC_TARGET == HWY_EMU128
#define HWY_TARGET HWY_SCALAR
#define RG_EIGHT_LANES_NAMESPACE N_SCALAR
#else
#define HWY_TARGET HWY_EMU128
#define RG_EIGHT_LANES_NAMESPACE N_EMU128
#endif
#undef RG_EIGHT_LANES
#undef RG_VECTORS
#define RG_EIGHT_LANES 1
#define RG_VECTORS retrograd::kernels::cpu::eight_lanes
// As eight_lanes.h says: quick to compile where hardly anybody runs it.
#if HWY_ARCH_X86 && HWY_COMPILER_GCC_ACTUAL
#pragma GCC push_options
#pragma GCC optimize("O1")
#endif
#include HWY_TARGET_INCLUDE
#if HWY_ARCH_X86 && HWY_COMPILER_GCC_ACTUAL
#pragma GCC pop_options
#endif
#ifdef HWY_TARGET_TOGGLE
#undef HWY_TARGET_TOGGLE
#else
#define HWY_TARGET_TOGGLE
#endif
#undef RG_EIGHT_LANES
#undef RG_VECTORS
#define RG_EIGHT_LANES 0
#define RG_VECTORS hwy::HWY_NAMESPACE
#undef HWY_TARGET
#define HWY_TARGET HWY_STATIC_TARGET
#undef HWY_ONCE
#define HWY_ONCE 1
#endif

#endif
