// SPDX-License-Identifier: Apache-2.0
// The transforms of Winograd's minimal filtering with 6 points a line, for 3 × 3 kernels and 4 × 4 windows of
// results. With d a 6 × 6 tile of data, g a 3 × 3 kernel, r the 4 × 4 correlation of the two:
//
//   r = result(data(d) ∘ kernel(g))            36 products instead of 144
//   g = gradient(Σ data(d) ∘ window(r))        the same for a sum of r over tiles, r given
//
// Each transform works on one vector of channels: a place of a tile holds lanes() floats, and everything is
// vertical. Along a line the points are 0, ±3/4, ±3/2 and infinity. All constants of data, window and result
// are exact in FP32; the error is a quarter of that with the usual 0, ±1, ±2.
#pragma once

#include <cstdint>

namespace retrograd::kernels::cpu {

inline constexpr int64_t kWinogradPoints = 36;  // of a tile
inline constexpr int64_t kWinogradWindow = 4;   // results along a line
inline constexpr int64_t kWinogradTile = 6;     // places of data along a line

// Steps count floats. A transform reads its tiles at in + row·in_row + column·in_column + tile·in_tile, and
// writes at out in the same way. All addresses are multiples of a vector.
struct WinogradTiles {
  const float* in = nullptr;
  int64_t in_row = 0, in_column = 0, in_tile = 0;
  float* out = nullptr;
  int64_t out_row = 0, out_column = 0, out_tile = 0;
  int64_t tiles = 0;
};

void winograd_data(const WinogradTiles& tiles);  // 6 × 6 → 6 × 6; in_tile is 4·in_column: tiles overlap
void winograd_kernel(const WinogradTiles& tiles);  // 3 × 3 → 6 × 6
void winograd_window(const WinogradTiles& tiles);  // 4 × 4 → 6 × 6
// 6 × 6 → 4 × 4; of the last tile only its first `last_columns` columns are written.
void winograd_result(const WinogradTiles& tiles, int64_t last_columns);
void winograd_gradient(const WinogradTiles& tiles);  // 6 × 6 → 3 × 3

}  // namespace retrograd::kernels::cpu
