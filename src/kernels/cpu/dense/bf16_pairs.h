// SPDX-License-Identifier: Apache-2.0
// Products of BF16 numbers on machines that multiply them natively, two at a time: twice the products of
// FP32.
//
// A cell is 32 bits: two BF16 numbers, the first in the low half. The tile product of tile_product.h with
// cells for numbers adds a.low·b.low + a.high·b.high to FP32 sums. Where a cell stands for two channels or
// two images that are summed over, that is the same sum with half the steps.
//
// The instruction takes subnormal numbers, of products and sums too, for zero. Numbers that are 0 or at least
// 2^-50 never come near: their products are multiples of 2^-114. pair_row says whether that holds.
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

// out[i] = (low[i], high[i]). False where a number is neither 0 nor at least 2^-50.
bool pair_row(const std::byte* low, const std::byte* high, int64_t count, float* out);
// The same of cells that are there already.
bool cells_are_large(const float* cells, int64_t count);
bool cells_are_finite(const float* cells, int64_t count);

}  // namespace retrograd::kernels::cpu
