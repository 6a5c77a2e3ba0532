// SPDX-License-Identifier: Apache-2.0
// Planes of 14x14 of a 16-bit type in shared memory, a warp's own: rows of 16 columns with zeros around them,
// 48 bytes apart, so that eight rows of a matrix are in different banks.
#pragma once

#include "kernels/cuda/dense/tile_mma.cuh"
#include "kernels/cuda/depthwise/depthwise_plan.h"

namespace retrograd::kernels::cuda {

constexpr int kSmallPlane = kSmallWidth * kSmallWidth;
constexpr int kSmallWords = kSmallPlane / 2, kSmallPieces = 2;  // of a lane
constexpr int kSmallPitch = 48;

// With `margin` rows of zeros above, and as many below the sixteenth row.
__host__ __device__ constexpr int small_bytes(int margin) { return (16 + 2 * margin) * kSmallPitch; }

// A lane's share of a plane: eight bytes at a time from memory, words into rows.
struct SmallCopy {
  uint32_t to[kSmallPieces][2];
  int lane;

  __device__ SmallCopy(int of_lane, uint32_t plane, int margin) : lane(of_lane) {
#pragma unroll
    for (int i = 0; i < 2 * kSmallPieces; ++i) {
      const int word = 2 * (lane + 32 * (i / 2)) + i % 2;
      to[i / 2][i % 2] =
          plane + (margin + word / (kSmallWidth / 2)) * kSmallPitch + word % (kSmallWidth / 2) * 4;
    }
  }
  __device__ bool has(int piece) const { return piece == 0 || lane + 32 * piece < kSmallWords / 2; }
  __device__ void fetch(uint2 (&values)[kSmallPieces], const void* source) const {
#pragma unroll
    for (int i = 0; i < kSmallPieces; ++i)
      if (has(i)) values[i] = static_cast<const uint2*>(source)[lane + 32 * i];
  }
  __device__ void put(const uint2 (&values)[kSmallPieces]) const {
#pragma unroll
    for (int i = 0; i < kSmallPieces; ++i)
      if (has(i)) {
        store_word(to[i][0], values[i].x);
        store_word(to[i][1], values[i].y);
      }
  }

 private:
  __device__ static void store_word(uint32_t shared, uint32_t word) {
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(shared), "r"(word) : "memory");
  }
};

}  // namespace retrograd::kernels::cuda
