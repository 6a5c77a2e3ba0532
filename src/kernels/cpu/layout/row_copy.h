// SPDX-License-Identifier: Apache-2.0
// Rows of FP32 from one pitch to another, apart by residues, and together again.
//
// One call moves many rows: those of a plane of 28 × 28 are two vectors each, and a call for each of them
// costs more than the multiply-adds between them. Nothing but the rows is written.
#pragma once

#include <cstdint>

namespace retrograd::kernels::cpu {

// out[r·out_stride + x] = in[r·in_stride + x], r < rows, x < count. The two may not overlap.
void copy_rows(const float* in, int64_t in_stride, float* out, int64_t out_stride, int64_t rows,
               int64_t count);
// The same, and zeros between one row of `out` and the next; no gap behind the last one. What lies `ahead`
// floats behind `in` is fetched into the cache meanwhile: the channel that is copied next. Rows are too short
// for the machine to guess it.
void copy_rows_apart(const float* in, int64_t in_stride, float* out, int64_t out_stride, int64_t rows,
                     int64_t count, int64_t ahead);

// The rows that the residues of a strided result fill together:
//
//   out[r·out_stride + p] = in[(p mod ways)·way_stride + r·in_stride + p / ways],   p in [begin, end)
struct WovenRows {
  const float* in = nullptr;
  int64_t way_stride = 0;
  int64_t ways = 2;
  int64_t in_stride = 0;
  float* out = nullptr;
  int64_t out_stride = 0;
  int64_t rows = 1;
  int64_t begin = 0, end = 0;
};
void weave_rows(const WovenRows& rows);

// The other way round, with zeros for places outside:
//
//   out[(p mod ways)·way_stride + r·out_stride + p / ways] = in[r·in_stride + p],   p in [begin, end)
//
// and 0 for the other p in [0, ways·count); begin ≤ end. `ahead` as above.
struct PartedRows {
  const float* in = nullptr;
  int64_t in_stride = 0;
  float* out = nullptr;
  int64_t way_stride = 0;
  int64_t ways = 2;
  int64_t out_stride = 0;
  int64_t rows = 1;
  int64_t begin = 0, end = 0;
  int64_t count = 0;
  int64_t ahead = 0;
};
void part_rows(const PartedRows& rows);

}  // namespace retrograd::kernels::cpu
