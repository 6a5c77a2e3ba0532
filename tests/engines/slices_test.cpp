// SPDX-License-Identifier: Apache-2.0
// Slices of a pass: the exact results of every candidate that takes them, and none where there is nothing to
// cut.
#include "engines/slices.h"

#include <gtest/gtest.h>

#include <random>

#include "engines/machines.h"
#include "engines/registry.h"
#include "problem/problem_text.h"
#include "runtime/thread_pool.h"
#include "support/generator/problem_generator.h"
#include "support/legal_problem.h"
#include "support/operands.h"

namespace retrograd::test::slices_test {
namespace {

const Machine& here() { return engines::machine_of(runtime::DeviceKind::kCpu); }

std::vector<uint32_t> bits(const engines::Step& step, const problem::Pass& pass, Operands& operands) {
  runtime::ExecutionContext context{.pool = &runtime::ThreadPool::instance()};
  HostTensor& result = *operands[result_of(pass).operand];
  result.poison();
  const std::unique_ptr<void, void (*)(void*)> workspace(
      std::aligned_alloc(64, step.workspace_bytes() / 64 * 64 + 64), std::free);
  step.run(operands.bindings(), static_cast<std::byte*>(workspace.get()), context);
  return result.bits();
}

// How many candidates took slices.
int check(const problem::Request& request, int64_t slices) {
  SCOPED_TRACE(to_text(request));
  int checked = 0;
  std::mt19937_64 random(7);
  Operands operands(request);
  operands.fill_integers(random, 2);
  const auto candidates = engines::candidates(runtime::DeviceKind::kCpu);
  for (const problem::Pass& pass : legal_problem(request).passes) {
    const auto expected = bits(*candidates.back()->make_step(pass, here()), pass, operands);
    for (const engines::Candidate* candidate : candidates) {
      if (!is_exact(*candidate) || !candidate->supports(pass, here()).accepted()) continue;
      const auto step = engines::make_sliced_step(*candidate, pass, here(), slices);
      if (step == nullptr) continue;
      EXPECT_EQ(bits(*step, pass, operands), expected) << candidate->name() << ", " << name_of(pass);
      ++checked;
    }
  }
  return checked;
}

TEST(SlicesTest, DrawnProblems) {
  ProblemGenerator generator(2026, {.all_dtypes = false, .forward = 40});
  int checked = 0;
  for (int i = 0; i < 150 && !testing::Test::HasFailure(); ++i)
    checked += check(*to_request(generator.conv()), 2 + i % 3);
  EXPECT_GT(checked, 500);
}

TEST(SlicesTest, ChannelsAreCutInWholeVectors) {
  const auto slices = [](const char* text, int64_t count) {
    const auto problem = legal_problem(problem::parse_request(text).value());
    const auto step = engines::make_sliced_step(*engines::candidates(runtime::DeviceKind::kCpu).back(),
                                                problem.passes.front(), here(), count);
    return step == nullptr ? "" : step->describe().substr(0, step->describe().find(':'));
  };
  EXPECT_EQ(slices("conv input=1x80x4x4 weight=70x80x3x3 mask=i", 2), "2 slices of 64 x channels");
  EXPECT_EQ(slices("conv input=1x80x4x4 weight=70x80x3x3 mask=w", 4), "4 slices of 20 x channels");
  EXPECT_EQ(slices("conv input=1x7x4x4 weight=9x7x3x3 forward=1", 2), "2 slices of 5 y channels");
  EXPECT_EQ(slices("conv input=1x6x4x4 weight=9x2x3x3 groups=3 mask=w", 2), "2 slices of 2 groups");
  EXPECT_EQ(slices("conv input=1x1x4x4 weight=9x1x3x3 mask=i", 2), "");
  EXPECT_EQ(slices("conv input=1x4x4x4 weight=4x4x3x3 mask=b", 2), "");
}

}  // namespace
}  // namespace retrograd::test::slices_test
