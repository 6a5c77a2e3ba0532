// SPDX-License-Identifier: Apache-2.0
// Copies from global into shared memory that pass no register and are waited for together.
#pragma once

#include <cstdint>

namespace retrograd::kernels::cuda {

// Both addresses are multiples of 16.
__device__ inline void copy_async_16(void* shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                   static_cast<uint32_t>(__cvta_generic_to_shared(shared))),
               "l"(global)
               : "memory");
}
// Both addresses are multiples of 4.
__device__ inline void copy_async_4(void* shared, const void* global) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(
                   static_cast<uint32_t>(__cvta_generic_to_shared(shared))),
               "l"(global)
               : "memory");
}
// Copies of this thread since the last call are a group.
__device__ inline void close_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// For all groups but the last kPending.
template <int kPending>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
// For all of this thread's; a barrier makes them seen by the others.
__device__ inline void copy_async_wait() { asm volatile("cp.async.wait_all;" ::: "memory"); }

}  // namespace retrograd::kernels::cuda
