// SPDX-License-Identifier: Apache-2.0
// Average pooling over the full grid ceil × count_include_pad × divisor × overhang, 1-D to 3-D, against
// differences of an independent forward.
#include <gtest/gtest.h>

#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "engines/machines.h"
#include "engines/registry.h"
#include "problem/problem_text.h"
#include "problem/window.h"
#include "support/legal_problem.h"
#include "support/operands.h"
#include "support/oracle.h"
#include "support/tolerance.h"

namespace retrograd::test {
namespace {

using problem::AvgPoolRequest;
using problem::Operand;

struct AxisCase {
  int64_t size, kernel, stride, pad;
};
// Exact fit; overhang of 1 and more in ceil mode; last window wholly in the right padding; kernel = size;
// stride > kernel.
constexpr AxisCase kAxes[] = {{6, 2, 2, 0}, {5, 2, 2, 0}, {7, 3, 2, 1}, {6, 4, 3, 2},
                              {4, 2, 3, 1}, {5, 5, 1, 0}, {7, 2, 4, 0}, {8, 5, 4, 2}};

AvgPoolRequest request_for(const std::vector<AxisCase>& axes, bool ceil, bool include_pad, int64_t divisor,
                           bool uncorrected) {
  AvgPoolRequest r;
  r.ceil_mode = ceil;
  r.count_include_pad = include_pad;
  r.divisor_override = divisor;
  r.uncorrected_ceil_sizes = uncorrected;
  Dims input{1, 2}, grad_output{1, 2};
  for (const AxisCase& axis : axes) {
    r.kernel.push_back(axis.kernel);
    r.stride.push_back(axis.stride);
    r.padding.push_back(axis.pad);
    input.push_back(axis.size);
    grad_output.push_back(
        *problem::pool_output_size({axis.size, 0, axis.kernel, axis.stride, axis.pad}, ceil, !uncorrected));
  }
  r.input = r.grad_input = problem::dense_view(DType::kF32, input);
  r.grad_output = problem::dense_view(DType::kF32, grad_output);
  return r;
}

// Every candidate of every device that takes the pass.
std::vector<std::pair<runtime::Device*, const engines::Candidate*>> takers(const problem::Pass& pass) {
  std::vector<std::pair<runtime::Device*, const engines::Candidate*>> all;
  for (runtime::Device* device : devices_under_test())
    for (const engines::Candidate* candidate : engines::candidates(device->kind()))
      if (candidate->supports(pass, engines::machine_of(*device)).accepted())
        all.emplace_back(device, candidate);
  return all;
}

void check(const AvgPoolRequest& pool, std::mt19937_64& random) {
  const problem::Request request = pool;
  SCOPED_TRACE(problem::to_text(request));
  const problem::Problem problem = legal_problem(request);
  Operands operands(request);
  operands.fill_normal(random, 1.0);
  const Loss loss(request, operands);
  const double base = loss(loss.input, loss.weight, loss.bias);
  const Gradients scattered = gradients_by_scattering(request, operands);
  for (const auto& [device, candidate] : takers(problem.passes.at(0))) {
    SCOPED_TRACE(candidate->name());
    operands.poison_results();
    const engines::Candidate* const only[] = {candidate};
    ASSERT_TRUE(run_on(*device, problem, operands, only).is_ok());
    const bool in_double = std::string_view(candidate->name()) == "reference";
    const auto accumulation = in_double ? Accumulation::kDouble : Accumulation::kFloat;
    size_t i = 0;
    operands[Operand::kGradInput]->for_each([&](const Dims& index) {
      std::vector<double> moved = loss.input;
      moved[i] += 1;
      const double quotient = loss(moved, loss.weight, loss.bias) - base;
      // As in numeric_differentiation_test.cpp: the noise of the two losses, far below one unit of FP32.
      const double noise = std::ldexp(1.0 + std::abs(base) + std::abs(quotient), -40);
      const double bound = sum_bound(DType::kF32, quotient, scattered.grad_input.magnitudes[i],
                                     scattered.grad_input.terms[i] + 1, accumulation);
      EXPECT_NEAR(operands[Operand::kGradInput]->get(index), quotient, bound + noise)
          << "grad_input[" << to_string(index) << "]";
      ++i;
    });
  }
}

class AvgPoolGridTest : public testing::TestWithParam<int> {};

TEST_P(AvgPoolGridTest, EveryCombination) {
  const int axes = GetParam();
  std::mt19937_64 random(static_cast<uint64_t>(axes));
  int checked = 0;
  for (size_t first = 0; first < std::size(kAxes); ++first) {
    std::vector<AxisCase> chosen;
    for (int a = 0; a < axes; ++a)
      chosen.push_back(kAxes[(first + 3 * static_cast<size_t>(a)) % std::size(kAxes)]);
    for (bool ceil : {false, true})
      for (bool include_pad : {false, true})
        for (int64_t divisor : {0, 1, 5, -3})
          for (bool uncorrected : {false, true}) {
            check(request_for(chosen, ceil, include_pad, divisor, uncorrected), random);
            if (HasFailure()) return;
            ++checked;
          }
  }
  EXPECT_EQ(checked, 8 * 2 * 2 * 4 * 2);
}
INSTANTIATE_TEST_SUITE_P(Axes, AvgPoolGridTest, testing::Values(1, 2, 3));

double last_gradient(const char* text) {
  const problem::Request request = problem::parse_request(text).value();
  Operands operands(request);
  operands[Operand::kGradOutput]->for_each(
      [&](const Dims& i) { operands[Operand::kGradOutput]->set(i, 1.0); });
  EXPECT_TRUE(run_on_cpu(legal_problem(request), operands).is_ok());
  const HostTensor& result = *operands[Operand::kGradInput];
  return result.get({0, 0, result.view().shape[2] - 1});
}

TEST(AvgPoolTest, AnOverhangingWindowDividesByWhatItCovers) {
  EXPECT_EQ(last_gradient("avgpool input=1x1x5 kernel=2 stride=2 ceil=1"), 1.0);
  EXPECT_EQ(last_gradient("avgpool input=1x1x6 kernel=2 stride=2 ceil=1"), 0.5);
}

TEST(AvgPoolTest, APlaceNoWindowTouchesGetsZero) {
  EXPECT_EQ(last_gradient("avgpool input=1x1x7 kernel=2 stride=2"), 0.0);
}

TEST(AvgPoolTest, AWindowBeyondThePaddingContributesNothing) {
  // Without the last-window correction the second window starts at 3 = x + pad: it covers no place.
  const double with =
      last_gradient("avgpool input=1x1x3 kernel=1 stride=3 ceil=1 rules=infiniop grad_output=1x1x1");
  EXPECT_EQ(with, 0.0);
  EXPECT_EQ(last_gradient(
                "avgpool input=1x1x4 kernel=2 stride=5 padding=1 ceil=1 rules=infiniop grad_output=1x1x2"),
            0.0);
}

}  // namespace
}  // namespace retrograd::test
