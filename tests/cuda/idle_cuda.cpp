// SPDX-License-Identifier: Apache-2.0
// The functions that objects of src/kernels call, and the rules of each. Those of src/runtime are in
// idle_cuda_absent.cpp.
#include "idle_cuda.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>

#include "launch_bounds.h"

namespace retrograd::test::idle_cuda {
namespace {

constexpr int64_t kWithoutAsking = 48 << 10;  // bytes of shared memory that every kernel may have
constexpr uintptr_t kScratch = uintptr_t{0x60} << 40;

struct Configuration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};

struct State {
  Watch watch;
  std::unordered_map<const void*, int64_t> allowed;  // bytes of shared memory, by kernel
  std::map<uintptr_t, size_t> scratch;
  uintptr_t next_scratch = kScratch;
  std::vector<std::string> complaints;
  std::vector<Configuration> configurations;  // of launches that have begun
  int64_t launches = 0;
};
State& state() {
  static State instance;
  return instance;
}

// Filled before main().
std::unordered_map<const void*, std::string>& kernel_names() {
  static std::unordered_map<const void*, std::string> names;
  return names;
}

// Of the container that was registered last, by name; of all kernels.
std::unordered_map<std::string, int>& bounds_by_name() {
  static std::unordered_map<std::string, int> bounds;
  return bounds;
}
std::unordered_map<const void*, int>& kernel_bounds() {
  static std::unordered_map<const void*, int> bounds;
  return bounds;
}

// Without arguments and our namespace.
std::string readable(const std::string& mangled) {
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, nullptr), std::free);
  std::string name = text != nullptr ? text.get() : mangled;
  for (const std::string_view part :
       {"retrograd::kernels::cuda::", "(anonymous namespace)::", "__nv_internal_"})
    for (size_t at = name.find(part); at != std::string::npos; at = name.find(part))
      name.erase(at, part.size());
  return name;
}
std::string name_of(const void* kernel) {
  const auto found = kernel_names().find(kernel);
  return found == kernel_names().end() ? "a function that is no kernel" : readable(found->second);
}

template <class... Values>
void complain(const std::string& who, fmt::format_string<Values...> rule, Values&&... values) {
  state().complaints.push_back(who + ": " + fmt::format(rule, std::forward<Values>(values)...));
}

void check_stream(const std::string& who, const void* stream) {
  if (stream != state().watch.stream) complain(who, "runs on another stream than the caller's");
}

void check_launch(const void* kernel, const Configuration& c, const dim3& cluster) {
  ++state().launches;
  const GpuFacts& gpu = state().watch.gpu;
  const std::string name = name_of(kernel);
  if (!kernel_names().contains(kernel)) complain(name, "was not registered");
  check_stream(name, c.stream);

  const dim3 &g = c.grid, &b = c.block;
  if (g.x < 1 || g.y < 1 || g.z < 1 || g.x > 0x7FFFFFFF || g.y > 65535 || g.z > 65535)
    complain(name, "a grid of {} x {} x {}, from 1 to 2^31 - 1 x 65535 x 65535 are possible", g.x, g.y, g.z);
  if (b.x < 1 || b.y < 1 || b.z < 1 || b.x > 1024 || b.y > 1024 || b.z > 64 ||
      uint64_t{b.x} * b.y * b.z > 1024)
    complain(name, "blocks of {} x {} x {}, from 1 to 1024 x 1024 x 64 and 1024 together are possible", b.x,
             b.y, b.z);

  if (const auto bound = kernel_bounds().find(kernel);
      bound != kernel_bounds().end() && uint64_t{b.x} * b.y * b.z > static_cast<uint64_t>(bound->second))
    complain(name, "blocks of {} x {} x {}, its __launch_bounds__ are {}", b.x, b.y, b.z, bound->second);

  const auto shared = static_cast<int64_t>(c.shared);
  const auto allowed = state().allowed.find(kernel);
  const int64_t most =
      allowed == state().allowed.end() ? kWithoutAsking : std::max(kWithoutAsking, allowed->second);
  if (shared > gpu.shared_bytes)
    complain(name, "{} bytes of shared memory, the GPU has {}", shared, gpu.shared_bytes);
  else if (shared > most)
    complain(name, "{} bytes of shared memory, its attribute allows {}", shared, most);

  const uint64_t of_cluster = uint64_t{cluster.x} * cluster.y * cluster.z;
  if (of_cluster == 1) return;
  if (gpu.architecture < 90)
    complain(name, "clusters, which compute capability {}.{} has not", gpu.architecture / 10,
             gpu.architecture % 10);
  if (of_cluster < 1 || of_cluster > 8)
    complain(name, "clusters of {} blocks, from 1 to 8 are possible", of_cluster);
  else if (g.x % cluster.x != 0 || g.y % cluster.y != 0 || g.z % cluster.z != 0)
    complain(name, "clusters of {} x {} x {} do not divide a grid of {} x {} x {}", cluster.x, cluster.y,
             cluster.z, g.x, g.y, g.z);
}

