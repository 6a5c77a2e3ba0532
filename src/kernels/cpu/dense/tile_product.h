// SPDX-License-Identifier: Apache-2.0
// The micro-kernel all dense convolution passes share: a tile of results, rows × channels, kept in registers.
//
// clang-format off
//   c[i][v] (+)= Σ_{o < outer} Σ_{j < inner} a[i][o·outer_stride + offsets[j]] · b[o·b_outer_stride + β(j) + v]
// clang-format on
//
// Rows are scalars read in place and broadcast, so taps, stride and dilation are only offsets; v runs over
// `width` channels. β(j) is b_offsets[j] where rows of b are left out, and j·width where b_offsets is null.
// The full width is two vectors of the machine (16 floats with AVX2, 32 with AVX-512) and up to 6 rows at any
// places: 12 accumulators, 2 loads and 6 broadcasts for 12 fused multiply-adds. Where the machine has 32
// registers, rows at equal distances may be up to 14, so that b, which often streams from L2, is read half as
// often. Groups with fewer channels take one vector, or half a vector, and up to 8 rows at any places; 8 sums
// are as many as two multipliers have under way at best, so there, too, 14 at equal distances are faster.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/cpu/vector_shape.h"

namespace retrograd::kernels::cpu {

struct TileProduct {
  const float* a[kMostTileRows];  // those beyond `rows` are not read
  int64_t a_stride = 0;           // from row to row: for tiles with more rows than there may be at any places
  int rows = kTileRows;
  int64_t width = 0;  // one of tile_widths(); 0 is the full one
  const int64_t* offsets = nullptr;
  const int64_t* b_offsets = nullptr;
  int64_t inner = 0;
  int64_t outer = 1;
  int64_t outer_stride = 0;
  int64_t b_outer_stride = 0;  // with b_offsets only; else b goes on where it ended
  const float* b = nullptr;
  // With b_offsets and the full width only: rows of b are also stored there, one after the other, so that the
  // next tile reads them in order; the row b_ahead floats further on is fetched meanwhile.
  float* b_copy = nullptr;
  int64_t b_ahead = 0;
  // With the full width and no b_offsets only: what another tile will read, a row of it for each row of b,
  // is fetched meanwhile.
  const float* next = nullptr;
  int64_t next_stride = 0;
  float* c = nullptr;  // row i at c + i·c_stride
  int64_t c_stride = 0;
  bool accumulate = false;  // sums begin with what c holds
  // Otherwise row i begins with start[i·start_stride + v]; null: with zeros.
  const float* start = nullptr;
  int64_t start_stride = 0;
  bool start_column = false;  // tile_product() only: all of row i begin with start[i]
  // With the full width only: rows of c are aligned to their vectors and go past the caches. end_stream()
  // must follow before another thread may read them.
  bool stream = false;

  // Columns of c that are stored; 0: all. The others may belong to somebody else.
  int64_t columns = 0;
  // bf16_tile_product() only: the columns of row i go to rounded + i·rounded_stride as BF16 instead of to c.
  // The sums are no subnormal numbers.
  uint16_t* rounded = nullptr;
  int64_t rounded_stride = 0;

  const float* first_sums() const { return accumulate ? c : start; }
  int64_t first_sums_stride() const { return accumulate ? c_stride : start_stride; }

  // Rows at equal distances; of products that look at a_stride, the first is enough.
  void set_rows(const float* first, int64_t stride, int64_t count) {
    set_strided_rows(first, stride, count);
    for (int64_t i = 1; i < count && i < kMostTileRows; ++i) a[i] = first + i * stride;
  }
  void set_strided_rows(const float* first, int64_t stride, int64_t count) {
    rows = static_cast<int>(count);
    a_stride = stride;
    a[0] = first;
  }
};

void tile_product(const TileProduct& tile);
void end_stream();

}  // namespace retrograd::kernels::cpu
