// SPDX-License-Identifier: Apache-2.0
// Clusters of Hopper: blocks that run at the same time and read each other's shared memory. Addresses of
// shared memory are 32-bit numbers. Only for code compiled for sm_90a.
#pragma once

#include <cstdint>

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda::hopper {

// Starts blocks in clusters of so many.
template <class... Parameters>
void start_clusters(void (*kernel)(Parameters...), unsigned of_cluster, unsigned blocks, unsigned threads,
                    int shared_bytes, Stream stream, const Parameters&... parameters) {
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = of_cluster;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.dynamicSmemBytes = static_cast<size_t>(shared_bytes);
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = of_cluster > 1 ? 1 : 0;
  cudaLaunchKernelEx(&config, kernel, parameters...);
}

// All threads of all blocks; what they have written is there for the others.
__device__ inline void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// The same address in another block of the cluster.
__device__ inline uint32_t address_in(uint32_t address, int rank) {
  uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
  return there;
}
__device__ inline float2 load_pair_of_cluster(uint32_t address) {
  float2 pair;
  asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];"
               : "=f"(pair.x), "=f"(pair.y)
               : "r"(address)
               : "memory");
  return pair;
}
__device__ inline float4 load_four_of_cluster(uint32_t address) {
  float4 four;
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w)
               : "r"(address)
               : "memory");
  return four;
}
__device__ inline void store_four(uint32_t address, const float* four) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(four[0]), "f"(four[1]),
               "f"(four[2]), "f"(four[3])
               : "memory");
}
__device__ inline void store_pair(uint32_t address, const float2& pair) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(pair.x), "f"(pair.y) : "memory");
}

// What this thread has written to shared memory, also by cp.async, is there for warpgroup products.
__device__ inline void publish_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

}  // namespace retrograd::kernels::cuda::hopper
