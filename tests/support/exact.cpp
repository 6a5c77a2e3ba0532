// SPDX-License-Identifier: Apache-2.0
// Comparing bits, or values, element by element.
#include "support/exact.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/tolerance.h"

namespace retrograd::test {
namespace {

using problem::Operand;

uint32_t bits_of(DType dtype, double value) {
  uint32_t word = 0;
  store_from_f32(dtype, &word, static_cast<float>(value));
  return word;
}

void expect_exact(const std::optional<HostTensor>& result, const std::vector<double>& exact,
                  Operand operand) {
  if (!result) return;
  const DType dtype = result->view().dtype;
  const std::vector<uint32_t> bits = result->bits();
  ASSERT_EQ(bits.size(), exact.size()) << name_of(operand);
  for (size_t i = 0; i < bits.size(); ++i)
    ASSERT_EQ(bits[i], bits_of(dtype, exact[i])) << name_of(operand) << " element " << i << " of type "
                                                 << name_of(dtype) << ", exact value " << exact[i];
  EXPECT_TRUE(result->gaps_untouched()) << name_of(operand) << ": bytes between the elements were written";
}

void expect_near(const std::optional<HostTensor>& result, const std::vector<double>& exact, Operand operand) {
  if (!result) return;
  double largest = 0;
  for (const double value : exact) largest = std::max(largest, std::abs(value));
  const double bound = reduced_precision_bound(largest);
  size_t i = 0;
  result->for_each([&](const Dims& index) {
    EXPECT_NEAR(result->get(index), exact[i], bound) << name_of(operand) << "[" << to_string(index) << "]";
    ++i;
  });
  EXPECT_TRUE(result->gaps_untouched()) << name_of(operand) << ": bytes between the elements were written";
}

}  // namespace

void expect_exact(const Operands& operands, const Gradients& exact) {
  for (Operand operand : kResults) expect_exact(operands[operand], exact.find(operand)->values, operand);
}

void expect_near(const Operands& operands, const Gradients& exact) {
  for (Operand operand : kResults) expect_near(operands[operand], exact.find(operand)->values, operand);
}

bool allows_reduced_precision(const problem::Problem& problem) {
  return std::any_of(problem.passes.begin(), problem.passes.end(), [](const problem::Pass& pass) {
    const auto* conv = std::get_if<problem::ConvPass>(&pass);
    return conv != nullptr && conv->winograd_allowed;
  });
}

}  // namespace retrograd::test
