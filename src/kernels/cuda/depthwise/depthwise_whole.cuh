// SPDX-License-Identifier: Apache-2.0
// 32 whole planes in shared memory, as words of 4 bytes. A warp's threads take the same rows of different
// planes; the distance of planes is an odd number of words, so they read from different banks.
#pragma once

#include "kernels/cuda/copy_async.cuh"
#include "kernels/cuda/depthwise/depthwise_plan.h"
#include "kernels/cuda/pack.cuh"

namespace retrograd::kernels::cuda {

constexpr int kWholeRows = 2;                           // of a thread
constexpr int kWholeStrips = kWholeWidth / kWholeRows;  // threads of a plane
constexpr int kWholeThreads = kWholePlanes * kWholeStrips;

template <class T>
struct Whole {
  static constexpr int kOfWord = 4 / sizeof(T);
  static constexpr int kRowWords = kWholeWidth / kOfWord;
  static constexpr int kWords = kRowWords * kWholeWidth;
  static constexpr int kPitch = kWords + 1;
  static_assert(kWords % 2 == 0);

  // Plane i is at planes + i·distance elements.
  __device__ static void load(uint32_t* shared, const T* planes, int64_t distance, int count) {
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < count * kWords; i += kWholeThreads) {
      const int plane = i / kWords, word = i - plane * kWords;
      copy_async_4(shared + plane * kPitch + word,
                   reinterpret_cast<const uint32_t*>(planes + plane * distance) + word);
    }
  }
  // Zeros where the row is not there.
  __device__ static void row(const uint32_t* plane, int row, float (&values)[kWholeWidth]) {
    const bool live = static_cast<unsigned>(row) < static_cast<unsigned>(kWholeWidth);
#pragma unroll
    for (int i = 0; i < kRowWords; ++i) {
      const uint32_t word = live ? plane[row * kRowWords + i] : 0;
      const auto pack = reinterpret_cast<const Pack<T, kOfWord>&>(word);
#pragma unroll
      for (int j = 0; j < kOfWord; ++j) values[i * kOfWord + j] = to_float(pack.values[j]);
    }
  }
};

}  // namespace retrograd::kernels::cuda
