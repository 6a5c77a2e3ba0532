// SPDX-License-Identifier: Apache-2.0
// Translating CUDA's errors.
#include "runtime/cuda/cuda_status.h"

#include <fmt/format.h>

namespace retrograd::runtime {
namespace {

Code code_of(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return Code::kOk;
    case cudaErrorMemoryAllocation:
      return Code::kOutOfMemory;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorInitializationError:
    case cudaErrorDevicesUnavailable:
      return Code::kNoDevice;
    default:
      return Code::kInternal;
  }
}

}  // namespace

Status cuda_status(cudaError_t error, const std::string& call) {
  if (error == cudaSuccess) return Status::ok();
  static_cast<void>(cudaGetLastError());
  return Status(code_of(error), "{}: {} ({})", call, cudaGetErrorString(error), cudaGetErrorName(error));
}

DeviceGuard::DeviceGuard(int device) : device_(device) {
  int current = -1;
  error_ = cudaGetDevice(&current);
  if (error_ != cudaSuccess || current == device) return;
  error_ = cudaSetDevice(device);
  if (error_ == cudaSuccess) before_ = current;
}

DeviceGuard::~DeviceGuard() {
  if (before_ >= 0) static_cast<void>(cudaSetDevice(before_));
}

Status DeviceGuard::status() const {
  if (error_ == cudaSuccess) return Status::ok();
  return cuda_status(error_, fmt::format("cudaSetDevice({})", device_));
}

}  // namespace retrograd::runtime
