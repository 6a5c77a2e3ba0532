// SPDX-License-Identifier: Apache-2.0
// The gradients by their definitions, in double: loops over the forward operator's terms, written for these
// tests and sharing nothing with the library.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace retrograd::infini_test {

using Axes = std::array<int64_t, 3>;

// Puts 1 to 3 numbers behind as many `fill`s as make three.
Axes axes(const std::vector<size_t>& shape_with_n_c, int64_t fill);
Axes axes(const std::vector<int>& values, int64_t fill);

struct ConvFormula {
  std::vector<size_t> input, weight, grad_output;  // shapes (N, C, spatial…)
  Axes stride, pad, dilation;                      // pad in front
  int64_t groups = 1;
  bool transposed = false;
};
struct ConvGradients {
  std::vector<double> input, weight, bias;
};
ConvGradients gradients(const ConvFormula& formula, const std::vector<double>& grad_output,
                        const std::vector<double>& input, const std::vector<double>& weight);

struct PoolFormula {
  std::vector<size_t> input, grad_output;
  Axes kernel, stride, pad;
  bool count_include_pad = true;
  int64_t divisor_override = 0;
};
std::vector<double> grad_input(const PoolFormula& formula, const std::vector<double>& grad_output);

// One spatial axis of the forward operators' outputs.
size_t conv_size(size_t in, size_t kernel, int pad, int stride, int dilation);
size_t pool_size(size_t in, size_t kernel, size_t stride, size_t pad, bool ceil_mode);

}  // namespace retrograd::infini_test