// Operands, the workspace, scratch memory.
void check_room(const std::string& who, const void* data, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const auto holds = [&](const Room& room) {
    return begin >= room.begin && bytes <= room.bytes && begin - room.begin <= room.bytes - bytes;
  };
  if (bytes == 0 || std::any_of(state().watch.rooms.begin(), state().watch.rooms.end(), holds)) return;
  for (const auto& [at, size] : state().scratch)
    if (holds({at, size})) return;
  complain(who, "{} bytes at {}, which are outside of operands, workspace and scratch memory", bytes, data);
}

int64_t size_of_element(CUtensorMapDataType type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
      return 2;
    default:
      return 4;
  }
}
// What is side by side in shared memory.
int64_t row_limit(CUtensorMapSwizzle swizzle) {
  return swizzle == CU_TENSOR_MAP_SWIZZLE_32B ? 32 : swizzle == CU_TENSOR_MAP_SWIZZLE_64B ? 64 : 128;
}

// What both kinds of maps obey. row: elements side by side.
CUresult check_map(const char* who, CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                   const void* data, const cuuint64_t* sizes, const cuuint64_t* strides,
                   const cuuint32_t* steps, cuuint32_t row, CUtensorMapSwizzle swizzle) {
  const GpuFacts& gpu = state().watch.gpu;
  if (gpu.architecture < 90)
    complain(who, "tensor maps, which compute capability {}.{} has not", gpu.architecture / 10,
             gpu.architecture % 10);
  if (reinterpret_cast<uintptr_t>(map) % 64 != 0) complain(who, "the map is not at a multiple of 64 bytes");
  if (reinterpret_cast<uintptr_t>(data) % 16 != 0) complain(who, "data at {}, no multiple of 16 bytes", data);
  for (const cuuint64_t size : std::span(sizes, rank))
    if (size < 1 || size > uint64_t{1} << 32) complain(who, "size {}, from 1 to 2^32 are possible", size);
  for (const cuuint64_t stride : std::span(strides, rank - 1))
    if (stride % 16 != 0 || stride >= uint64_t{1} << 40)
      complain(who, "stride of {} bytes, multiples of 16 below 2^40 are possible", stride);
  for (const cuuint32_t step : std::span(steps, rank))
    if (step < 1 || step > 8) complain(who, "step {}, from 1 to 8 are possible", step);
  const int64_t bytes = row * size_of_element(type);
  if (bytes % 16 != 0 || bytes > row_limit(swizzle))
    complain(who, "rows of {} bytes, multiples of 16 up to {} are possible", bytes, row_limit(swizzle));
  if (state().watch.declines) return CUDA_ERROR_INVALID_VALUE;
  std::memset(map, 0, sizeof *map);
  return CUDA_SUCCESS;
}

CUresult encode_tiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* data,
                      const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                      const cuuint32_t* steps, CUtensorMapInterleave, CUtensorMapSwizzle swizzle,
                      CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  constexpr auto kName = "cuTensorMapEncodeTiled";
  if (rank < 1 || rank > 5) {
    complain(kName, "{} axes, from 1 to 5 are possible", rank);
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (const cuuint32_t side : std::span(box, rank))
    if (side < 1 || side > 256) complain(kName, "box of {}, from 1 to 256 are possible", side);
  return check_map(kName, map, type, rank, data, sizes, strides, steps, box[0], swizzle);
}

CUresult encode_im2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* data,
                       const cuuint64_t* sizes, const cuuint64_t* strides, const int* lower, const int* upper,
                       cuuint32_t channels, cuuint32_t places, const cuuint32_t* steps, CUtensorMapInterleave,
                       CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  constexpr auto kName = "cuTensorMapEncodeIm2col";
  if (rank < 3 || rank > 5) {
    complain(kName, "{} axes, from 3 to 5 are possible", rank);
    return CUDA_ERROR_INVALID_VALUE;
  }
  // All corners have 16 bits together.
  const int end = 1 << (16 / (rank - 2) - 1);
  for (const int* const corners : {lower, upper})
    for (const int corner : std::span(corners, rank - 2))
      if (corner < -end || corner >= end)
        complain(kName, "corner {} of {} axes, from {} to {} are possible", corner, rank, -end, end - 1);
  if (channels < 1 || channels > 256 || places < 1 || places > 1024)
    complain(kName, "{} channels of {} places, up to 256 and 1024 are possible", channels, places);
  return check_map(kName, map, type, rank, data, sizes, strides, steps, channels, swizzle);
}

}  // namespace

void begin(const Watch& watch) {
  State& s = state();
  s.watch = watch;
  s.allowed.clear();
  s.scratch.clear();
  s.next_scratch = kScratch;
  s.complaints.clear();
  s.configurations.clear();
}

std::vector<std::string> complaints() {
  std::vector<std::string> all = state().complaints;
  if (!state().scratch.empty()) all.push_back("cudaMallocFromPoolAsync: scratch memory that nobody frees");
  return all;
}

