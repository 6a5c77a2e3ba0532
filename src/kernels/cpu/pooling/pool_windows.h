// SPDX-License-Identifier: Apache-2.0
// Average pooling forward, some rows of results ("lines") at a time, first across the rows of a window, then
// along them:
//
//   sums[l][i]   = Σ_d Σ_h source[l·source_line + d·depth_stride + h·row_stride + i]
//   out[l][o][c] = Σ_t sums[l][(o·stride + t)·unit + c] / (divisors[o] · factor)
//   out[p]       = Σ_i source[p·plane + i] / divisor                      where a plane is one window
//
// A place is `unit` adjacent elements: 1 where rows of places lie together, channels where those do. Sums are
// FP32, in an order that does not depend on the machine's vectors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace retrograd::kernels::cpu {

// Floats behind the sums of the last line that divide_windows() may read and sum_pool_rows() write; nobody
// uses them. Those behind other lines are the next one's.
inline constexpr int64_t kPoolOverrun = 32;

struct PoolRowSums {
  DType type = DType::kF32;
  const std::byte* source = nullptr;
  int64_t planes = 1, source_plane = 0,
          sums_plane = 0;  // whose lines follow each other; strides count elements
  int64_t lines = 1, source_line = 0;
  int64_t depths = 1, depth_stride = 0;
  int64_t rows = 1, row_stride = 0;
  int64_t count = 0;
  bool accumulate = false;
  float* sums = nullptr;
  int64_t sums_line = 0;
  // With zeros in front of each line and behind it, as far as the next one begins: places outside.
  bool padded = false;
  int64_t before = 0;
};
void sum_pool_rows(const PoolRowSums& rows);

struct PoolDivision {
  const float* sums = nullptr;
  // With several channels a place, `add` may say what the windows of a line read instead of sums, in place:
  // rows of places [begin, end) of the line, `place` elements from one to the next; add.source is the first
  // of them.
  const PoolRowSums* add = nullptr;
  int64_t begin = 0, end = 0, place = 0;
  int64_t planes = 1, sums_plane = 0, out_plane = 0;
  int64_t lines = 1, sums_line = 0;
  int64_t unit = 1, stride = 1, taps = 1;
  int64_t count = 0;                // of results of a line
  const float* divisors = nullptr;  // of each result
  float factor = 1;
  // Of each product of divisors and factor, two parts whose products with a sum round as the quotient does
  // (pool_reciprocal()); null: it is divided.
  const float *high = nullptr, *low = nullptr;
  DType type = DType::kF32;
  std::byte* out = nullptr;
  int64_t out_line = 0, out_place = 1;  // elements; 1 where the unit is
};
void divide_windows(const PoolDivision& division);

// The parts of the reciprocal of a whole number below 2^20; of others there are none. Both have its sign, so
// that infinity stays infinity.
bool pool_reciprocal(float divisor, float& high, float& low);

struct PoolPlanes {
  DType type = DType::kF32;
  const std::byte* source = nullptr;
  int64_t planes = 1, plane = 0;  // elements from one to the next
  int64_t count = 0;              // of a plane, at most kMostPlaneCount
  float divisor = 1;
  std::byte* out = nullptr;
  int64_t out_stride = 1;
};
inline constexpr int64_t kMostPlaneCount = 1024;
void average_planes(const PoolPlanes& planes);

}  // namespace retrograd::kernels::cpu
