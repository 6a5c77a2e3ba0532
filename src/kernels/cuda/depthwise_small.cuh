// SPDX-License-Identifier: Apache-2.0
// Planes of 14x14 of a 16-bit type in shared memory, a warp's own: rows of 16 columns with zeros around them,
// 48 bytes apart, so that eight rows of a matrix are in different banks.
#pragma once

#include "kernels/cuda/copy_async.cuh"
#include "kernels/cuda/tile_mma.cuh"

namespace retrograd::kernels::cuda {

constexpr int kSmallWidth = 14, kSmallPlane = kSmallWidth * kSmallWidth;
constexpr int kSmallWords = kSmallPlane / 2, kSmallCopies = (kSmallWords + 31) / 32;
constexpr int kSmallPitch = 48;

// With `margin` rows of zeros above, and as many below the sixteenth row.
__host__ __device__ constexpr int small_bytes(int margin) { return (16 + 2 * margin) * kSmallPitch; }

// Where a lane's words go.
struct SmallCopy {
  uint32_t to[kSmallCopies];
  int lane;

  __device__ SmallCopy(int of_lane, int margin) : lane(of_lane) {
#pragma unroll
    for (int i = 0; i < kSmallCopies; ++i) {
      const int word = lane + 32 * i;
      to[i] = (margin + word / (kSmallWidth / 2)) * kSmallPitch + word % (kSmallWidth / 2) * 4;
    }
  }
  __device__ void start(uint32_t plane, const void* source) const {
#pragma unroll
    for (int i = 0; i < kSmallCopies; ++i)
      if (lane + 32 * i < kSmallWords)
        copy_4(plane + to[i], static_cast<const uint32_t*>(source) + lane + 32 * i);
  }

 private:
  __device__ static void copy_4(uint32_t shared, const void* global) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared), "l"(global) : "memory");
  }
};

}  // namespace retrograd::kernels::cuda
