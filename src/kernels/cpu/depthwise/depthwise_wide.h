// SPDX-License-Identifier: Apache-2.0
// Planes of results of depthwise convolutions with vectors along W, in place: nothing is transposed or
// padded.
//
//   out[j][k] = start + Σ_d Σ_h Σ_t weights[d][t][h] · source[d][j + first_row + h][k + taps[t].offset]
//
// A tile is up to 8 rows of results × one vector: a vector of the source is loaded once for all the rows that
// read it, and weights are broadcast once a tile. Rows outside the source are left out; places outside are
// masked, in the weights too, so that what is not finite meets no zeros. Reading around the ends of rows
// needs loads that do not touch masked places: AVX2 and AVX-512 have them.
#pragma once

#include <cstdint>

namespace retrograd::kernels::cpu {

inline constexpr int64_t kMostWideTapRows = 7;
inline constexpr int64_t kMostWideTapRowsOfTwo = 4;  // where there are two phases
inline constexpr int64_t kMostWideTaps = 64;         // along W, of all phases

struct DepthwiseWide {
  int64_t lanes = 0;  // what wide_lanes() said
  int64_t planes = 0;
  const float* source = nullptr;  // of the first live depth
  int64_t source_plane = 0;       // floats from one to the next, as all that follow
  const float* weights = nullptr;
  int64_t weight_plane = 0;
  const float* start = nullptr;  // of each plane; null: zeros
  float* out = nullptr;
  int64_t out_plane = 0;
  int64_t depths = 1;
  int64_t source_depth = 0;
  int64_t weight_depth = 0;
  int64_t rows = 0;       // of results
  int64_t tap_rows = 1;   // at most kMostWideTapRows
  int64_t first_row = 0;  // may be negative
  int64_t source_rows = 0;
  int64_t source_row = 0;
  int64_t out_row = 0;
  // Results k·phases + p of a row are position k of phase p, which has its own taps: those of phase 1 follow
  // those of phase 0, also in the weights.
  int64_t width = 0;  // results
  int64_t source_width = 0;
  const int64_t* offsets = nullptr;
  int64_t taps[2] = {0, 0};
  int phases = 1;

  int64_t all_taps() const { return taps[0] + taps[1]; }
  int64_t columns_left(int64_t column, int64_t tap) const { return source_width - column - offsets[tap]; }
};
void depthwise_wide(const DepthwiseWide& planes);

}  // namespace retrograd::kernels::cpu
