// SPDX-License-Identifier: Apache-2.0
// Average pooling backward on one volume, row by row: it gathers, it never
// scatters.
//
//   quotient[p] = grad_output[p] / (count_d[pd] · count_h[ph] · count_w[pw])
//   sum[pw]     = Σ_{pd,ph : the row lies in them} quotient[pd, ph, pw]
//   out[w]      = Σ_{pw : w in window pw} sum[pw]
//
// With w + pad = j·stride + r and kernel = terms·stride + rest, a place takes
// the windows j, j−1, … j−terms+1, and one more if r < rest. So a row is
// `stride` copies of two rows of sums, interleaved. A place is `unit` adjacent
// elements: 1 where rows of places lie together, channels where those do.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace retrograd::kernels::cpu {

struct PoolAxis {
  int64_t x = 1;
  int64_t y = 1;
  const int64_t* begin = nullptr;  // place i lies in windows begin[i] to end[i] − 1
  const int64_t* end = nullptr;
  int64_t first = 0;              // the window that comes first in memory
  const float* counts = nullptr;  // of each window from there on; null: all `count`
  float count = 1;
};

struct PoolTensor {
  DType dtype = DType::kF32;
  int64_t depth = 0, row = 0, place = 1;  // strides, in elements
};

struct PoolVolumes {
  PoolAxis depths, rows;
  int64_t x = 1, y = 1, kernel = 1, stride = 1, pad = 0;  // along the row
  const float* counts = nullptr;                          // as in PoolAxis
  float count = 1;
  int64_t unit = 1;
  PoolTensor in, out;

  // What follows from these, once: 64-bit divisions in every row would cost more than its additions.
  int64_t terms = 1, rest = 0;
  int64_t lead = 0;    // places before the first whole group of `stride`
  int64_t groups = 0;  // whole groups
  int64_t first = 0;   // window of the first of them
  int64_t pitch = 0;   // floats from one row of sums to the next
  void derive() {
    terms = kernel / stride;
    rest = kernel % stride;
    lead = (stride - pad % stride) % stride;
    if (lead > x) lead = x;
    groups = (x - lead) / stride;
    first = (lead + pad) / stride;
    pitch = (front() + y + back()) * unit;
  }
  // Zeros before and behind the sums of a row, in places.
  int64_t front() const { return terms + 1; }
  int64_t back() const { return terms + 2; }
  // For so many rows of quotients: a row of results, the sums of a row, their sums by groups, the quotients.
  int64_t scratch_floats(int64_t quotient_rows) const { return x + (quotient_rows + 2) * pitch; }
};

// Zeros where the kernel relies on them: once for any number of volumes with rows of the same pitch.
void clear_pool_scratch(const PoolVolumes& volumes, int64_t quotient_rows, float* scratch);
void pool_volume(const PoolVolumes& volumes, const std::byte* in, std::byte* out, float* scratch);

// One quotient fills a volume: out[v·size + i] = in[v·in_stride] / divisor.
struct PoolFill {
  DType in_type = DType::kF32, out_type = DType::kF32;
  int64_t in_stride = 1;
  int64_t size = 1;
  float divisor = 1;
};
void pool_fill(const PoolFill& fill, const std::byte* in, std::byte* out, int64_t volumes);

}  // namespace retrograd::kernels::cpu
