// SPDX-License-Identifier: Apache-2.0
// Blocks of FP32 turned over: out[c][r] = in[r][c].
//
// Dense engines turn grad_output [channel][position] into panels [position][channel] with it, and their sums
// back into rows of the result. Tiles of 16 × 16 (AVX-512), 8 × 8 (AVX2) or 4 × 4 stay in registers: a tile
// costs as many loads and stores as it has rows, and one shuffle a register and level.
#pragma once

#include <cstdint>

namespace retrograd::kernels::cpu {

// Row r of `in` starts at in + r·in_stride and has `cols` floats; row c of `out` at out + c·out_stride and
// has `rows`. Any sizes, and any address; nothing outside is touched. The two may not overlap.
void transpose(const float* in, int64_t in_stride, float* out, int64_t out_stride, int64_t rows,
               int64_t cols);

}  // namespace retrograd::kernels::cpu
