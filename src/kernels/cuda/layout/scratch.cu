// SPDX-License-Identifier: Apache-2.0
// A pool of CUDA's for each device. It keeps a little, so that a loop does not ask the driver every time.
#include <array>
#include <mutex>

#include "kernels/cuda/layout/scratch.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr uint64_t kKept = uint64_t{256} << 20;

// Null where the device has no pools. Never destroyed: streams may outlive static destructors.
cudaMemPool_t pool_of_device() {
  static auto& mutex = *new std::mutex;
  static auto& pools = *new std::array<cudaMemPool_t, 64>{};
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess || device >= static_cast<int>(pools.size())) return nullptr;
  const std::lock_guard lock(mutex);
  cudaMemPool_t& pool = pools[static_cast<size_t>(device)];
  if (pool != nullptr) return pool;
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = device;
  uint64_t kept = kKept;
  if (cudaMemPoolCreate(&pool, &properties) != cudaSuccess)
    pool = nullptr;
  else
    cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept);
  return pool;
}

}  // namespace

void* take_scratch(size_t bytes, Stream stream) {
  const cudaMemPool_t pool = pool_of_device();
  void* scratch = nullptr;
  if (pool != nullptr && cudaMallocFromPoolAsync(&scratch, bytes, pool, stream) == cudaSuccess)
    return scratch;
  cudaGetLastError();  // the launches that follow are judged by it
  return nullptr;
}

void give_back_scratch(void* scratch, Stream stream) { cudaFreeAsync(scratch, stream); }

void copy_bytes(void* target, const void* source, size_t bytes, Stream stream) {
  cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, stream);
}

void clear_bytes(void* target, size_t bytes, Stream stream) { cudaMemsetAsync(target, 0, bytes, stream); }

}  // namespace retrograd::kernels::cuda
