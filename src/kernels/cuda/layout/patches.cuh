// SPDX-License-Identifier: Apache-2.0
// What both kernels of patch rows read with: elements of x of every type, as FP32.
#pragma once

#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/layout/patch_columns.h"

namespace retrograd::kernels::cuda::patches {

struct Any {};  // a type that each load asks for
template <class S>
__device__ float read(const Patches& p, int64_t offset) {
  return round_operand(p.rounding, to_float(static_cast<const S*>(p.data)[offset]));
}
template <>
__device__ inline float read<Any>(const Patches& p, int64_t offset) {
  return round_operand(p.rounding, load_any(p.dtype, p.data, offset));
}

// Calls function(S{}, E{}) with the types of x and of the rows.
template <class Function>
void with_types(const Conv& conv, RowType type, Function&& function) {
  const auto of_rows = [&](auto row) {
    switch (conv.x.dtype) {
      case DType::kF32:
        return function(float{}, row);
      case DType::kF16:
        return function(__half{}, row);
      case DType::kBF16:
        return function(__nv_bfloat16{}, row);
      case DType::kHiF8:
      case DType::kE4M3:
        return function(Any{}, row);
    }
  };
  switch (type) {
    case RowType::kF16:
      return of_rows(__half{});
    case RowType::kBF16:
      return of_rows(__nv_bfloat16{});
    case RowType::kF32:
      return of_rows(float{});
  }
}

}  // namespace retrograd::kernels::cuda::patches
