// SPDX-License-Identifier: Apache-2.0
// Products of BF16 numbers on machines that multiply them natively, two at a time: twice the products of
// FP32.
//
// A cell is 32 bits: two BF16 numbers, the first in the low half. The tile product of tile_product.h with
// cells for numbers adds a.low·b.low + a.high·b.high to FP32 sums. Where a cell stands for two channels or
// two images that are summed over, that is the same sum with half the steps.
//
// The instruction takes subnormal numbers, of products and sums too, for zero. Numbers that are 0 or at least
// 2^-50 never come near: their products are multiples of 2^-114. CellFacts say whether that holds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/dense/tile_product.h"

namespace retrograd::kernels::cpu {

// Whether this machine has the instruction and bf16_use() of targets.h wants it. The functions below may be
// called only where it does, or where has_bf16_tiles() of bf16_tiles.h does; tile_width() is 32 there.
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
};
CellFacts pair_rows(const PairedRows& rows);
// Of `count` cells that follow each other in each of the rows.
CellFacts judge_cells(const float* cells, int64_t step, int64_t rows, int64_t count);

}  // namespace retrograd::kernels::cpu
