// SPDX-License-Identifier: Apache-2.0
// One operand of a product of rows, x or y: whether it lies as rows of channels already, or is copied.
#pragma once

#include <memory>
#include <vector>

#include "engines/cuda/layouts.h"
#include "engines/engine.h"
#include "kernels/cuda/layout/channel_rows.h"
#include "kernels/cuda/shapes.h"

namespace retrograd::engines::cuda {

struct RowOperand {
  bool in_place = false;  // it is rows already
  int64_t filled = 0;     // channels of a group
  size_t bytes = 0;       // of the workspace
};
RowOperand row_operand(const ConvPass& pass, const PassTensor& tensor, const Sizes5& sizes,
                       kernels::cuda::RowType type);

// Bytes of so many elements, in whole 256s.
size_t room_for(int64_t elements, kernels::cuda::RowType type);

// Conversions of x and y to rows, rounded as the pass says; of no bytes: there is none. grad_output's comes
// first: another step may read the same.
struct RowConversions {
  RowConversions(const ConvPass& pass, kernels::cuda::RowType type, size_t x_bytes, size_t y_bytes);
  std::vector<std::unique_ptr<const Conversion>> all;
  size_t x_at = 0, y_at = 0, bytes = 0;  // in the workspace
};

// The narrowest type that holds two operands exactly, and how it is multiplied.
kernels::cuda::RowType row_type(const ConvPass& pass, const PassTensor& a, const PassTensor& b);
// Of what a pass reads. FP16 holds both 8-bit types.
kernels::cuda::RowType row_type_of(const ConvPass& pass);
// Of passes in one 16-bit type.
kernels::cuda::RowType half_row_type(const ConvPass& pass);
kernels::cuda::ProductMath math_of(kernels::cuda::RowType type, OperandRounding rounding);
const char* name_of(kernels::cuda::ProductMath math);

}  // namespace retrograd::engines::cuda
