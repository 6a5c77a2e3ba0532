// SPDX-License-Identifier: Apache-2.0
// Lines of a tensor in shared memory as FP32.
#pragma once

#include "kernels/cuda/depthwise/depthwise_tile.cuh"
#include "kernels/cuda/fast_div.cuh"

namespace retrograd::kernels::cuda {

constexpr int kLinesAtOnce = 8;  // loads of a thread that are on their way together

// Calls store(i, load(i)) for the block's share of 0 to count: many loads first, then what they brought.
template <class Load, class Store>
__device__ void load_together(int count, Load&& load, Store&& store) {
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (int i0 = thread; i0 < count; i0 += kLinesAtOnce * threads) {
    float values[kLinesAtOnce];
#pragma unroll
    for (int j = 0; j < kLinesAtOnce; ++j)
      values[j] = i0 + j * threads < count ? load(i0 + j * threads) : 0.0f;
#pragma unroll
    for (int j = 0; j < kLinesAtOnce; ++j)
      if (i0 + j * threads < count) store(i0 + j * threads, values[j]);
  }
}

// line[i] = source[begin + i], zeros outside 0 to length; `thread` of `threads`.
template <class T>
__device__ void load_line(float* line, int count, const T* source, int begin, int length, int thread,
                          int threads) {
#pragma unroll 8
  for (int i = thread; i < count; i += threads)
    line[i] =
        static_cast<unsigned>(begin + i) < static_cast<unsigned>(length) ? to_float(source[begin + i]) : 0.0f;
}

// Zero outside 0 to length.
template <class T>
__device__ float load_inside(const T* line, int at, int length) {
  return static_cast<unsigned>(at) < static_cast<unsigned>(length) ? to_float(line[at]) : 0.0f;
}

}  // namespace retrograd::kernels::cuda
