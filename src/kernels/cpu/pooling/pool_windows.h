// SPDX-License-Identifier: Apache-2.0
// Average pooling forward, some rows of results ("lines") at a time, first across the rows of a window, then
// along them:
//
//   sums[l][i]   = Σ_d Σ_h source[l·source_line + d·depth_stride + h·row_stride + i]
//   out[l][o][c] = Σ_t sums[l][(o·stride + t)·unit + c] / (divisors[o] · factor)
//
// A place is `unit` adjacent elements: 1 where rows of places lie together, channels where those do. Sums are
// FP32, in an order that does not depend on the machine's vectors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace retrograd::kernels::cpu {

// Floats behind the sums of a line that divide_windows() may read, and does not use.
inline constexpr int64_t kPoolOverrun = 32;

struct PoolRowSums {
  DType type = DType::kF32;
  const std::byte* source = nullptr;
  int64_t lines = 1, source_line = 0;  // strides count elements
  int64_t depths = 1, depth_stride = 0;
  int64_t rows = 1, row_stride = 0;
  int64_t count = 0;
  bool accumulate = false;
  float* sums = nullptr;
  int64_t sums_line = 0;
};
void sum_pool_rows(const PoolRowSums& rows);

struct PoolDivision {
  const float* sums = nullptr;
  int64_t lines = 1, sums_line = 0;
  int64_t unit = 1, stride = 1, taps = 1;
  int64_t count = 0;                // of results of a line
  const float* divisors = nullptr;  // of each result
  float factor = 1;
  DType type = DType::kF32;
  std::byte* out = nullptr;
  int64_t out_line = 0, out_place = 1;  // elements; 1 where the unit is
};
void divide_windows(const PoolDivision& division);

}  // namespace retrograd::kernels::cpu
