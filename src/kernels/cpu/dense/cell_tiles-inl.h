// SPDX-License-Identifier: Apache-2.0
// The product of cell_tiles.h over whatever has eight tile registers: AMX in cell_tiles.cpp, plain memory in
// the test, which machines without AMX run too.
//
// Registers 0 to 3 are sums [upper, lower][left, right], 4 and 5 rows of a, 6 and 7 rows of b. `Registers`
// has static functions configure(TileConfig), zero<i>(), load<i>(address, bytes from row to row), store<i>()
// and multiply<row, column>(), which adds register 4 + row times register 6 + column to its sums.
#pragma once

#include <cstdint>

#include "kernels/cpu/dense/cell_tiles.h"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define RG_AMX __attribute__((target("amx-tile,amx-bf16")))
#else
#define RG_AMX
#endif

namespace retrograd::kernels::cpu {

// As the instruction reads it.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

inline TileConfig config_of(const TileShape& shape) {
  TileConfig config;
  const auto set = [&](int index, int rows, int64_t cells) {
    if (rows == 0) return;  // a register that is not used has neither rows nor bytes
    config.rows[index] = static_cast<uint8_t>(rows);
    config.row_bytes[index] = static_cast<uint16_t>(cells * static_cast<int64_t>(sizeof(float)));
  };
  for (int column = 0; column < shape.columns; ++column) {
    set(column, shape.upper, kRegisterCells);
    set(2 + column, shape.lower, kRegisterCells);
    set(6 + column, shape.depth, kRegisterCells);
  }
  set(4, shape.upper, shape.depth);
  set(5, shape.lower, shape.depth);
  return config;
}

// The part of a product that adds over cells [first, last), a multiple of the depth.
template <class Registers, bool kLower, bool kRight>
RG_AMX void add_cells(const TileProduct& t, const TileShape& shape, int64_t first, int64_t last,
                      bool accumulate) {
  constexpr int64_t kBytes = sizeof(float);
  const int64_t c_bytes = t.c_stride * kBytes, a_bytes = t.a_stride * kBytes;
  float* lower_c = t.c + shape.upper * t.c_stride;
  if (const float* start = accumulate ? t.c : t.start; start != nullptr) {
    const int64_t stride = accumulate ? t.c_stride : t.start_stride, bytes = stride * kBytes;
    const float* lower = start + shape.upper * stride;
    Registers::template load<0>(start, bytes);
    if constexpr (kRight) Registers::template load<1>(start + kRegisterCells, bytes);
    if constexpr (kLower) Registers::template load<2>(lower, bytes);
    if constexpr (kLower && kRight) Registers::template load<3>(lower + kRegisterCells, bytes);
  } else {
    Registers::template zero<0>();
    if constexpr (kRight) Registers::template zero<1>();
    if constexpr (kLower) Registers::template zero<2>();
    if constexpr (kLower && kRight) Registers::template zero<3>();
  }
  const int64_t width = kRegisterCells * shape.columns;
  const int64_t b_step = t.b_offsets != nullptr ? t.b_outer_stride : t.inner * width;
  const int64_t b_bytes = b_step * kBytes;
  for (int64_t cell = first; cell < last; cell += shape.depth) {
    const float* columns = t.b + cell * b_step;
    for (int64_t j = 0; j < t.inner; ++j) {
      const int64_t at = cell + t.offsets[j];
      const float* b = columns + (t.b_offsets != nullptr ? t.b_offsets[j] : j * width);
      Registers::template load<4>(t.a[0] + at, a_bytes);
      Registers::template load<6>(b, b_bytes);
      Registers::template multiply<0, 0>();
      if constexpr (kRight) {
        Registers::template load<7>(b + kRegisterCells, b_bytes);
        Registers::template multiply<0, 1>();
      }
      if constexpr (kLower) {
        Registers::template load<5>(t.a[1] + at, a_bytes);
        Registers::template multiply<1, 0>();
        if constexpr (kRight) Registers::template multiply<1, 1>();
      }
    }
  }
  Registers::template store<0>(t.c, c_bytes);
  if constexpr (kRight) Registers::template store<1>(t.c + kRegisterCells, c_bytes);
  if constexpr (kLower) Registers::template store<2>(lower_c, c_bytes);
  if constexpr (kLower && kRight) Registers::template store<3>(lower_c + kRegisterCells, c_bytes);
}

template <class Registers>
void add_cells(const TileProduct& t, const TileShape& shape, int64_t first, int64_t last, bool accumulate,
               TileShape& configured) {
  if (!(shape == configured)) {
    configured = shape;
    Registers::configure(config_of(shape));
  }
  const bool wide = shape.columns == 2;
  if (shape.lower > 0)
    wide ? add_cells<Registers, true, true>(t, shape, first, last, accumulate)
         : add_cells<Registers, true, false>(t, shape, first, last, accumulate);
  else
    wide ? add_cells<Registers, false, true>(t, shape, first, last, accumulate)
         : add_cells<Registers, false, false>(t, shape, first, last, accumulate);
}

// Rows at equal distances from a[0] on, in runs for two registers.
inline int cut_in_two(TileProduct& t) {
  const int upper = t.rows > kRegisterRows ? (t.rows + 1) / 2 : t.rows;
  t.a[1] = t.a[0] + upper * t.a_stride;
  return upper;
}

// Cells to add over are cut into equal pieces where as few of them as possible can be equal; else into full
// ones and the rest.
template <class Registers>
void tile_register_product(const TileProduct& t, int upper, TileShape& configured) {
  TileShape shape{.upper = upper, .lower = t.rows - upper, .columns = t.width == kRegisterCells ? 1 : 2};
  const int64_t pieces = (t.outer + kRegisterCells - 1) / kRegisterCells;
  if (pieces == 1 || t.outer % pieces == 0) {  // the division takes as long as a short product
    shape.depth = static_cast<int>(pieces == 1 ? t.outer : t.outer / pieces);
    return add_cells<Registers>(t, shape, 0, t.outer, t.accumulate, configured);
  }
  const int64_t full = t.outer / kRegisterCells * kRegisterCells;
  shape.depth = static_cast<int>(kRegisterCells);
  add_cells<Registers>(t, shape, 0, full, t.accumulate, configured);
  shape.depth = static_cast<int>(t.outer - full);
  add_cells<Registers>(t, shape, full, t.outer, true, configured);
}

}  // namespace retrograd::kernels::cpu
