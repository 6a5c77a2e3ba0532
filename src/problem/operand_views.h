// SPDX-License-Identifier: Apache-2.0
// The tensors of a request, of any kind, indexed by operand.
#pragma once

#include <array>
#include <optional>

#include "problem/pass.h"
#include "problem/request.h"

namespace retrograd::problem {

using OperandViews = std::array<std::optional<TensorView>, kOperandCount>;

// nullopt where the request has no such operand, or does not ask for it.
inline OperandViews views_of(const Request& request) {
  OperandViews views;
  const auto place = [&](Operand operand, const std::optional<TensorView>& view) {
    views[static_cast<size_t>(operand)] = view;
  };
  std::visit(
      [&](const auto& r) {
        place(r.forward ? Operand::kOutput : Operand::kGradOutput, r.grad_output);
        place(Operand::kInput, r.input);
        if constexpr (requires { r.weight; }) {
          place(Operand::kWeight, r.weight);
          if (r.forward) place(Operand::kBias, r.bias);
        }
        if (r.forward) return;
        place(Operand::kGradInput, r.grad_input);
        if constexpr (requires { r.weight; }) {
          place(Operand::kGradWeight, r.grad_weight);
          place(Operand::kGradBias, r.grad_bias);
        }
      },
      request);
  return views;
}

}  // namespace retrograd::problem
