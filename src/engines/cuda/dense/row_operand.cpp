// SPDX-License-Identifier: Apache-2.0
// Operands that are rows of channels already are read in place, others are copied.
#include "engines/cuda/dense/row_operand.h"

#include <fmt/format.h>

#include "base/checked.h"
#include "engines/cuda/shapes.h"

namespace retrograd::engines::cuda {

using kernels::cuda::ProductMath;
using kernels::cuda::RowType;

RowType row_type(const ConvPass& pass, const PassTensor& a, const PassTensor& b) {
  const auto in_f16 = [&](const PassTensor& t) {
    return t.dtype == DType::kF16 || is_8bit(t.dtype) ||
           (t.dtype == DType::kF32 && pass.rounding == OperandRounding::kF16);
  };
  if (in_f16(a) && in_f16(b)) return RowType::kF16;
  if (a.dtype == DType::kBF16 && b.dtype == DType::kBF16) return RowType::kBF16;
  return RowType::kF32;
}

RowType half_row_type(const ConvPass& pass) {
  return pass.x.dtype == DType::kF16 ? RowType::kF16 : RowType::kBF16;
}
RowType row_type_of(const ConvPass& pass) {
  switch (pass.kind) {
    case ConvPassKind::kForward:
      return row_type(pass, pass.x, pass.w);
    case ConvPassKind::kGradInput:
      return row_type(pass, pass.y, pass.w);
    case ConvPassKind::kGradWeight:
      break;
  }
  return row_type(pass, pass.x, pass.y);
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
  static constexpr const char* kNames[] = {"f16", "bf16", "tf32", "three tf32"};
  return kNames[static_cast<size_t>(math)];
}

size_t room_for(int64_t elements, RowType type) {
  return room_of(static_cast<size_t>(elements) * kernels::cuda::row_element_bytes(type));
}

RowOperand row_operand(const ConvPass& pass, const PassTensor& tensor, const Sizes5& sizes, RowType type) {
  const int64_t channels = sizes[1] / pass.groups, chunk = kernels::cuda::chunk_elements(type);
  RowOperand operand;
  operand.filled = ceil_div(channels, chunk) * chunk;
  operand.in_place = tensor.dtype == dtype_of(type) && channels % chunk == 0 &&
                     is_channels_last(tensor, sizes) && !is_rounded(pass, tensor.dtype);
  const int64_t elements = sizes[0] * sizes[2] * sizes[3] * sizes[4] * pass.groups * operand.filled;
  if (!operand.in_place) operand.bytes = room_for(elements, type);
  return operand;
}

namespace {

const char* text_of(OperandRounding rounding) {
  static constexpr const char* kTexts[] = {"", " rounded to f16", " rounded to 11 bits",
                                           " rounded to 10 bits"};
  return kTexts[static_cast<size_t>(rounding)];
}

kernels::cuda::Rows rows_of(const ConvPass& pass, bool is_x) {
  const Conv conv = shape_of(pass);
  kernels::cuda::Rows rows{};
  rows.batch = conv.batch;
  rows.groups = conv.groups;
  rows.channels = is_x ? conv.x_channels : conv.y_channels;
  for (int i = 0; i < 3; ++i) rows.spatial[i] = is_x ? conv.axes[i].x : conv.axes[i].y;
  rows.source = is_x ? conv.x : conv.y;
  rows.rounding = conv.rounding;
  return rows;
}

class RowConversion final : public Conversion {
 public:
  RowConversion(const ConvPass& pass, bool is_x, RowType type, size_t bytes)
      : Conversion(fmt::format("{} as {} rows of {}{}", name_of((is_x ? pass.x : pass.y).operand),
                               retrograd::name_of(dtype_of(type)),
                               fmt::join(is_x ? x_sizes(pass) : y_sizes(pass), "x"),
                               type == RowType::kF32 ? text_of(pass.rounding) : ""),
                   bytes),
        rows_(rows_of(pass, is_x)),
        operand_((is_x ? pass.x : pass.y).operand),
        type_(type) {}
  void run(const Bindings& bindings, std::byte* target, runtime::ExecutionContext& context) const override {
    kernels::cuda::Rows rows = rows_;
    rows.source.data = bindings[operand_];
    kernels::cuda::make_rows(rows, type_, target, stream_of(context));
  }

 private:
  kernels::cuda::Rows rows_;  // without an address
  problem::Operand operand_;
  RowType type_;
};

}  // namespace

RowConversions::RowConversions(const ConvPass& pass, RowType type, size_t x_bytes, size_t y_bytes)
    : bytes(x_bytes + y_bytes) {
  const bool x_first = pass.x.operand == problem::Operand::kGradOutput;
  (x_first ? y_at : x_at) = x_first ? x_bytes : y_bytes;
  for (const bool is_x : {x_first, !x_first})
    if (const size_t one = is_x ? x_bytes : y_bytes; one > 0)
      all.push_back(std::make_unique<RowConversion>(pass, is_x, type, one));
}

}  // namespace retrograd::engines::cuda
