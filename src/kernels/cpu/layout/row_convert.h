// SPDX-License-Identifier: Apache-2.0
// Rows of adjacent elements of any type from and to FP32, with the bits of base/dtype.h; a signalling NaN may
// come out quiet. Addresses of elements need no alignment.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace retrograd::kernels::cpu {

// Rows of `count` elements, one `step` elements behind the other; their floats are `pitch` apart.
void decode_rows(DType dtype, const std::byte* source, int64_t step, int64_t rows, int64_t count, float* out,
                 int64_t pitch);
void encode_rows(DType dtype, const float* in, int64_t pitch, int64_t rows, int64_t count,
                 std::byte* destination, int64_t step);
inline void decode_row(DType dtype, const std::byte* source, int64_t count, float* out) {
  decode_rows(dtype, source, 0, 1, count, out, 0);
}
inline void encode_row(DType dtype, const float* row, int64_t count, std::byte* destination) {
  encode_rows(dtype, row, 0, 1, count, destination, 0);
}
// row[i] = apply(rounding, row[i])
void round_row(OperandRounding rounding, float* row, int64_t count);
bool all_finite(const float* values, int64_t count);

}  // namespace retrograd::kernels::cpu
