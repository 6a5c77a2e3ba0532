// SPDX-License-Identifier: Apache-2.0
// 16-bit numbers copied into the order that tile registers (cell_tiles.h) want: places of one channel side by
// side, or pairs of neighbouring places side by side for all channels. For machines with has_tiles().
// Copies say whether all that they took is finite, and 0 or as large as cell_pairs.h wants it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/dense/cell_pairs.h"

namespace retrograd::kernels::cpu {

// out[i] = source[i·step], i < count; the step counts elements.
bool copy_places(const std::byte* source, int64_t step, int64_t count, uint16_t* out, CellType type);

// Cells of the places [begin, end), whose channels lie side by side: with p from begin on at
// source + (p - begin)·step,
//
//   out[(p / 2)·pitch + c] = (place p, place p + 1) for every even p, zeros for places outside
struct PairedPlaces {
  const std::byte* source = nullptr;
  int64_t step = 0;  // elements
  int64_t begin = 0, end = 0;
  int64_t channels = 0;
  float* out = nullptr;
  int64_t pitch = 0;
  CellType type = CellType::kBf16;
};
bool pair_places(const PairedPlaces& places);

}  // namespace retrograd::kernels::cpu
