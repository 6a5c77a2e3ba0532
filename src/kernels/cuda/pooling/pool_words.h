// SPDX-License-Identifier: Apache-2.0
// 16 bytes of a tensor as the registers see them. Elements of 16 bits would be taken out of their registers
// as soon as they are there, and each load be waited for before the next one begins.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/host_device.h"
#ifdef __CUDACC__
#include "kernels/cuda/copy_async.cuh"
#endif

namespace retrograd::kernels::cuda {

struct alignas(16) PoolWords {
  uint32_t values[4];
};

// To shared memory, both at multiples of 16 bytes; there once the copies were waited for.
RG_DEVICE inline void copy_words(void* shared, const void* tensor) {
#ifdef __CUDACC__
  copy_async_16(shared, tensor);
#else
  memcpy(shared, tensor, sizeof(PoolWords));
#endif
}

// To L2, for a load that comes later.
RG_DEVICE inline void prefetch_words(const void* tensor) {
#ifdef __CUDACC__
  asm volatile("prefetch.global.L2 [%0];" ::"l"(tensor));
#else
  (void)tensor;
#endif
}

}  // namespace retrograd::kernels::cuda
