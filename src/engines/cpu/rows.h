// SPDX-License-Identifier: Apache-2.0
// Rows of elements of any type and stride, converted to FP32 while they are read and from it while they are
// written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "problem/pass.h"

namespace retrograd::engines::cpu {

// Whether the tensor's values are what the kernels compute with, so that it may be read in place.
inline bool is_plain(const problem::PassTensor& tensor, OperandRounding rounding) {
  return tensor.dtype == DType::kF32 && rounding == OperandRounding::kNone;
}

// out[i] = rounded(source[i·stride]), i < count; the stride counts elements.
void load_row(DType dtype, OperandRounding rounding, const std::byte* source, int64_t stride, int64_t count,
              float* out);
// destination[i·stride] = row[i·row_stride]
void store_row(DType dtype, std::byte* destination, int64_t stride, const float* row, int64_t row_stride,
               int64_t count);
// out[r·pitch + i] = rounded(source[r·step + i]), r < rows, i < count: rows whose elements follow each other.
void load_rows(DType dtype, OperandRounding rounding, const std::byte* source, int64_t step, int64_t rows,
               int64_t count, float* out, int64_t pitch);
// destination[r·step + i] = values[r·pitch + i]
void store_rows(DType dtype, std::byte* destination, int64_t step, const float* values, int64_t pitch,
                int64_t rows, int64_t count);
// destination[c·stride + r] = values[r·pitch + c] for r < rows, c < columns
void store_turned(DType dtype, std::byte* destination, int64_t stride, const float* values, int64_t pitch,
                  int64_t rows, int64_t columns);
bool all_finite(const float* values, int64_t count);

// A box of a tensor, places outside the tensor as zeros: out[c][d][h][w] for channels c < channels.
struct StripShape {
  int64_t channels = 0;
  int64_t channel_pitch = 0;        // floats from channel to channel of `out`; 0: plane()
  std::array<int64_t, 3> start{};   // place of the box in the tensor; may lie outside
  std::array<int64_t, 3> extent{};  // places in the box
  std::array<int64_t, 3> size{};    // of the tensor
  int64_t plane() const { return extent[0] * extent[1] * extent[2]; }
  int64_t pitch() const { return channel_pitch == 0 ? plane() : channel_pitch; }
};
// Whether channels lie together and places do not, so that a box of several channels is read in one go.
inline bool is_channels_last(const problem::PassTensor& tensor) {
  return tensor.strides[1] == 1 && tensor.strides[4] != 1;
}
// `source` is the address of channel 0 of the box, at place (0, 0, 0) of the tensor.
void load_strip(const problem::PassTensor& tensor, OperandRounding rounding, const std::byte* source,
                const StripShape& shape, float* out);

}  // namespace retrograd::engines::cpu
