// SPDX-License-Identifier: Apache-2.0
// Operands as rows of channels, the form the matrix products read: a row a pixel, the channels of a group
// side by side and filled up with zeros to whole 16-byte chunks.
#pragma once

#include <cstddef>

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// The type products are made in.
enum class RowType : unsigned char { kF16, kBF16, kF32 };
inline DType dtype_of(RowType type) {
  return type == RowType::kF16 ? DType::kF16 : type == RowType::kBF16 ? DType::kBF16 : DType::kF32;
}

// How products of rows are made: FP32 rows as three TF32 products, which keeps FP32's accuracy, or as one.
enum class ProductMath : unsigned char { kF16, kBF16, kTF32, kF32 };

inline int64_t chunk_elements(RowType type) { return type == RowType::kF32 ? 4 : 8; }
inline int64_t chunk_elements(ProductMath math) {
  return math == ProductMath::kF16 || math == ProductMath::kBF16 ? 8 : 4;
}
inline size_t row_element_bytes(RowType type) { return type == RowType::kF32 ? 4 : 2; }

// What is read, and how.
struct Elements {
  const void* data;
  DType dtype;
  OperandRounding rounding;
};

struct Rows {
  int64_t batch, groups, channels;  // a group's
  int64_t spatial[3];
  Tensor source;
  OperandRounding rounding;
};

// [batch·spatial][groups][channels filled up]
void make_rows(const Rows& rows, RowType type, void* target, Stream stream);

// Weights as [groups][taps][rows][channels filled up]; the rows are the result's channels. by_y: rows are x
// channels and channels y channels (grad_input); else rows are y channels and channels x channels (forward).
void make_weight_rows(const Conv& conv, bool by_y, RowType type, void* target, Stream stream);

// make_rows for FP32 planes whose pixels lie side by side.
// False, and nothing done, where the source is something else.
bool make_rows_of_planes(const Rows& rows, float* target, Stream stream);

}  // namespace retrograd::kernels::cuda
