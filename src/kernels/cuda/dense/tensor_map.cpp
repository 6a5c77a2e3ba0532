// SPDX-License-Identifier: Apache-2.0
// The driver's functions are found by name through the runtime, so that nothing links to the driver.
#include "kernels/cuda/dense/tensor_map.h"

#include <cuda_runtime_api.h>

namespace retrograd::kernels::cuda {
namespace {

template <class Function>
Function* find(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status{};
  if (cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &status) != cudaSuccess ||
      status != cudaDriverEntryPointSuccess)
    return nullptr;
  return reinterpret_cast<Function*>(function);
}

decltype(cuTensorMapEncodeTiled)* tiled() {
  static auto* const function = find<decltype(cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
  return function;
}
decltype(cuTensorMapEncodeIm2col)* im2col() {
  static auto* const function = find<decltype(cuTensorMapEncodeIm2col)>("cuTensorMapEncodeIm2col");
  return function;
}

CUtensorMapDataType data_type(MapType type) {
  return type == MapType::kF16    ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
         : type == MapType::kBF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                  : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
}
CUtensorMapSwizzle swizzle_of(int row_bytes) {
  return row_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
         : row_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                           : CU_TENSOR_MAP_SWIZZLE_32B;
}
uint64_t bytes_of(MapType type) { return type == MapType::kF32 ? 4 : 2; }

}  // namespace

bool make_map(const BoxMap& map, MapType type, const void* data, CUtensorMap* result) {
  const uint32_t steps[5] = {1, 1, 1, 1, 1};
  return tiled()(result, data_type(type), static_cast<uint32_t>(map.axes), const_cast<void*>(data), map.sizes,
                 map.strides, map.box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(map.row_bytes),
                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

bool make_map(const PlacesMap& map, MapType type, const void* data, CUtensorMap* result) {
  const int rank = map.axes + 2;
  uint64_t sizes[5] = {static_cast<uint64_t>(map.channels)}, strides[4] = {};
  uint64_t stride = static_cast<uint64_t>(map.channels) * bytes_of(type);
  int lower[3] = {}, upper[3] = {};
  uint32_t steps[5] = {1, 1, 1, 1, 1};
  for (int i = 0; i < map.axes; ++i) {
    sizes[i + 1] = static_cast<uint64_t>(map.sizes[i]);
    strides[i] = stride;
    stride *= sizes[i + 1];
    lower[i] = static_cast<int>(map.first[i]);
    upper[i] = static_cast<int>(upper_corner(map, i));
    steps[i + 1] = static_cast<uint32_t>(map.step[i]);
  }
  sizes[rank - 1] = static_cast<uint64_t>(map.batch);
  strides[rank - 2] = stride;
  const auto channels = static_cast<uint32_t>(static_cast<uint64_t>(map.row_bytes) / bytes_of(type));
  return im2col()(result, data_type(type), static_cast<uint32_t>(rank), const_cast<void*>(data), sizes,
                  strides, lower, upper, channels, map.places, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                  swizzle_of(map.row_bytes), CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

}  // namespace retrograd::kernels::cuda
