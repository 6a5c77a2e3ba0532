// SPDX-License-Identifier: Apache-2.0
// From a DType known at run time to a type of the compiler: the three that kernels are written for.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "base/dtype.h"

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

}  // namespace retrograd::kernels::cuda
