// SPDX-License-Identifier: Apache-2.0
// Random data in every type: each candidate within the bound derived from type, length and magnitude.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engines/machines.h"
#include "engines/registry.h"
#include "problem/problem_text.h"
#include "support/generator/problem_generator.h"
#include "support/legal_problem.h"
#include "support/operands.h"
#include "support/oracle.h"
#include "support/verdict.h"

namespace retrograd::test {
namespace {

using problem::Operand;

// Once for every candidate, that one first for the passes it accepts; the reference adds in double, the
// others in FP32.
void check(const problem::Request& request, std::mt19937_64& random) {
  SCOPED_TRACE(problem::to_text(request));
  const problem::Problem problem = legal_problem(request);
  Operands operands(request);
  operands.fill_normal(random, 1.0);
  const Gradients exact = gradients_by_scattering(request, operands);
  for (runtime::Device* device : devices_under_test()) {
    const auto all = engines::candidates(device->kind());
    for (const engines::Candidate* candidate : all) {
      SCOPED_TRACE(candidate->name());
      const auto accepts = [&](const problem::Pass& pass) {
        return candidate->supports(pass, engines::machine_of(*device)).accepted();
      };
      if (std::none_of(problem.passes.begin(), problem.passes.end(), accepts)) continue;
      operands.poison_results();
      const auto order = with_the_exact_behind(*candidate, all);
      const Status status = run_on(*device, problem, operands, order);
      ASSERT_TRUE(status.is_ok()) << status.message();
      const Standard standard = standard_for(*candidate, device->kind(), {});
      for (Operand operand : kResults) {
        if (!operands[operand]) continue;
        const auto error = find_error(*operands[operand], *exact.find(operand), standard);
        EXPECT_FALSE(error.has_value()) << name_of(operand) << ": " << error.value_or("");
      }
    }
  }
}

TEST(RandomDataTest, ConvolutionsOfEveryTypeAndMathMode) {
  std::mt19937_64 random(42);
  ProblemGenerator generator(42, {.forward = 30});
  for (int i = 0; i < 200 && !HasFailure(); ++i) check(*to_request(generator.conv()), random);
}

TEST(RandomDataTest, ConvTbc) {
  std::mt19937_64 random(43);
  ProblemGenerator generator(43, {.forward = 30});
  for (int i = 0; i < 100 && !HasFailure(); ++i) check(*to_request(generator.conv_tbc()), random);
}

TEST(RandomDataTest, AveragePooling) {
  std::mt19937_64 random(44);
  ProblemGenerator generator(44, {.forward = 30});
  for (int i = 0; i < 200 && !HasFailure(); ++i) check(*to_request(generator.avgpool()), random);
}

// cubeMathType 2 and 3 are visible: an operand that the rounding changes gives the product of the rounded
// value.
TEST(MathModeTest, OperandsAreRoundedAndTheBiasGradientIsNot) {
  const double fine = 1.0 + std::ldexp(1.0, -13);  // needs 13 mantissa bits: neither FP16 nor HF32 holds it
  const struct {
    int64_t mode;
    double seen;
  } cases[] = {{0, fine}, {1, fine}, {2, 1.0}, {3, 1.0}};
  for (const auto& [mode, seen] : cases) {
    problem::ConvRequest request;
    request.input = request.weight = request.grad_output = problem::dense_view(DType::kF32, {1, 1, 1});
    request.grad_input = request.grad_weight = request.input;
    request.grad_bias = problem::dense_view(DType::kF32, {1});
    request.stride = request.dilation = {1};
    request.padding = request.output_padding = {0};
    request.math.mode = mode;
    Operands operands{problem::Request(request)};
    operands[Operand::kGradOutput]->set({0, 0, 0}, fine);
    operands[Operand::kInput]->set({0, 0, 0}, 1.0);
    operands[Operand::kWeight]->set({0, 0, 0}, 1.0);
    ASSERT_TRUE(run_on_cpu(legal_problem(request), operands).is_ok());
    EXPECT_EQ(operands[Operand::kGradInput]->get({0, 0, 0}), seen) << "math mode " << mode;
    EXPECT_EQ(operands[Operand::kGradWeight]->get({0, 0, 0}), seen) << "math mode " << mode;
    EXPECT_EQ(operands[Operand::kGradBias]->get({0}), fine) << "math mode " << mode;
  }
}

}  // namespace
}  // namespace retrograd::test
