// SPDX-License-Identifier: Apache-2.0
// Plans for GPUs that are not here: every implementation answers for drawn problems, on each machine of the
// table, and what accepts has a cost and a step.
#include <gtest/gtest.h>

#include <cmath>

#include "base/machine.h"
#include "engines/cost.h"
#include "engines/registry.h"
#include "plan/plan.h"
#include "problem/problem_text.h"
#include "support/problem_generator.h"
#include "support/problem_sketch.h"

namespace retrograd::test {
namespace {

std::vector<Machine> gpus() {
  std::vector<Machine> all;
  for (const std::string_view name : machine_names()) {
    const Machine machine = *named_machine(name);
    if (machine.kind != Machine::Kind::kGpu) continue;
    all.push_back(machine);
    all.push_back(machine);
    all.back().gpu.cudnn = false;
  }
  return all;
}

class SelectionGpuTest : public testing::Test {
 protected:
  void check(const problem::Request& request) {
    SCOPED_TRACE(to_text(request));
    const auto problem = problem::judge(request);
    ASSERT_TRUE(problem.is_ok()) << problem.status().message();
    for (const Machine& machine : gpus_)
      for (const problem::Pass& pass : problem.value().passes)
        if (!engines::unserved(pass, machine)) check(pass, machine);
  }

  void check(const problem::Pass& pass, const Machine& machine) {
    const auto candidates = engines::candidates(runtime::DeviceKind::kCuda);
    std::vector<plan::Answer> answers = plan::judge(candidates, pass, machine);
    ASSERT_EQ(answers.size(), candidates.size());
    ASSERT_TRUE(answers.front().support.accepted()) << "nobody takes " << name_of(pass);
    for (plan::Answer& answer : answers) {
      if (!answer.support.accepted()) continue;
      SCOPED_TRACE(answer.candidate->name());
      EXPECT_TRUE(std::isfinite(answer.microseconds) && answer.microseconds > 0) << answer.microseconds;
      const auto step = answer.candidate->make_step(pass, machine);
      if (std::string_view(answer.candidate->name()) == "cuda.cudnn") continue;  // it may not be there
      ASSERT_NE(step, nullptr);
      EXPECT_FALSE(step->describe().empty());
      EXPECT_LT(step->workspace_bytes(), size_t{1} << 40);
      ++steps_;
    }
  }

  std::vector<Machine> gpus_ = gpus();
  int steps_ = 0;
};

TEST_F(SelectionGpuTest, DrawnProblems) {
  for (const GeneratorOptions& options : {GeneratorOptions{}, GeneratorOptions::network()}) {
    ProblemGenerator generator(20261116, options);
    for (int i = 0; i < 150 && !HasFailure(); ++i) check(*to_request(generator.any()));
  }
  EXPECT_GT(steps_, 2000);
}

// Nothing but tiny or odd passes is left to the formula.
TEST_F(SelectionGpuTest, ProductsComeBeforeTheFormula) {
  ProblemGenerator generator(7, GeneratorOptions::network());
  for (int i = 0; i < 150; ++i) {
    const problem::Request request = *to_request(generator.conv());
    const auto problem = problem::judge(request);
    ASSERT_TRUE(problem.is_ok());
    for (const problem::Pass& pass : problem.value().passes)
      for (const Machine& machine : gpus_) {
        const auto answers = plan::judge(engines::candidates(runtime::DeviceKind::kCuda), pass, machine);
        const bool direct = std::string_view(answers[0].candidate->name()) == "cuda.direct";
        if (!direct || answers.size() < 2 || !answers[1].support.accepted()) continue;
        EXPECT_LT(answers[0].microseconds, 300) << to_text(request) << ": " << answers[1].candidate->name();
      }
  }
}

// What has no code on a GPU yet is declined by everybody, with one reason; the rest is planned.
TEST_F(SelectionGpuTest, ForwardProblemsAreTakenOrRefusedByName) {
  const struct {
    const char* text;
    const char* reason;  // null: taken
  } cases[] = {
      {"conv input=2x16x9x9 weight=8x16x3x3 forward=1", nullptr},
      {"conv input=2x16x9x9 weight=16x8x3x3 stride=2x2 output_padding=1x1 transposed=1 forward=1", nullptr},
      {"conv input=2x16x9x9 weight=8x16x3x3 forward=1 bias=8", "adds a bias is not supported on a GPU yet"},
      {"conv input=2x16x9x9 weight=16x8x3x3 dilation=3x3 output_padding=2x2 transposed=1 forward=1",
       "output padding of the stride or more is not supported on a GPU yet"},
      {"conv_tbc input=9x2x16 weight=3x16x24 forward=1", "adds a bias is not supported on a GPU yet"},
      {"avgpool input=2x16x9x9 kernel=3 forward=1", "average pooling forward is not supported on a GPU yet"},
      {"avgpool input=2x16x9x9 kernel=3", nullptr},
  };
  for (const auto& [text, reason] : cases) {
    SCOPED_TRACE(text);
    const auto problem = problem::judge(problem::parse_request(text).value());
    ASSERT_TRUE(problem.is_ok()) << problem.status().message();
    for (const Machine& machine : gpus_) {
      const auto answers =
          plan::judge(engines::candidates(runtime::DeviceKind::kCuda), problem.value().passes[0], machine);
      EXPECT_EQ(answers[0].support.accepted(), reason == nullptr);
      if (reason != nullptr) {
        EXPECT_NE(answers[0].support.reason().find(reason), std::string::npos);
      }
    }
  }
}

}  // namespace
}  // namespace retrograd::test
