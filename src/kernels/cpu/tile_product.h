// SPDX-License-Identifier: Apache-2.0
// The micro-kernel all dense convolution passes share: a tile of results, rows × channels, kept in registers.
//
//   c[i][v] (+)= Σ_{o < outer} Σ_{j < inner} a[i][o·outer_stride + offsets[j]] · b[(o·inner + j)·width + v]
//
// Rows (up to 6) are scalars read in place and broadcast, so taps, stride and dilation are only offsets; v
// runs over `width` channels, two vectors of the machine: 16 floats with AVX2, 32 with AVX-512. 12
// accumulators, 2 loads and 6 broadcasts for 12 fused multiply-adds.
#pragma once

#include <cstdint>

namespace retrograd::kernels::cpu {

inline constexpr int kTileRows = 6;

struct TileProduct {
  const float* a[kTileRows];  // those beyond `rows` are not read
  int rows = kTileRows;
  const int64_t* offsets = nullptr;
  int64_t inner = 0;
  int64_t outer = 1;
  int64_t outer_stride = 0;
  const float* b = nullptr;
  float* c = nullptr;  // row i at c + i·c_stride
  int64_t c_stride = 0;
  bool accumulate = false;
};

// Floats in a row of b and c, for the instruction set of this machine.
int64_t tile_width();
void tile_product(const TileProduct& tile);

}  // namespace retrograd::kernels::cpu
