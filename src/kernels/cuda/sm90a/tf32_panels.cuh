// SPDX-License-Identifier: Apache-2.0
// TF32 products of a warpgroup whose left factor is in registers, which saves reading it from shared memory
// for every product and lets it be made there.
#pragma once

#include "kernels/cuda/dense/wgmma.cuh"

namespace retrograd::kernels::cuda::hopper {

#define RG_REGISTERS_56 RG_FIRST_10 RG_TEN(1) RG_TEN(2) RG_TEN(3) RG_TEN(4) "%50, %51, %52, %53, %54, %55"
#define RG_SUMS_56 RG_SUMS_48, RG_F8(48)

// n columns in `count` registers; the left factor, the right one and whether to add are the operands behind
// them.
#define RG_PANEL(n, count, a0, a1, a2, a3, b_at, p_at)                                          \
  if constexpr (kColumns == n)                                                                  \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %" #p_at                                   \
               ", 0;\n"                                                                         \
               "wgmma.mma_async.sync.aligned.m64n" #n "k8.f32.tf32.tf32 {" RG_REGISTERS_##count \
               "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #b_at ", add, 1, 1;\n}"         \
               : RG_SUMS_##count                                                                \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(add)))

// sums = a·b, plus the sums where add: 64 rows by kColumns, eight terms. Of a, thread t has row t/32·16 +
// t%32/4, terms t%4 and t%4 + 4 in a[0] and a[2]; of the row eight further in a[1] and a[3].
template <int kColumns>
__device__ inline void multiply_panel(float (&d)[kColumns / 2], const uint32_t (&a)[4], uint64_t b,
                                      bool add) {
  static_assert(kColumns == 64 || kColumns == 112 || kColumns == 128 || kColumns == 160);
  RG_PANEL(64, 32, 32, 33, 34, 35, 36, 37);
  RG_PANEL(112, 56, 56, 57, 58, 59, 60, 61);
  RG_PANEL(128, 64, 64, 65, 66, 67, 68, 69);
  RG_PANEL(160, 80, 80, 81, 82, 83, 84, 85);
}

#undef RG_PANEL

// What this thread wrote to shared memory is seen by products of whoever learns of it through a barrier.
__device__ inline void show_to_products() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

}  // namespace retrograd::kernels::cuda::hopper
