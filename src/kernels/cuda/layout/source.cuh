// SPDX-License-Identifier: Apache-2.0
// Elements of every type as FP32, rounded as the caller allows.
#pragma once

#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/layout/channel_rows.h"

namespace retrograd::kernels::cuda {

struct Any {};  // a type that each load asks for
template <class S>
__device__ float read(const Elements& source, int64_t offset) {
  return round_operand(source.rounding, to_float(static_cast<const S*>(source.data)[offset]));
}
template <>
__device__ inline float read<Any>(const Elements& source, int64_t offset) {
  return round_operand(source.rounding, load_any(source.dtype, source.data, offset));
}

// Calls function(S{}, E{}) with the types of what is read and of the rows that are written.
template <class Function>
void with_types(DType source, RowType rows, Function&& function) {
  with_type(dtype_of(rows), [&](auto row) {
    if (is_8bit(source)) return function(Any{}, row);
    with_type(source, [&](auto element) { function(element, row); });
  });
}

}  // namespace retrograd::kernels::cuda
