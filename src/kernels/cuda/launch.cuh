// SPDX-License-Identifier: Apache-2.0
// Launches: from a DType known at run time to a type of the compiler, and kernels started with sizes as they
// were counted and addresses as tensors have them.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/one_of.h"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// Calls function(T{}) with float, __half or __nv_bfloat16; nothing for other types.
template <class Function>
void with_type(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::kF32:
      return function(float{});
    case DType::kF16:
      return function(__half{});
    case DType::kBF16:
      return function(__nv_bfloat16{});
    case DType::kHiF8:
    case DType::kE4M3:
      return;
  }
}

// The same of half types: __nv_bfloat16 for others than FP16.
template <class Function>
decltype(auto) with_half(DType dtype, Function&& function) {
  return dtype == DType::kF16 ? function(__half{}) : function(__nv_bfloat16{});
}

// Of a grid or of a block.
struct Extent {
  Extent(int64_t x, int64_t y = 1, int64_t z = 1)
      : size(static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(z)) {}
  dim3 size;
};

// An argument as a kernel's parameter; addresses of any type of elements.
template <class Parameter, class Argument>
decltype(auto) as(const Argument& argument) {
  if constexpr (std::is_same_v<Parameter, Argument>)
    return (argument);
  else
    return static_cast<Parameter>(argument);
}

// shared_bytes: beside a kernel's own arrays, of which none has more than 17 KiB. More than 48 in all has to
// be asked for.
template <class... Parameters, class... Arguments>
void start(void (*kernel)(Parameters...), const Extent& blocks, const Extent& threads, int64_t shared_bytes,
           Stream stream, const Arguments&... arguments) {
  if (shared_bytes > 31 << 10)
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
  kernel<<<blocks.size, threads.size, static_cast<size_t>(shared_bytes), stream>>>(
      as<Parameters>(arguments)...);
}

}  // namespace retrograd::kernels::cuda
