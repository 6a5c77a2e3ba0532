// SPDX-License-Identifier: Apache-2.0
// Channels of an image in shared memory as FP32.
#pragma once

#include "kernels/cuda/formulas.cuh"
#include "kernels/cuda/small_images.h"

namespace retrograd::kernels::cuda {

// Calls function(T{}) with the type of the elements; every thread takes the same branch.
template <class Function>
__device__ void with_element(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::kF32:
      return function(float{});
    case DType::kF16:
      return function(__half{});
    case DType::kBF16:
      return function(__nv_bfloat16{});
    case DType::kHiF8:
      return function(HiF8{});
    case DType::kE4M3:
      return function(E4M3{});
  }
}

// `count` elements, kBatch of a thread under way at once: put(channel, place, value) for the element at
// where(channel) and its place's strides.
template <int kBatch, class Where, class Put>
__device__ void stage_run(const Tensor& tensor, OperandRounding rounding, const SmallRun& run, int count,
                          Where&& where, Put&& put) {
  with_element(tensor.dtype, [&](auto type) {
    using T = decltype(type);
    const T* const source = static_cast<const T*>(tensor.data);
    for (int begin = static_cast<int>(threadIdx.x); begin < count; begin += kBatch * kSmallThreads) {
      T values[kBatch];
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        uint32_t column = static_cast<uint32_t>(min(begin + j * kSmallThreads, count - 1));
        const uint32_t channel = run.places.split(column);
        uint32_t row = run.columns.split(column);
        const uint32_t depth = run.rows.split(row);
        values[j] = source[where(static_cast<int>(channel)) + depth * tensor.strides[2] +
                           row * tensor.strides[3] + column * tensor.strides[4]];
      }
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        const int i = begin + j * kSmallThreads;
        if (i >= count) break;
        uint32_t place = static_cast<uint32_t>(i);
        const auto channel = static_cast<int>(run.places.split(place));
        put(channel, static_cast<int>(place), round_operand(rounding, to_float(values[j])));
      }
    }
  });
}

// −1: none
__device__ inline int small_output_reading(const SmallAxis& a, int index, int tap) {
  const int scaled = index + a.pad - tap * a.dilation;
  if (a.stride == 1) return scaled >= 0 && scaled < a.y ? scaled : -1;
  if (scaled < 0 || scaled % a.stride != 0) return -1;
  const int output = scaled / a.stride;
  return output < a.y ? output : -1;
}

}  // namespace retrograd::kernels::cuda
