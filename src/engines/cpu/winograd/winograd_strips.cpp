// SPDX-License-Identifier: Apache-2.0
// Strips turned over from planes and back; channels-last tensors, whose channels are neighbours already, are
// copied.
#include "engines/cpu/winograd/winograd_strips.h"

#include <algorithm>

#include "kernels/cpu/float_at.h"
#include "kernels/cpu/layout/transpose.h"

namespace retrograd::engines::cpu {
namespace {

// The part of [first, first + count) that lies in [0, size), counted from `first`.
struct Inside {
  int64_t begin, end;
};
Inside inside(int64_t first, int64_t count, int64_t size) {
  const int64_t begin = std::clamp<int64_t>(-first, 0, count);
  return {begin, std::clamp(size - first, begin, count)};
}

}  // namespace

void load_lanes(const LaneStrip& s, const float* plane, const problem::Strides5& strides, float* out) {
  const int64_t c_step = strides[1], w_step = strides[4], row_floats = s.columns * s.lanes;
  const Inside rows = inside(s.first_row, s.rows, s.height);
  const Inside columns = inside(s.first_column, s.columns, s.width);
  // Lanes without a channel are zeros.
  if (s.channels < s.lanes) std::fill_n(out, s.rows * row_floats, 0.0F);
  std::fill_n(out, rows.begin * row_floats, 0.0F);
  std::fill(out + rows.end * row_floats, out + s.rows * row_floats, 0.0F);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    float* line = out + row * row_floats;
    std::fill_n(line, columns.begin * s.lanes, 0.0F);
    std::fill(line + columns.end * s.lanes, line + row_floats, 0.0F);
    const int64_t count = columns.end - columns.begin;
    const float* in =
        plane + (s.first_row + row) * strides[3] + (s.first_column + columns.begin) * strides[4];
    float* places = line + columns.begin * s.lanes;
    if (w_step == 1) {
      kernels::cpu::transpose(in, c_step, places, s.lanes, s.channels, count);
    } else {
      for (int64_t i = 0; i < count; ++i)
        for (int64_t c = 0; c < s.channels; ++c)
          places[i * s.lanes + c] = kernels::cpu::float_at(in + i * w_step + c * c_step);
    }
  }
}

void store_lanes(const LaneStrip& s, const float* in, const problem::Strides5& strides, float* plane) {
  const int64_t c_step = strides[1], h_step = strides[3], w_step = strides[4];
  float* first = plane + s.first_row * h_step + s.first_column * w_step;
  if (w_step == 1) {
    // Rows that follow each other without a gap are one row.
    const bool joined = h_step == s.columns;
    const int64_t runs = joined ? 1 : s.rows, length = joined ? s.rows * s.columns : s.columns;
    for (int64_t run = 0; run < runs; ++run)
      kernels::cpu::transpose(in + run * length * s.lanes, s.lanes, first + run * h_step, c_step, length,
                              s.channels);
    return;
  }
  for (int64_t row = 0; row < s.rows; ++row)
    for (int64_t column = 0; column < s.columns; ++column, in += s.lanes) {
      float* place = first + row * h_step + column * w_step;
      for (int64_t c = 0; c < s.channels; ++c) kernels::cpu::put_float(in[c], place + c * c_step);
    }
}

}  // namespace retrograd::engines::cpu
