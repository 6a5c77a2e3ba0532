// SPDX-License-Identifier: Apache-2.0
// Sums of elements of any type, at the speed of memory:
//
// clang-format off
//   sum_rows      Σ_r Σ_i source[r·row_stride + i]        NCHW: the elements of a channel lie together
//   add_columns   sums[c] += Σ_p source[p·stride + c]     NHWC: the channels of a position lie together
// clang-format on
//
// FP32 sums of at most 8192 elements (sum_rows: 32 of them side by side, 256 elements each) or 128
// (add_columns); sums of those in double. The order of additions does not depend on the machine's vectors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace retrograd::kernels::cpu {

// Strides count elements, and may be anything.
double sum_rows(DType dtype, const std::byte* source, int64_t row_stride, int64_t rows, int64_t count);
void add_columns(DType dtype, const std::byte* source, int64_t stride, int64_t positions, int64_t columns,
                 double* sums);

}  // namespace retrograd::kernels::cpu
