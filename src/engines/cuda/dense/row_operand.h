// SPDX-License-Identifier: Apache-2.0
// One operand of a product of rows, x or y: whether it lies as rows of channels already, or is copied.
#pragma once

#include <string_view>

#include "engines/cuda/layouts.h"
#include "kernels/cuda/layout/channel_rows.h"
#include "kernels/cuda/shapes.h"
#include "problem/pass.h"

namespace retrograd::engines::cuda {

struct RowOperand {
  bool in_place = false;  // it is rows already
  int64_t filled = 0;     // channels of a group
  size_t bytes = 0;       // of the workspace
};
RowOperand row_operand(const problem::ConvPass& pass, const problem::PassTensor& tensor, const Sizes5& sizes,
                       kernels::cuda::RowType type);

// Bytes of so many elements, in whole 256s.
size_t room_for(int64_t elements, kernels::cuda::RowType type);

// The address of the rows: the operand itself, or where they have been made.
const void* rows_of(const RowOperand& operand, const kernels::cuda::Conv& conv,
                    const kernels::cuda::Tensor& tensor, bool is_x, kernels::cuda::RowType type,
                    std::byte* workspace, kernels::cuda::Stream stream);

// Rows of x or of y, rounded as the pass says.
void make_rows(const kernels::cuda::Conv& conv, const kernels::cuda::Tensor& tensor, bool is_x,
               kernels::cuda::RowType type, std::byte* target, kernels::cuda::Stream stream);

// What a step leaves for the next one: rows of grad_output, rounded as both want them.
std::string_view name_of_rows(kernels::cuda::RowType type, OperandRounding rounding);

DType dtype_of(kernels::cuda::RowType type);
// The narrowest type that holds two operands exactly, and how it is multiplied.
kernels::cuda::RowType row_type(const problem::ConvPass& pass, const problem::PassTensor& a,
                                const problem::PassTensor& b);
kernels::cuda::ProductMath math_of(kernels::cuda::RowType type, OperandRounding rounding);
const char* name_of(kernels::cuda::ProductMath math);

}  // namespace retrograd::engines::cuda
