// SPDX-License-Identifier: Apache-2.0
// Memory, streams and events of a GPU, and the list of GPUs.
#include "runtime/cuda/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/settings.h"
#include "runtime/cuda/cuda_event.h"
#include "runtime/cuda/cuda_status.h"
#include "runtime/cuda/cuda_stream.h"

namespace retrograd::runtime {

namespace {

// Nominal peaks of an architecture, in operations a cycle and multiprocessor. Tensor cores of Hopper run
// at 1.83 of the 1.98 GHz that are reported.
struct Peaks {
  int architecture;
  double fp32, f16, tf32;
};
constexpr Peaks kPeaks[] = {
    {80, 128, 2048, 1024}, {86, 256, 1024, 512},   {89, 256, 1024, 512},
    {90, 256, 3784, 1892}, {100, 256, 8192, 4096},
};

// Whether the driver describes tensors to the copy engine of Hopper GPUs.
bool has_tensor_maps() {
  for (const char* name : {"cuTensorMapEncodeTiled", "cuTensorMapEncodeIm2col"}) {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult status{};
    if (cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &status) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      return false;
    }
    if (status != cudaDriverEntryPointSuccess || function == nullptr) return false;
  }
  return true;
}

Machine describe(int index, int major, int minor) {
  const auto attribute = [&](cudaDeviceAttr name) {
    int value = 0;
    if (cudaDeviceGetAttribute(&value, name, index) != cudaSuccess) static_cast<void>(cudaGetLastError());
    return value;
  };
  Machine machine{
      .name = fmt::format("sm{}{}", major, minor), .kind = Machine::Kind::kGpu, .cpu = {}, .gpu = {}};
  GpuFacts& gpu = machine.gpu;
  gpu.architecture = major * 10 + minor;
  if (const int most = settings().cuda_architecture; most != 0)
    gpu.architecture = std::min(gpu.architecture, most);
  gpu.multiprocessors = attribute(cudaDevAttrMultiProcessorCount);
  gpu.shared_bytes = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  gpu.l2_bytes = attribute(cudaDevAttrL2CacheSize);
  const Peaks* peaks = &kPeaks[0];
  for (const Peaks& row : kPeaks)
    if (row.architecture <= gpu.architecture) peaks = &row;
  // kHz x multiprocessors x operations a cycle: 1e12 of them are a TFLOP/s.
  const double cycles = 1e3 * attribute(cudaDevAttrClockRate) * gpu.multiprocessors / 1e12;
  gpu.fp32_tflops = cycles * peaks->fp32;
  gpu.f16_tflops = cycles * peaks->f16;
  gpu.tf32_tflops = cycles * peaks->tf32;
  // Two transfers a clock on the width of the bus; a copy reaches about 85 % of it.
  gpu.copy_gbs = 0.85 * 2 * 1e3 * attribute(cudaDevAttrMemoryClockRate) *
                 attribute(cudaDevAttrGlobalMemoryBusWidth) / 8 / 1e9;
  // Without them it is what its kernels for other GPUs make of it.
  if (gpu.architecture == 90 && !has_tensor_maps()) gpu.architecture = 80;
  return machine;
}

}  // namespace

CudaDevice::CudaDevice(int index, int major, int minor)
    : Device(DeviceKind::kCuda, index),
      soc_name_(fmt::format("Retrograd-CUDA-sm{}{}", major, minor)),
      machine_(describe(index, major, minor)),
      null_stream_(std::make_shared<CudaStream>(*this, nullptr, CudaStream::Ownership::kForeign)) {}

Result<void*> CudaDevice::allocate(size_t bytes) {
  if (bytes == 0) return Status(Code::kInvalidArgument, "a block of 0 bytes was asked for; at least 1");
  const DeviceGuard guard(index());
  RG_CHECK(guard.status());
  void* address = nullptr;
  RG_CUDA(cudaMalloc(&address, bytes), fmt::format("cudaMalloc of {} bytes on {}", bytes, label()));
  return address;
}

void CudaDevice::deallocate(void* address) noexcept {
  const DeviceGuard guard(index());
  // At the end of the process the driver may be gone already, and the memory with it.
  if (cudaFree(address) != cudaSuccess) static_cast<void>(cudaGetLastError());
}

Result<void*> CudaDevice::allocate_host(size_t bytes) {
  if (bytes == 0) return Status(Code::kInvalidArgument, "a block of 0 bytes was asked for; at least 1");
  const DeviceGuard guard(index());
  RG_CHECK(guard.status());
  void* address = nullptr;
  RG_CUDA(cudaMallocHost(&address, bytes), fmt::format("cudaMallocHost of {} bytes for {}", bytes, label()));
  return address;
}

void CudaDevice::deallocate_host(void* address) noexcept {
  const DeviceGuard guard(index());
  if (cudaFreeHost(address) != cudaSuccess) static_cast<void>(cudaGetLastError());
}

Result<MemoryInfo> CudaDevice::memory_info() const {
  const DeviceGuard guard(index());
  RG_CHECK(guard.status());
  MemoryInfo info;
  RG_CUDA(cudaMemGetInfo(&info.free_bytes, &info.total_bytes), fmt::format("cudaMemGetInfo on {}", label()));
  return info;
}

Status CudaDevice::copy(void* destination, const void* source, size_t bytes) {
  RG_CHECK(null_stream_->copy(destination, source, bytes));
  return null_stream_->synchronize();
}

Status CudaDevice::fill(void* destination, int value, size_t bytes) {
  RG_CHECK(null_stream_->fill(destination, value, bytes));
  return null_stream_->synchronize();
}

Status CudaDevice::synchronize() {
  const DeviceGuard guard(index());
  RG_CHECK(guard.status());
  RG_CUDA(cudaDeviceSynchronize(), fmt::format("cudaDeviceSynchronize on {}", label()));
  return Status::ok();
}

Result<std::shared_ptr<Stream>> CudaDevice::create_stream() { return CudaStream::create(*this); }

Result<std::shared_ptr<Event>> CudaDevice::create_event(bool timing) {
  return CudaEvent::create(*this, timing);
}

std::shared_ptr<Stream> CudaDevice::adopt_stream(void* native) {
  if (native == nullptr) return null_stream_;
  std::lock_guard lock(mutex_);
  std::shared_ptr<Stream>& stream = adopted_[native];
  if (stream == nullptr)
    stream = std::make_shared<CudaStream>(*this, static_cast<cudaStream_t>(native),
                                          CudaStream::Ownership::kForeign);
  return stream;
}

std::vector<Device*> make_cuda_devices() {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    // No driver and no GPU are what most machines have, and nothing to warn about.
    const Status status = cuda_status(error, "cudaGetDeviceCount");
    if (error != cudaErrorNoDevice && error != cudaErrorInsufficientDriver) log::warn_once(status.message());
    return {};
  }
  std::vector<Device*> devices;
  for (int index = 0; index < count; ++index) {
    int major = 0, minor = 0;
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index) != cudaSuccess ||
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      break;
    }
    // Numbers stay those of the driver, so the first GPU that is too old ends the list.
    if (major < 8) {
      log::warn_once(
          fmt::format("GPU {} has compute capability {}.{}, expected 8.0 or more: it and those "
                      "after it are not used",
                      index, major, minor));
      break;
    }
    devices.push_back(new CudaDevice(index, major, minor));
  }
  return devices;
}

}  // namespace retrograd::runtime
