// SPDX-License-Identifier: Apache-2.0
// Launching, copying and waiting on a cudaStream_t.
#include "runtime/cuda/cuda_stream.h"

#include <fmt/format.h>

#include <cstring>
#include <new>
#include <thread>

#include "runtime/cuda/cuda_event.h"
#include "runtime/cuda/cuda_status.h"
#include "runtime/device.h"

namespace retrograd::runtime {
namespace {

// Pageable memory of the host, which a GPU's fill cannot reach.
bool is_pageable(const void* address) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, address) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  return attributes.type == cudaMemoryTypeUnregistered;
}

}  // namespace

Result<std::shared_ptr<Stream>> CudaStream::create(Device& device) {
  const DeviceGuard guard(device.index());
  RG_CHECK(guard.status());
  cudaStream_t stream = nullptr;
  RG_CUDA(cudaStreamCreate(&stream), fmt::format("cudaStreamCreate on {}", device.label()));
  try {
    return std::shared_ptr<Stream>(std::make_shared<CudaStream>(device, stream, Ownership::kOwned));
  } catch (const std::bad_alloc&) {
    static_cast<void>(cudaStreamDestroy(stream));
    return Status(Code::kOutOfMemory, "no memory for a stream of {}", device.label());
  }
}

CudaStream::CudaStream(Device& device, cudaStream_t stream, Ownership ownership)
    : device_(device), stream_(stream), ownership_(ownership) {}

CudaStream::~CudaStream() {
  if (ownership_ == Ownership::kForeign) return;
  const DeviceGuard guard(device_.index());
  if (cudaStreamDestroy(stream_) != cudaSuccess) static_cast<void>(cudaGetLastError());
}

Status CudaStream::submit(Task task) {
  if (!task) return Status(Code::kNullArgument, "the task is empty");
  const DeviceGuard guard(device_.index());
  RG_CHECK(guard.status());
  // A caller's own failure, left in the thread's last error, is not ours.
  static_cast<void>(cudaGetLastError());
  ExecutionContext context{.native_stream = stream_};
  task(context);
  RG_CUDA(cudaGetLastError(), fmt::format("launching on {}", device_.label()));
  return Status::ok();
}

Status CudaStream::synchronize(std::chrono::milliseconds timeout) {
  const DeviceGuard guard(device_.index());
  RG_CHECK(guard.status());
  if (timeout == kForever) {
    RG_CUDA(cudaStreamSynchronize(stream_), fmt::format("cudaStreamSynchronize on {}", device_.label()));
    return Status::ok();
  }
  const auto begin = std::chrono::steady_clock::now();
  while (true) {
    const cudaError_t error = cudaStreamQuery(stream_);
    if (error != cudaErrorNotReady) {
      RG_CUDA(error, fmt::format("cudaStreamQuery on {}", device_.label()));
      return Status::ok();
    }
    static_cast<void>(cudaGetLastError());
    if (std::chrono::steady_clock::now() - begin >= timeout)
      return Status(Code::kTimeout, "the stream was still busy after {} ms", timeout.count());
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

bool CudaStream::idle() const {
  const DeviceGuard guard(device_.index());
  const cudaError_t error = cudaStreamQuery(stream_);
  if (error == cudaErrorNotReady) static_cast<void>(cudaGetLastError());
  return error != cudaErrorNotReady;
}

Status CudaStream::record(std::shared_ptr<Event> event) {
  RG_TRY(const auto own, as_cuda_event(event));
  if (&own->device() != &device_)
    return Status(Code::kWrongDevice,
                  "the event is of {}, the stream of {}; an event is recorded on its own device",
                  own->device().label(), device_.label());
  return own->record_on(stream_);
}

Status CudaStream::wait(std::shared_ptr<Event> event) {
  RG_TRY(const auto own, as_cuda_event(event));
  if (own->state() == EventState::kUnrecorded) return Status::ok();
  const DeviceGuard guard(device_.index());
  RG_CHECK(guard.status());
  RG_CUDA(cudaStreamWaitEvent(stream_, own->native(), 0),
          fmt::format("cudaStreamWaitEvent on {}", device_.label()));
  return Status::ok();
}

Status CudaStream::copy(void* destination, const void* source, size_t bytes) {
  if (bytes == 0) return Status::ok();
  if (destination == nullptr) return {Code::kNullArgument, "the destination is null"};
  if (source == nullptr) return {Code::kNullArgument, "the source is null"};
  const DeviceGuard guard(device_.index());
  RG_CHECK(guard.status());
  RG_CUDA(cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDefault, stream_),
          fmt::format("cudaMemcpyAsync of {} bytes from {} to {} on {}", bytes, fmt::ptr(source),
                      fmt::ptr(destination), device_.label()));
  return Status::ok();
}

Status CudaStream::fill(void* destination, int value, size_t bytes) {
  if (bytes == 0) return Status::ok();
  if (destination == nullptr) return {Code::kNullArgument, "the destination is null"};
  const DeviceGuard guard(device_.index());
  RG_CHECK(guard.status());
  if (is_pageable(destination)) {
    RG_CHECK(synchronize(kForever));
    std::memset(destination, value, bytes);
    return Status::ok();
  }
  RG_CUDA(
      cudaMemsetAsync(destination, value, bytes, stream_),
      fmt::format("cudaMemsetAsync of {} bytes at {} on {}", bytes, fmt::ptr(destination), device_.label()));
  return Status::ok();
}

}  // namespace retrograd::runtime
