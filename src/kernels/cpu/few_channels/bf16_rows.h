// SPDX-License-Identifier: Apache-2.0
// The sums of row_sums.h and row_dots.h over BF16 numbers, two at a time, on machines that multiply pairs as
// fast as FP32 numbers (dense/cell_pairs.h, which says what cells are and what CellFacts are for).
//
// Engines copy the rows as FP32; of numbers that are BF16, a half of each float is zero, and is left out
// here. These may be called only where has_bf16_products().
#pragma once

#include <cstdint>

#include "kernels/cpu/dense/cell_pairs.h"
#include "kernels/cpu/few_channels/row_dots.h"
#include "kernels/cpu/few_channels/row_sums.h"

namespace retrograd::kernels::cpu {

// As row_sums, with source and weights holding cells of two source channels.
void bf16_row_sums(const RowSums& rows);
// out[k·out_pitch + i] = (in[2k·pitch + i], in[(2k + 1)·pitch + i]), i < count, for all of `channels` rows;
// the last of an odd number has no partner. `in` and `out` may be the same.
CellFacts cells_of_rows(const float* in, int64_t pitch, int64_t channels, int64_t count, float* out,
                        int64_t out_pitch);

// As row_dots, with y and source pointing to BF16 numbers, and strides, offsets and `next` counting them.
// Nothing behind a row is read, neither of y nor of the source.
void bf16_row_dots(const RowDots& dots);
// The `count` FP32 numbers at `values` become as many BF16 numbers there.
CellFacts halve(float* values, int64_t count);

}  // namespace retrograd::kernels::cpu