const std::unordered_map<const void*, int>& bounds() { return kernel_bounds(); }
int64_t launches() { return state().launches; }

}  // namespace retrograd::test::idle_cuda

using retrograd::test::idle_cuda::bounds_by_name;
using retrograd::test::idle_cuda::check_launch;
using retrograd::test::idle_cuda::check_room;
using retrograd::test::idle_cuda::check_stream;
using retrograd::test::idle_cuda::complain;
using retrograd::test::idle_cuda::kernel_bounds;
using retrograd::test::idle_cuda::kernel_names;
using retrograd::test::idle_cuda::state;

extern "C" {

// What compiled kernels register themselves with, and what <<<…>>> becomes. Only nvcc's own headers declare
// these.
void** __cudaRegisterFatBinary(void* binary);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* function, char* in_device, const char* name, int limit,
                            uint3* thread, uint3* block, dim3* block_size, dim3* grid_size, int* warp_size);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream);
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                               cudaStream_t stream);

void** __cudaRegisterFatBinary(void* binary) {
  static void* handle = nullptr;
  bounds_by_name() = retrograd::test::idle_cuda::launch_bounds(binary);
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void** /*handle*/) {}
void __cudaUnregisterFatBinary(void** /*handle*/) {}
void __cudaRegisterFunction(void** /*handle*/, const char* function, char* /*in_device*/, const char* name,
                            int /*limit*/, uint3* /*thread*/, uint3* /*block*/, dim3* /*block_size*/,
                            dim3* /*grid_size*/, int* /*warp_size*/) {
  kernel_names()[function] = name;
  if (const auto found = bounds_by_name().find(name); found != bounds_by_name().end())
    kernel_bounds()[function] = found->second;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  state().configurations.push_back({grid, block, shared, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  const auto last = state().configurations.back();
  state().configurations.pop_back();
  *grid = last.grid, *block = last.block, *shared = last.shared;
  *static_cast<cudaStream_t*>(stream) = last.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** /*arguments*/,
                               size_t shared, cudaStream_t stream) {
  check_launch(kernel, {grid, block, shared, stream}, {1, 1, 1});
  return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** /*arguments*/, size_t shared,
                             cudaStream_t stream) {
  check_launch(kernel, {grid, block, shared, stream}, {1, 1, 1});
  return cudaSuccess;
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** /*arguments*/) {
  dim3 cluster(1, 1, 1);
  for (const cudaLaunchAttribute& attribute : std::span(config->attrs, config->numAttrs))
    if (attribute.id == cudaLaunchAttributeClusterDimension)
      cluster = {attribute.val.clusterDim.x, attribute.val.clusterDim.y, attribute.val.clusterDim.z};
  check_launch(kernel, {config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream},
               cluster);
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  // A real runtime then leaves the attribute as it was: the launch that follows breaks a rule.
  if (value <= state().watch.gpu.shared_bytes) state().allowed[kernel] = value;
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* target, int /*value*/, size_t bytes, cudaStream_t stream) {
  check_stream("cudaMemsetAsync", stream);
  check_room("cudaMemsetAsync", target, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind /*kind*/,
                            cudaStream_t stream) {
  check_stream("cudaMemcpyAsync", stream);
  check_room("cudaMemcpyAsync to", target, bytes);
  check_room("cudaMemcpyAsync from", source, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* /*properties*/) {
  *pool = reinterpret_cast<cudaMemPool_t>(&state());
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t /*pool*/, cudaMemPoolAttr /*attribute*/, void* /*value*/) {
  return cudaSuccess;
}
cudaError_t cudaMallocFromPoolAsync(void** data, size_t bytes, cudaMemPool_t /*pool*/, cudaStream_t stream) {
  check_stream("cudaMallocFromPoolAsync", stream);
  if (state().watch.declines) return cudaErrorMemoryAllocation;
  *data = reinterpret_cast<void*>(state().next_scratch);
  state().scratch[state().next_scratch] = bytes;
  state().next_scratch += (bytes + 255) / 256 * 256;
  return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* data, cudaStream_t stream) {
  check_stream("cudaFreeAsync", stream);
  if (state().scratch.erase(reinterpret_cast<uintptr_t>(data)) == 0)
    complain("cudaFreeAsync", "{} is no scratch memory", data);
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int /*device*/) {
  *value = attribute == cudaDevAttrMultiProcessorCount ? state().watch.gpu.multiprocessors : 0;
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned /*version*/,
                                             unsigned long long /*flags*/,
                                             cudaDriverEntryPointQueryResult* result) {
  using namespace retrograd::test::idle_cuda;
  *function = std::string_view(name) == "cuTensorMapEncodeTiled"    ? reinterpret_cast<void*>(&encode_tiled)
              : std::string_view(name) == "cuTensorMapEncodeIm2col" ? reinterpret_cast<void*>(&encode_im2col)
                                                                    : nullptr;
  if (result != nullptr)
    *result = *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

}  // extern "C"
