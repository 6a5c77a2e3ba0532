// SPDX-License-Identifier: Apache-2.0
// Several neighbouring elements moved at once.
#pragma once

#include "kernels/cuda/elements.cuh"

namespace retrograd::kernels::cuda {

template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T values[kCount];
};

template <class T, int kCount>
__device__ void load_pack(const T* address, float (&values)[kCount]) {
  const auto pack = *reinterpret_cast<const Pack<T, kCount>*>(address);
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = to_float(pack.values[i]);
}

template <class T, int kCount>
__device__ void store_pack(T* address, const float (&values)[kCount]) {
  Pack<T, kCount> pack;
#pragma unroll
  for (int i = 0; i < kCount; ++i) pack.values[i] = from_float<T>(values[i]);
  *reinterpret_cast<Pack<T, kCount>*>(address) = pack;
}

}  // namespace retrograd::kernels::cuda
