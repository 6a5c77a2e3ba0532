// SPDX-License-Identifier: Apache-2.0
// Rewrites a judged convolution as passes: transposed by exchange of roles, missing axes as unit axes.
#include "problem/conv_canonical.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace retrograd::problem {
namespace {

PassTensor pass_tensor(Operand operand, const TensorView& view) {
  return {operand, view.dtype, strides_5d(view)};
}

bool has_elements(const TensorView& view) { return element_count(view.shape).value_or(0) > 0; }

// One number for each channel.
PassTensor channel_tensor(Operand operand, const TensorView& view) {
  return {operand, view.dtype, {0, view.shape[0] > 1 ? view.strides[0] : 1, 0, 0, 0}};
}

BiasPass bias_pass(const ConvCanonical& conv) {
  BiasPass bias;
  // Nobody walks an enormous batch of nothing.
  bias.batch = has_elements(*conv.grad_output) ? conv.grad_output->shape[0] : 0;
  bias.channels = conv.grad_output->shape[1];
  const int missing = 5 - conv.grad_output->shape.rank();
  for (int axis = missing; axis < 3; ++axis)
    bias.spatial[static_cast<size_t>(axis)] = conv.grad_output->shape[axis - missing + 2];
  bias.grad_output = pass_tensor(Operand::kGradOutput, *conv.grad_output);
  bias.grad_bias = channel_tensor(Operand::kGradBias, *conv.grad_bias);
  return bias;
}

// y = x ⋆ w, or its adjoint where the convolution is transposed.
ConvPass forward_pass(const ConvCanonical& conv, ConvPass pass) {
  pass.kind = conv.transposed ? ConvPassKind::kGradInput : ConvPassKind::kForward;
  pass.batch = conv.grad_output->shape[0];
  pass.x = pass_tensor(Operand::kInput, *conv.input);
  pass.y = pass_tensor(Operand::kOutput, *conv.grad_output);
  if (conv.transposed) std::swap(pass.x, pass.y);
  pass.w = pass_tensor(Operand::kWeight, *conv.weight);
  if (conv.bias != nullptr) pass.bias = channel_tensor(Operand::kBias, *conv.bias);
  return pass;
}

std::vector<Pass> make_passes(const ConvCanonical& conv) {
  // y = x ⋆ w is the plain convolution underneath. Transposed: what was the output is the wide side x, what
  // was the input is y, so that gradInput is a forward pass and gradWeight keeps its form with the operands
  // exchanged.
  const TensorView& x_side = *(conv.transposed ? conv.grad_output : conv.input);
  const TensorView& y_side = *(conv.transposed ? conv.input : conv.grad_output);
  ConvPass base;
  base.batch = has_elements(*conv.input) ? conv.input->shape[0] : 0;
  base.groups = conv.groups;
  base.x_channels = x_side.shape[1];
  base.y_channels = y_side.shape[1];
  base.axes = conv.axes;
  base.rounding = conv.rounding;
  base.winograd_allowed = conv.winograd_allowed;
  base.hf32_allowed = conv.hf32_allowed;

  std::vector<Pass> passes;
  if (conv.forward) {
    if (has_elements(*conv.grad_output)) passes.emplace_back(forward_pass(conv, base));
    return passes;
  }
  passes.reserve(3);
  const PassTensor grad_output = pass_tensor(Operand::kGradOutput, *conv.grad_output);
  if (conv.grad_input != nullptr && has_elements(*conv.grad_input)) {
    ConvPass pass = base;
    pass.kind = conv.transposed ? ConvPassKind::kForward : ConvPassKind::kGradInput;
    const PassTensor grad_input = pass_tensor(Operand::kGradInput, *conv.grad_input);
    pass.x = conv.transposed ? grad_output : grad_input;
    pass.y = conv.transposed ? grad_input : grad_output;
    pass.w = pass_tensor(Operand::kWeight, *conv.weight);
    passes.emplace_back(pass);
  }
  if (conv.grad_weight != nullptr && has_elements(*conv.grad_weight)) {
    ConvPass pass = base;
    pass.kind = ConvPassKind::kGradWeight;
    const PassTensor input = pass_tensor(Operand::kInput, *conv.input);
    pass.x = conv.transposed ? grad_output : input;
    pass.y = conv.transposed ? input : grad_output;
    pass.w = pass_tensor(Operand::kGradWeight, *conv.grad_weight);
    passes.emplace_back(pass);
  }
  if (conv.grad_bias != nullptr && has_elements(*conv.grad_bias)) passes.emplace_back(bias_pass(conv));
  return passes;
}

}  // namespace

