// SPDX-License-Identifier: Apache-2.0
// Forward and backward are one operator: y is linear in x and in w, so
//
//   <forward(x), g> = <x, grad_input(g)> = <w, grad_weight(g)>
//
// exactly, on integers that are small enough. Each side is computed by whatever the planner chooses, so
// forward and backward implementations of every family check each other, without an oracle.
#include <gtest/gtest.h>

#include "problem/problem_text.h"
#include "support/generator/problem_generator.h"
#include "support/legal_problem.h"
#include "support/operands.h"

namespace retrograd::test::forward_consistency_test {
namespace {

using problem::Operand;

double dot(const HostTensor& a, const HostTensor& b) {
  double sum = 0;
  a.for_each([&](const Dims& index) { sum += a.get(index) * b.get(index); });
  return sum;
}

void copy(const HostTensor& from, HostTensor& to) {
  from.for_each([&](const Dims& index) { to.set(index, from.get(index)); });
}

// The same problem the other way round, without a bias.
problem::Request forward_of(problem::Request request) {
  std::visit(
      [](auto& r) {
        r.forward = true;
        r.names.grad_output = "output";
        r.grad_output = problem::dense_view(DType::kF32, r.grad_output.shape);
      },
      request);
  return request;
}

// Sums of up to 2^12 products of numbers up to 2, which every type of 16 bits and more holds as operands; the
// results are f32.
void check(problem::Request request, std::mt19937_64& random) {
  SCOPED_TRACE(problem::to_text(request));
  const problem::Request forward = forward_of(request);
  Operands back(request), fore(forward);
  back.fill_integers(random, 2);
  copy(*back[Operand::kInput], *fore[Operand::kInput]);
  if (back[Operand::kWeight]) copy(*back[Operand::kWeight], *fore[Operand::kWeight]);
  if (fore[Operand::kBias])
    fore[Operand::kBias]->for_each([&](const Dims& i) { fore[Operand::kBias]->set(i, 0); });
  for (Operands* each : {&back, &fore}) each->poison_results();
  ASSERT_TRUE(run_on_cpu(legal_problem(request), back).is_ok());
  ASSERT_TRUE(run_on_cpu(legal_problem(forward), fore).is_ok());
  const double by_output = dot(*fore[Operand::kOutput], *back[Operand::kGradOutput]);
  EXPECT_EQ(by_output, dot(*back[Operand::kInput], *back[Operand::kGradInput]));
  if (back[Operand::kWeight]) {
    EXPECT_EQ(by_output, dot(*back[Operand::kWeight], *back[Operand::kGradWeight]));
  }
}

// Products as they are asked for, results in f32, and a divisor that leaves averages exact.
problem::Request made_exact(const ProblemSketch& drawn) {
  ProblemSketch sketch = drawn;
  for (Operand result : kResults) sketch.type(result) = DType::kF32;
  if (sketch.kind == ProblemKind::kAvgPool) sketch.types.fill(DType::kF32);
  sketch.mask = 7;
  sketch.winograd = false;
  sketch.divisor = 4;
  return *to_request(sketch);
}

class ForwardConsistencyTest : public testing::TestWithParam<int> {};

TEST_P(ForwardConsistencyTest, DrawnProblems) {
  const auto seed = static_cast<uint64_t>(5000 + GetParam());
  std::mt19937_64 random(seed);
  ProblemGenerator generator(seed);
  for (int i = 0; i < 150 && !HasFailure(); ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", problem " << i);
    check(made_exact(i % 10 == 0   ? generator.conv_tbc()
                     : i % 10 == 1 ? generator.avgpool()
                                   : generator.conv()),
          random);
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, ForwardConsistencyTest, testing::Range(0, 4));

}  // namespace
}  // namespace retrograd::test::forward_consistency_test
