// SPDX-License-Identifier: Apache-2.0
// cudaError_t as a Status whose message names the call, and the guard that makes a device current.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "base/status.h"

namespace retrograd::runtime {

// kOutOfMemory, kNoDevice, or kInternal for the rest; "cudaMalloc of 8 bytes on cuda:0: out of memory
// (cudaErrorMemoryAllocation)". Takes the error out of the thread's last error, where the next launch would
// find it; one that has ended the context stays and comes back with every call.
Status cuda_status(cudaError_t error, const std::string& call);

// Makes a device current on this thread, and the one before again at its end: callers have one of their own.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  Status status() const;

 private:
  int device_;
  int before_ = -1;  // -1: nothing to restore
  cudaError_t error_ = cudaSuccess;
};

}  // namespace retrograd::runtime

// RG_CUDA(cudaMemcpy(…), "cudaMemcpy of 8 bytes"); returns the failure from this function. The text is made
// only when it is needed.
#define RG_CUDA(expression, call)                                           \
  do {                                                                      \
    if (const cudaError_t rg_error = (expression); rg_error != cudaSuccess) \
      return ::retrograd::runtime::cuda_status(rg_error, call);             \
  } while (false)
