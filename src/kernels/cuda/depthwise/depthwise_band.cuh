// SPDX-License-Identifier: Apache-2.0
// The matrix of a row of a depthwise kernel: taps along its diagonals, zeros beside them.
#pragma once

#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// A warp's kernel of K x K taps of a 16-bit type in shared memory, with zeros before and after each row.
template <class T, int kK>
struct BandKernel {
  static constexpr int kBefore = 14, kPitch = 34;  // entries
  static constexpr int kBytes = (kK * kPitch * 2 + 15) / 16 * 16;

  // Every lane of the warp calls it; a barrier of the warp makes the others' share seen.
  __device__ static void load(T* table, const Conv& conv, const T* weights, int64_t channel, int lane) {
    for (int i = lane; i < kBytes / 4; i += 32) reinterpret_cast<uint32_t*>(table)[i] = 0;
    __syncwarp();
    for (int i = lane; i < kK * kK; i += 32)
      table[i / kK * kPitch + kBefore + i % kK] =
          weights[channel * conv.w.strides[0] + i / kK * conv.w.strides[3] + i % kK * conv.w.strides[4]];
  }
  // Taps kw and kw − 1 of a row, −13 <= kw <= 18: what two neighbouring columns of the source count with.
  __device__ static uint32_t pair(const T* table, int kh, int kw) {
    const auto* const bits = reinterpret_cast<const uint16_t*>(table) + kh * kPitch + kBefore + kw;
    return bits[0] | static_cast<uint32_t>(bits[-1]) << 16;
  }
};

}  // namespace retrograd::kernels::cuda
