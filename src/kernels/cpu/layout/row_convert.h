// SPDX-License-Identifier: Apache-2.0
// Rows of adjacent elements of any type from and to FP32, with the bits of base/dtype.h; a signalling NaN may
// come out quiet. Addresses of elements need no alignment.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace retrograd::kernels::cpu {

void decode_row(DType dtype, const std::byte* source, int64_t count, float* out);
void encode_row(DType dtype, const float* row, int64_t count, std::byte* destination);
// row[i] = apply(rounding, row[i])
void round_row(OperandRounding rounding, float* row, int64_t count);
bool all_finite(const float* values, int64_t count);

}  // namespace retrograd::kernels::cpu
