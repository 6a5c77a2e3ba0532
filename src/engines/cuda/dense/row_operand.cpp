// SPDX-License-Identifier: Apache-2.0
// Operands that are rows of channels already are read in place, others are copied.
#include "engines/cuda/dense/row_operand.h"

#include "base/checked.h"

namespace retrograd::engines::cuda {

using kernels::cuda::ProductMath;
using kernels::cuda::RowType;

DType dtype_of(RowType type) {
  return type == RowType::kF16 ? DType::kF16 : type == RowType::kBF16 ? DType::kBF16 : DType::kF32;
}

RowType row_type(const problem::ConvPass& pass, const problem::PassTensor& a, const problem::PassTensor& b) {
  const auto in_f16 = [&](const problem::PassTensor& t) {
    return t.dtype == DType::kF16 || is_8bit(t.dtype) ||
           (t.dtype == DType::kF32 && pass.rounding == OperandRounding::kF16);
  };
  if (in_f16(a) && in_f16(b)) return RowType::kF16;
  if (a.dtype == DType::kBF16 && b.dtype == DType::kBF16) return RowType::kBF16;
  return RowType::kF32;
}

// FP32 operands of 10 mantissa bits are TF32 numbers already.
ProductMath math_of(RowType type, OperandRounding rounding) {
  switch (type) {
    case RowType::kF16:
      return ProductMath::kF16;
    case RowType::kBF16:
      return ProductMath::kBF16;
    case RowType::kF32:
      break;
  }
  return rounding == OperandRounding::kHf32Bits10 ? ProductMath::kTF32 : ProductMath::kF32;
}
const char* name_of(ProductMath math) {
  switch (math) {
    case ProductMath::kF16:
      return "f16";
    case ProductMath::kBF16:
      return "bf16";
    case ProductMath::kTF32:
      return "tf32";
    case ProductMath::kF32:
      break;
  }
  return "three tf32";
}

size_t room_for(int64_t elements, RowType type) {
  return (static_cast<size_t>(elements) * kernels::cuda::row_element_bytes(type) + 255) / 256 * 256;
}

RowOperand row_operand(const problem::ConvPass& pass, const problem::PassTensor& tensor, const Sizes5& sizes,
                       RowType type) {
  const int64_t channels = sizes[1] / pass.groups, chunk = kernels::cuda::chunk_elements(type);
  RowOperand operand;
  operand.filled = ceil_div(channels, chunk) * chunk;
  operand.in_place = tensor.dtype == dtype_of(type) && channels % chunk == 0 &&
                     is_channels_last(tensor, sizes) && !is_rounded(pass, tensor.dtype);
  const int64_t elements = sizes[0] * sizes[2] * sizes[3] * sizes[4] * pass.groups * operand.filled;
  if (!operand.in_place) operand.bytes = room_for(elements, type);
  return operand;
}

const void* rows_of(const RowOperand& operand, const kernels::cuda::Conv& conv,
                    const kernels::cuda::Tensor& tensor, bool is_x, RowType type, std::byte* workspace,
                    kernels::cuda::Stream stream) {
  if (operand.in_place) return tensor.data;
  make_rows(conv, tensor, is_x, type, workspace, stream);
  return workspace;
}

void make_rows(const kernels::cuda::Conv& conv, const kernels::cuda::Tensor& tensor, bool is_x, RowType type,
               std::byte* target, kernels::cuda::Stream stream) {
  kernels::cuda::Rows rows{};
  rows.batch = conv.batch;
  rows.groups = conv.groups;
  rows.channels = is_x ? conv.x_channels : conv.y_channels;
  for (int i = 0; i < 3; ++i) rows.spatial[i] = is_x ? conv.axes[i].x : conv.axes[i].y;
  rows.source = tensor;
  rows.rounding = conv.rounding;
  kernels::cuda::make_rows(rows, type, target, stream);
}

std::string_view name_of_rows(RowType type, OperandRounding rounding) {
  if (type != RowType::kF32) return type == RowType::kF16 ? "f16 rows" : "bf16 rows";
  switch (rounding) {
    case OperandRounding::kNone:
      return "f32 rows";
    case OperandRounding::kF16:
      return "f32 rows of f16";
    case OperandRounding::kHf32Bits11:
      return "f32 rows of 11 bits";
    case OperandRounding::kHf32Bits10:
      break;
  }
  return "f32 rows of 10 bits";
}

}  // namespace retrograd::engines::cuda
