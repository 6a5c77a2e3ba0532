// SPDX-License-Identifier: Apache-2.0
// Average pooling backward where the channels of a place lie side by side, part of a row of places at a time:
//
//   sums[j][c]      = Σ_rows row[j·place + c] / divisor of the row and j       windows j, added across rows
//   out[r][x][c]    = Σ_{j : x in window j} sums[j][c]                         the same for some rows r
//
// Sums stay in the first caches, so grad_output is read once for each row of results and those are written in
// the order of memory. Nothing is divided but by numbers whose reciprocals do not do (pool_windows.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace retrograd::kernels::cpu {

// Some windows of a row, all divided by the same number.
struct PoolQuotientRow {
  int64_t at;  // bytes from `from` on
  float divisor;
  float high, low;  // pool_reciprocal(), where all rows have one
};
struct PoolQuotients {
  DType type = DType::kF32;
  const std::byte* from = nullptr;
  const PoolQuotientRow* rows = nullptr;
  int64_t row_count = 0;  // at least 1
  bool multiplies = false;
  int64_t windows = 0, place = 0, channels = 0;  // place: elements from a window to the next
  float* sums = nullptr;
};
void sum_quotients(const PoolQuotients& quotients);

struct PoolSpread {
  const float* sums = nullptr;  // of window `first`
  // Where a place lies in one window at most, they may be this instead: windows of a row of grad_output, of
  // the type of the result and divided by one number that has a reciprocal; from a window to the next,
  // `window` elements.
  const std::byte* row_of_windows = nullptr;
  PoolQuotientRow quotient{};
  int64_t window = 0;
  int64_t channels = 0;
  int64_t first = 0, end = 0;  // windows that there are sums of
  int64_t x = 0, places = 0;   // which are written
  int64_t kernel = 1, stride = 1, pad = 0;
  DType type = DType::kF32;
  std::byte* out = nullptr;              // of place x
  int64_t rows = 1, row = 0, place = 0;  // strides in elements
  // Memory for one row, where places lie side by side: from there rows go past the caches. Null: they do not.
  std::byte* stage = nullptr;

  // What follows from these, once for many calls: kernel = terms·stride + rest, x + pad = last·stride +
  // residue, and to how many places and rows a vector of a result is stored before the next has its turn.
  int64_t terms = 1, rest = 0, last = 0, residue = 0;
  int64_t places_at_once = 1, rows_at_once = 1;
  void derive();
};
void spread_windows(const PoolSpread& spread);

}  // namespace retrograd::kernels::cpu