void fill_problem(const ConvCanonical& conv, const ConvNames& names, Problem& problem) {
  problem.passes = make_passes(conv);
  const auto note = [&](Operand operand, const char* name, const TensorView* view) {
    if (view != nullptr) problem.facts(operand) = facts_of(name, *view);
  };
  note(conv.forward ? Operand::kOutput : Operand::kGradOutput, names.grad_output, conv.grad_output);
  note(Operand::kInput, names.input, conv.input);
  note(Operand::kWeight, names.weight, conv.weight);
  note(Operand::kBias, names.bias, conv.bias);
  note(Operand::kGradInput, names.grad_input, conv.grad_input);
  note(Operand::kGradWeight, names.grad_weight, conv.grad_weight);
  note(Operand::kGradBias, names.grad_bias, conv.grad_bias);
}

OperandFacts facts_of(const char* name, const TensorView& view) {
  OperandFacts facts{.name = name};
  const auto range = offset_range(view);
  if (!range || !has_elements(view)) return facts;
  const auto width = static_cast<int64_t>(size_of(view.dtype));
  facts.lowest_byte = range->lowest * width;
  facts.end_byte = (range->highest + 1) * width;
  return facts;
}

TensorView permuted(const TensorView& view, std::initializer_list<int> order) {
  TensorView result = view;
  result.shape = {};
  result.strides = {};
  for (int axis : order) {
    result.shape.push_back(view.shape[axis]);
    result.strides.push_back(view.strides[axis]);
  }
  return result;
}

Strides5 strides_5d(const TensorView& view) {
  if (!has_elements(view)) return {};
  const OffsetRange range = offset_range(view).value_or(OffsetRange{});
  const int64_t span = range.highest - range.lowest + 1;
  const auto stride = [&](int axis) {
    return view.shape[axis] > 1 ? view.strides[axis] : std::clamp(view.strides[axis], -span, span);
  };
  Strides5 strides{stride(0), stride(1), 0, 0, 0};
  const int missing = 5 - view.shape.rank();
  for (int axis = 2; axis < view.shape.rank(); ++axis)
    strides[static_cast<size_t>(axis + missing)] = stride(axis);
  return strides;
}

Result<OperandRounding> choose_rounding(const ConvMath& math, const char* name, DType compute,
                                        std::vector<std::string>& warnings) {
  if (math.mode < 0 || math.mode > 3)
    return Status(Code::kInvalidArgument,
                  "{} is {}, expected 0 (KEEP_DTYPE), 1 (ALLOW_FP32_DOWN_PRECISION), 2 (USE_FP16) or "
                  "3 (USE_HF32)",
                  name, math.mode);
  if (math.mode == 2 && compute == DType::kBF16)
    return Status(Code::kBadDtype, "{} is 2 (USE_FP16), which bf16 operands do not allow: use 0, 1 or 3",
                  name);
  if (math.mode == 3 && (compute == DType::kF16 || compute == DType::kBF16))
    warnings.push_back(
        fmt::format("{} is 3 (USE_HF32), which changes nothing for {} operands", name, name_of(compute)));
  if (compute != DType::kF32) return OperandRounding::kNone;
  const auto hf32 =
      math.hf32_mantissa_bits == 10 ? OperandRounding::kHf32Bits10 : OperandRounding::kHf32Bits11;
  if (math.mode == 1 && math.product)
    return *math.product == Product::kTraining ? OperandRounding::kF16 : hf32;
  if (math.mode == 2) return OperandRounding::kF16;
  return math.mode == 3 ? hf32 : OperandRounding::kNone;
}

Status expect_rank(const TensorView& view, int rank, const char* name, const char* why) {
  if (view.shape.rank() == rank) return Status::ok();
  return Status(Code::kBadShape, "{}.shape has rank {} ({}), expected {}: {}", name, view.shape.rank(),
                to_string(view.shape), rank, why);
}

Status expect_shape(const TensorView& view, const Dims& shape, const char* name, const char* why) {
  RG_CHECK(expect_rank(view, shape.rank(), name, why));
  for (int i = 0; i < shape.rank(); ++i)
    if (view.shape[i] != shape[i])
      return Status(Code::kBadShape, "{}.shape[{}] is {}, expected {}: {}", name, i, view.shape[i], shape[i],
                    why);
  return Status::ok();
}

}  // namespace retrograd::problem
