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

// ---- windows of x as rows (im2col) or planes, the form in which forward or a grad_weight of few x channels
// is a product of one tap

// [batch · y places][groups][x channel][tap], each group filled up; zeros where a tap is beyond the edge.
// The rows are fewer than 2^31, the columns of a group at most kLongestPatch.
constexpr int64_t kLongestPatch = 1 << 21;
void make_patch_rows(const Conv& conv, RowType type, void* target, Stream stream);
// The same by a kernel for x whose places, not channels, lie side by side; not for others to call.
void make_patch_tiles(const Conv& conv, RowType type, void* target, Stream stream);

// [batch][groups][x channel][tap][y places]; an image has a whole number of 4 bytes of places.
void make_patch_planes(const Conv& conv, RowType type, void* target, Stream stream);

// Weights as [groups][y channel][x channel][tap], the last two filled up together; at most 2^38 of them.
void make_patch_weights(const Conv& conv, RowType type, void* target, Stream stream);

// The opposite (col2im), the second half of a grad_input whose taps are channels of a product: every pixel of
// x adds what the windows that hold it have for it. columns: [image][tap][x channel][place of y] in FP32. Of
// one group; x has fewer than 2^31 elements. A bias is added.
void add_columns(const Conv& conv, const float* columns, Stream stream);

// ---- from rows of channels and filters back to the caller's tensors

enum class Result : unsigned char { kForward, kGradInput, kGradWeight };

// Weights as [y channels filled up][taps][x channels of a group filled up], FP16 or BF16, fewer than 2^31 of
// them.
void make_filter(const Conv& conv, int64_t y_filled, int64_t x_filled, RowType type, void* target,
                 Stream stream);
void take_filter(const Conv& conv, int64_t y_filled, int64_t x_filled, RowType type, const void* source,
                 Stream stream);
// Rows of all channels of all groups, filled up at their end.
void take_rows(const Conv& conv, Result result, int64_t filled, RowType type, const void* rows,
               Stream stream);

}  // namespace retrograd::kernels::cuda
