// SPDX-License-Identifier: Apache-2.0
// The forward operators from their definitions, and gradients from those: shares no index arithmetic with
// src/.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "problem/request.h"
#include "support/operands.h"

namespace retrograd::test {

// One product of the forward operator: out[out] += scale · input[in] · weight[w], places in the order
// HostTensor::for_each walks. Pooling has no weight.
struct Term {
  size_t out, in, w;
  double scale = 1;
};
void for_each_term(const problem::Request& request, const std::function<void(const Term&)>& visit);

// One gradient, in the order HostTensor::for_each walks.
struct Gradient {
  std::vector<double> values;
  // Σ |terms| and the number of terms of each element: what an error bound is derived from. Empty where none
  // is asked for.
  std::vector<double> magnitudes;
  std::vector<int64_t> terms;

  void resize(size_t count, bool bounded);
  template <bool kBounded>
  void add(size_t at, double term) {
    values[at] += term;
    if constexpr (kBounded) {
      magnitudes[at] += std::abs(term);
      ++terms[at];
    }
  }
};
struct Gradients {
  Gradient grad_input, grad_weight, grad_bias;
  Gradient output;  // of a forward problem, which has nothing else
  // nullptr for an operand that is no result.
  const Gradient* find(problem::Operand operand) const {
    return operand == problem::Operand::kGradInput    ? &grad_input
           : operand == problem::Operand::kGradWeight ? &grad_weight
           : operand == problem::Operand::kGradBias   ? &grad_bias
           : operand == problem::Operand::kOutput     ? &output
                                                      : nullptr;
  }
};
// Sums the terms in double: exact for small integers, and what is not finite is NaN, Inf or -Inf as the terms
// say, since no sum of finite FP32 products leaves the range of double. Operands are rounded first where the
// request's math mode says so.
// Forward problems: the output by its definition, the bias one more term of each element.
Gradients gradients_by_scattering(const problem::Request& request, const Operands& operands);
// The same without what error bounds are derived from, in half the time.
Gradients exact_gradients(const problem::Request& request, const Operands& operands);

// Σ_out grad_output[out] · (forward(input, weight)[out] + bias[channel]), with operands given as flat vectors
// in the order of HostTensor::for_each.
struct Loss {
  Loss(const problem::Request& request, const Operands& operands);
  double operator()(const std::vector<double>& input, const std::vector<double>& weight,
                    const std::vector<double>& bias) const;
  std::vector<double> input, weight, bias, grad_output;

 private:
  std::vector<Term> terms_;
  std::vector<size_t> channel_of_output_;
};

// Where that index stands in the order of HostTensor::for_each.
size_t flat_index(const Dims& shape, const Dims& index);
// The axis of grad_output that is the channel: 2 for conv_tbc, else 1.
int channel_axis(const problem::Request& request);

}  // namespace retrograd::test
