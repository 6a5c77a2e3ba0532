// SPDX-License-Identifier: Apache-2.0
// Names of passes and operands, and which operands a pass reads and writes.
#include "problem/pass.h"

namespace retrograd::problem {

std::string_view name_of(Operand operand) {
  switch (operand) {
    case Operand::kGradOutput:
      return "grad_output";
    case Operand::kInput:
      return "input";
    case Operand::kWeight:
      return "weight";
    case Operand::kGradInput:
      return "grad_input";
    case Operand::kGradWeight:
      return "grad_weight";
    case Operand::kGradBias:
      return "grad_bias";
    case Operand::kBias:
      return "bias";
    case Operand::kOutput:
      return "output";
  }
  return "";
}

std::string_view name_of(const Pass& pass) {
  if (std::holds_alternative<BiasPass>(pass)) return "grad_bias";
  if (const auto* pool = std::get_if<AvgPoolPass>(&pass))
    return pool->forward ? "avgpool_forward" : "avgpool";
  switch (std::get<ConvPass>(pass).kind) {
    case ConvPassKind::kForward:
      return "forward";
    case ConvPassKind::kGradInput:
      return "grad_input";
    case ConvPassKind::kGradWeight:
      return "grad_weight";
  }
  return "";
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
