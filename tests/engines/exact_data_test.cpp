// SPDX-License-Identifier: Apache-2.0
// Small-integer data: every candidate that accepts a pass must give the exact result, bit for bit, and touch
// nothing else. One that reduces precision must be near it.
#include <gtest/gtest.h>

#include "engines/machines.h"
#include "engines/registry.h"
#include "problem/problem_text.h"
#include "support/exact.h"
#include "support/generator/problem_generator.h"
#include "support/legal_problem.h"
#include "support/operands.h"
#include "support/oracle.h"
#include "support/shape_files.h"

namespace retrograd::test {
namespace {

// The reference goes from element to element, whatever the size: drawn problems are enough for it, and on the
// shapes of files it would take most of the time.
enum class OnTheCpu { kEvery, kAllButTheReference };

// Runs the problem once for every candidate, that candidate first for the passes it accepts.
void check_every_candidate(const problem::Request& request, std::mt19937_64& random,
                           OnTheCpu which = OnTheCpu::kEvery) {
  SCOPED_TRACE(problem::to_text(request));
  const problem::Problem problem = legal_problem(request);
  Operands operands(request);
  operands.fill_integers(random, 2);
  const Gradients exact = exact_gradients(request, operands);
  for (runtime::Device* device : devices_under_test()) {
    const auto all = engines::candidates(device->kind());
    bool ran = false;
    for (const engines::Candidate* candidate : all) {
      SCOPED_TRACE(candidate->name());
      if (ran && candidate == all.back() && which == OnTheCpu::kAllButTheReference &&
          device->kind() == runtime::DeviceKind::kCpu)
        continue;
      bool accepts_any = false;
      for (const problem::Pass& pass : problem.passes)
        accepts_any |= candidate->supports(pass, engines::machine_of(*device)).accepted();
      if (!accepts_any && !problem.passes.empty()) continue;
      ran = true;
      operands.poison_results();
      const auto order = with_the_exact_behind(*candidate, all);
      const Status status = run_on(*device, problem, operands, order);
      ASSERT_TRUE(status.is_ok()) << status.message();
      candidate->reduces_precision() ? expect_near(operands, exact) : expect_exact(operands, exact);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// An average divides: for pooling, divisors that are no powers of two make the quotients inexact. The exact
// test therefore overrides the divisor; the true divisors are judged by the grid and by numeric
// differentiation.
problem::Request with_exact_divisor(problem::Request request) {
  if (auto* pool = std::get_if<problem::AvgPoolRequest>(&request)) pool->divisor_override = 4;
  return request;
}

TEST(ExactDataTest, ShapeFiles) {
  std::mt19937_64 random(7);
  for (const NamedRequest& named : read_shape_files()) {
    SCOPED_TRACE(named.place);
    check_every_candidate(with_exact_divisor(named.request), random, OnTheCpu::kAllButTheReference);
    if (HasFatalFailure()) return;
  }
}

class ExactRandomTest : public testing::TestWithParam<int> {};

TEST_P(ExactRandomTest, AllKinds) {
  const auto seed = static_cast<uint64_t>(1000 + GetParam());
  std::mt19937_64 random(seed);
  ProblemGenerator generator(seed, {.forward = 30});
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  for (int i = 0; i < 40 && !HasFatalFailure(); ++i) {
    check_every_candidate(*to_request(generator.conv()), random);
    check_every_candidate(*to_request(generator.conv_tbc()), random);
    check_every_candidate(with_exact_divisor(*to_request(generator.avgpool())), random);
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, ExactRandomTest, testing::Range(0, 10));

// The same shapes, most of them F32, in every other type, inputs and results alike.
class ExactTypeTest : public testing::TestWithParam<DType> {};

TEST_P(ExactTypeTest, ShapeFilesInOneType) {
  std::mt19937_64 random(11);
  for (const NamedRequest& named : read_shape_files()) {
    const auto request = in_type(named.request, GetParam());
    if (!request || named.place.starts_with("types.txt")) continue;
    SCOPED_TRACE(named.place);
    check_every_candidate(with_exact_divisor(*request), random, OnTheCpu::kAllButTheReference);
    if (HasFatalFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Types, ExactTypeTest,
                         testing::Values(DType::kF16, DType::kBF16, DType::kHiF8, DType::kE4M3),
                         [](const auto& type) { return std::string(name_of(type.param)); });

}  // namespace
}  // namespace retrograd::test
