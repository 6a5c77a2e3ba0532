// SPDX-License-Identifier: Apache-2.0
// The parts of plane_weight's kernel: what it is told, how its tiles lie in shared memory, how fragments come
// out of it.
#pragma once

#include "kernels/cuda/dense/tile_mma.cuh"
#include "kernels/cuda/fast_div.cuh"

namespace retrograd::kernels::cuda::planes {

struct Product {
  FastDiv outputs[3];  // of an axis
  int stride[3], dilation[3], pad[3], source[3], kernel[3];
  bool padded;
  int64_t x_strides[5], y_strides[5];
  uint32_t places, part;  // part: places of one, a multiple of a step
  int rows, columns;      // y channels of a group; x channels of a group times taps
  int x_channels, taps, groups;
  int64_t pitch, weights;  // of a row of columns; of all groups
};

// A stage is kM rows, then kN rows, of 128 bytes of terms each; 16 bytes between rows put the eight that a
// warp reads at once into different banks.
template <int kM, int kN, int kWarpM, int kWarpN, int kBlocks>
struct Cut : TileCut<kM, kN, kWarpM, kWarpN, 4, kBlocks> {
  static constexpr int kRow = 128 + 16, kStage = (kM + kN) * kRow;
};

// The fragments a warp multiplies next: rows run along the sum, as products want both operands.
template <class C>
struct Fragments {
  uint32_t a[C::kWarpM / 16][4], b[C::kWarpN / 8][2];

  // of 32 bytes: the k-th of a step
  __device__ void load(uint32_t stage, int first_row, int first_column, int k) {
    const int lane = static_cast<int>(threadIdx.x) % 32, line = lane % 8;
#pragma unroll
    for (int i = 0; i < C::kWarpM / 16; ++i)
      load_matrices<false>(
          stage + (first_row + i * 16 + lane / 8 % 2 * 8 + line) * C::kRow + k * 32 + lane / 16 * 16, a[i]);
#pragma unroll
    for (int j = 0; j < C::kWarpN / 16; ++j) {
      uint32_t r[4];
      load_matrices<false>(stage + (C::kM + first_column + j * 16 + lane / 16 * 8 + line) * C::kRow + k * 32 +
                               lane / 8 % 2 * 16,
                           r);
      b[2 * j][0] = r[0], b[2 * j][1] = r[1], b[2 * j + 1][0] = r[2], b[2 * j + 1][1] = r[3];
    }
  }
};

template <int kBytes>
__device__ void copy_some(uint32_t target, const void* source, bool live) {
  if constexpr (kBytes == 16)
    copy_chunk(target, source, live);
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(target), "l"(source),
                 "r"(live ? 4 : 0));
}

}  // namespace retrograd::kernels::cuda::planes
