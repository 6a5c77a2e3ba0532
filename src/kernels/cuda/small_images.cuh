// SPDX-License-Identifier: Apache-2.0
// Sizes in 32 bits, and channels of an image in shared memory as FP32.
#pragma once

#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/formulas.cuh"

namespace retrograd::kernels::cuda {

constexpr int kSmallChannels = 8;   // that a thread takes at once
constexpr int kSmallThreads = 256;  // of a block

struct SmallAxis {
  int x, y, kernel, stride, dilation, pad;
};
// How a run of elements (channel, depth, row, column) is taken apart.
struct SmallRun {
  FastDiv places, rows, columns;  // of a channel, of a plane, of a row
};
struct SmallSizes {
  SmallAxis d, h, w;
  int x_places, y_places, taps;
  int x_channels, y_channels, chunks;  // of a group; chunks of kSmallChannels of the results' channels
  SmallRun of_x, of_y, of_w;
};

inline SmallSizes small_sizes(const Conv& conv, int64_t result_channels) {
  const auto narrow = [](const Axis& a) {
    return SmallAxis{static_cast<int>(a.x),      static_cast<int>(a.y),        static_cast<int>(a.kernel),
                     static_cast<int>(a.stride), static_cast<int>(a.dilation), static_cast<int>(a.pad)};
  };
  SmallSizes s;
  s.d = narrow(conv.axes[0]);
  s.h = narrow(conv.axes[1]);
  s.w = narrow(conv.axes[2]);
  s.x_places = s.d.x * s.h.x * s.w.x;
  s.y_places = s.d.y * s.h.y * s.w.y;
  s.taps = s.d.kernel * s.h.kernel * s.w.kernel;
  s.x_channels = static_cast<int>(conv.x_channels);
  s.y_channels = static_cast<int>(conv.y_channels);
  s.chunks = static_cast<int>((result_channels + kSmallChannels - 1) / kSmallChannels);
  s.of_x = {FastDiv(s.x_places), FastDiv(s.h.x), FastDiv(s.w.x)};
  s.of_y = {FastDiv(s.y_places), FastDiv(s.h.y), FastDiv(s.w.y)};
  s.of_w = {FastDiv(s.taps), FastDiv(s.h.kernel), FastDiv(s.w.kernel)};
  return s;
}

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
