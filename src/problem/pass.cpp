// SPDX-License-Identifier: Apache-2.0
// Names of passes and operands, and which operands a pass reads and writes.
#include "problem/pass.h"

namespace retrograd::problem {

std::string_view name_of(Operand operand) {
  static constexpr std::string_view kNames[] = {"grad_output", "input",     "weight", "grad_input",
                                                "grad_weight", "grad_bias", "bias",   "output"};
  return kNames[static_cast<size_t>(operand)];
}

std::string_view name_of(const Pass& pass) {
  static constexpr std::string_view kOfConvolutions[] = {"forward", "grad_input", "grad_weight"};
  if (const auto* conv = std::get_if<ConvPass>(&pass))
    return kOfConvolutions[static_cast<size_t>(conv->kind)];
  if (const auto* pool = std::get_if<AvgPoolPass>(&pass))
    return pool->forward ? "avgpool_forward" : "avgpool";
  return "grad_bias";
}

const PassTensor& result_of(const Pass& pass) {
  if (const auto* conv = std::get_if<ConvPass>(&pass)) return conv->result();
  if (const auto* bias = std::get_if<BiasPass>(&pass)) return bias->grad_bias;
  return std::get<AvgPoolPass>(pass).result();
}

bool reads(const Pass& pass, Operand operand) {
  if (result_of(pass).operand == operand) return false;
  if (const auto* conv = std::get_if<ConvPass>(&pass))
    return conv->x.operand == operand || conv->y.operand == operand || conv->w.operand == operand ||
           (conv->bias && conv->bias->operand == operand);
  if (const auto* pool = std::get_if<AvgPoolPass>(&pass))
    return pool->x.operand == operand || pool->y.operand == operand;
  return operand == Operand::kGradOutput;
}

}  // namespace retrograd::problem
