// SPDX-License-Identifier: Apache-2.0
// Products of 16-bit numbers on machines that multiply them natively, two at a time: twice the products of
// FP32 of BF16 numbers in vectors; in the tile registers of cell_tiles.h more, and of FP16 numbers, too.
//
// A cell is 32 bits: two numbers, the first in the low half. The tile product of tile_product.h with cells
// for numbers adds a.low·b.low + a.high·b.high to FP32 sums. Where a cell stands for two channels or two
// images that are summed over, that is the same sum with half the steps.
//
// The instructions take subnormal FP32 numbers, of products and sums too, and subnormal BF16 numbers for
// zero. Numbers that are 0 or at least 2^-50 never come near: their products are multiples of 2^-114.
// CellFacts say whether that holds; of FP16 numbers it always does, as the smallest is 2^-24.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/dense/tile_product.h"

namespace retrograd::kernels::cpu {

// What the two numbers of a cell are.
enum class CellType : unsigned char { kBf16, kF16 };
// Codes without their sign: of the smallest number but 0 that is multiplied exactly, and of infinity.
constexpr int smallest_of(CellType type) { return type == CellType::kBf16 ? (127 - 50) << 7 : 1; }
constexpr int infinity_of(CellType type) { return type == CellType::kBf16 ? 255 << 7 : 31 << 10; }

// Whether this machine has the instruction for BF16 in vectors and bf16_use() of targets.h wants it. The
// functions below may be called only where it does, or where has_tiles() of cell_tiles.h does; tile_width()
// is 32 there.
bool has_bf16_products();

// As tile_product with a, b and every offset counting cells; the width is two vectors or one, and b is not
// copied.
void bf16_tile_product(const TileProduct& tile);

// What is true of all numbers that were looked at.
struct CellFacts {
  bool large = true;  // 0 or at least 2^-50
  bool finite = true;
  CellFacts& operator&=(const CellFacts& other) {
    large &= other.large;
    finite &= other.finite;
    return *this;
  }
};

// out[r·pitch + i] = (low[r·step + i], high[r·step + i]), r < rows, i < count; a null half is zeros.
struct PairedRows {
  const std::byte *low = nullptr, *high = nullptr;
  int64_t step = 0;  // numbers from row to row
  int64_t rows = 1, count = 0;
  float* out = nullptr;
  int64_t pitch = 0;
  CellType type = CellType::kBf16;
};
CellFacts pair_rows(const PairedRows& rows);
// Of `count` cells that follow each other in each of the rows.
CellFacts judge_cells(const float* cells, int64_t step, int64_t rows, int64_t count, CellType type);

}  // namespace retrograd::kernels::cpu
