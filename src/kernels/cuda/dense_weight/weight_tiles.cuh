// SPDX-License-Identifier: Apache-2.0
// The parts of weight_product's kernel: what it is told, how its tiles lie in shared memory, how fragments
// come out of it.
#pragma once

#include "kernels/cuda/dense/tile_mma.cuh"
#include "kernels/cuda/dense_weight/weight_product_plan.h"
#include "kernels/cuda/fast_div.cuh"

namespace retrograd::kernels::cuda::weight {

struct Product {
  FastDiv outputs[3];  // of an axis
  int stride[3], dilation[3], pad[3], source[3], kernel[3];
  uint32_t places, part;  // part: places of one, a multiple of a step
  int rows;               // y channels of a group
  int y_filled, x_filled;
  uint32_t y_pitch, x_pitch;  // bytes from place to place
  int groups;
  int x_columns;      // of a tap: x_filled, or more, behind x's channels
  int taps, columns;  // columns: taps · x_columns
  bool near;          // taps of a tile read the same bytes of x: L1 keeps them
  int64_t weights;    // of all groups, filled up
};

// copy_chunk for bytes that are soon read again.
__device__ inline void copy_near(uint32_t target, const void* source, bool live) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(source),
               "r"(live ? 16 : 0));
}

// A stage: rows of kM elements, then rows of kN. The eight elements between rows put what a warp reads at
// once into different banks.
template <class E, class C>
struct Stage {
  static constexpr int kChunk = 16 / sizeof(E), kTerms = 128 / sizeof(E);
  static constexpr int kRowM = (C::kM + 8) * static_cast<int>(sizeof(E)),
                       kRowN = (C::kN + 8) * static_cast<int>(sizeof(E));
  static constexpr int kBytes = kTerms * (kRowM + kRowN);
};

// The fragments a warp multiplies next, and which result of the warp each sum is.
template <class E, class C>
struct Fragments {
  using S = Stage<E, C>;
  uint32_t a[C::kWarpM / 16][4], b[C::kWarpN / 8][2];

  // of 32 bytes: the k-th of a step
  __device__ void load(uint32_t stage, int first_row, int first_column, int k) {
    const uint32_t of_a = stage + first_row * static_cast<int>(sizeof(E)),
                   of_b = stage + S::kTerms * S::kRowM + first_column * static_cast<int>(sizeof(E));
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if constexpr (sizeof(E) == 2) {
      const int line = lane % 8, matrix = lane / 8;
#pragma unroll
      for (int i = 0; i < C::kWarpM / 16; ++i)
        load_matrices<true>(
            of_a + (k * 16 + matrix / 2 * 8 + line) * S::kRowM + (i * 16 + matrix % 2 * 8) * 2, a[i]);
#pragma unroll
      for (int j = 0; j < C::kWarpN / 16; ++j) {
        uint32_t r[4];
        load_matrices<true>(
            of_b + (k * 16 + matrix % 2 * 8 + line) * S::kRowN + (j * 16 + matrix / 2 * 8) * 2, r);
        b[2 * j][0] = r[0], b[2 * j][1] = r[1], b[2 * j + 1][0] = r[2], b[2 * j + 1][1] = r[3];
      }
    } else {
      // Four neighbours at once: they become the same line of different fragments.
      const int line = lane / 4, term = k * 8 + lane % 4;
#pragma unroll
      for (int i = 0; i < C::kWarpM / 32; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          uint32_t r[4];
          load_words(of_a + (term + half * 4) * S::kRowM + (i * 32 + line * 4) * 4, r);
          a[2 * i][2 * half] = r[0], a[2 * i][2 * half + 1] = r[1];
          a[2 * i + 1][2 * half] = r[2], a[2 * i + 1][2 * half + 1] = r[3];
        }
#pragma unroll
      for (int j = 0; j < C::kWarpN / 32; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          uint32_t r[4];
          load_words(of_b + (term + half * 4) * S::kRowN + (j * 32 + line * 4) * 4, r);
#pragma unroll
          for (int e = 0; e < 4; ++e) b[4 * j + e][half] = r[e];
        }
    }
  }

  // Calls store(row, column, four sums side by side).
  template <class Sums, class Store>
  __device__ static void visit(const Sums& sums, Store&& store) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < C::kWarpM / 16; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if constexpr (sizeof(E) == 2) {
          const int row = i * 16 + lane / 4 + half * 8;
#pragma unroll
          for (int j = 0; j < C::kWarpN / 8; ++j)
            store(row, j * 8 + lane % 4 * 2, float2{sums[i][j][2 * half], sums[i][j][2 * half + 1]});
        } else {
          const int row = i / 2 * 32 + lane / 4 * 4 + i % 2 * 2 + half;
#pragma unroll
          for (int j = 0; j < C::kWarpN / 32; ++j)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
              const int at = 2 * half + e;
              store(row, j * 32 + lane % 4 * 8 + e * 4,
                    float4{sums[i][4 * j][at], sums[i][4 * j + 1][at], sums[i][4 * j + 2][at],
                           sums[i][4 * j + 3][at]});
            }
        }
      }
  }
};

}  // namespace retrograd::kernels::cuda::weight

namespace retrograd::kernels::cuda {

// weight_product of FP32 rows on Hopper's warpgroup products: as many parts as p.part cuts the places into,
// which are to be added. False: nothing was launched. Needs a Hopper GPU, and f32_weight_parts() > 0.
bool f32_weight(const weight::Product& p, const WeightProduct& product, Stream stream);

}  // namespace retrograd::kernels::cuda
