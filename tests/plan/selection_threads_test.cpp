// SPDX-License-Identifier: Apache-2.0
// The choice does not depend on the number of threads: implementations add in different orders.
#include <gtest/gtest.h>

#include "base/machine.h"
#include "engines/registry.h"
#include "plan/plan.h"
#include "problem/problem_text.h"
#include "support/generator/problem_generator.h"
#include "support/generator/problem_sketch.h"

namespace retrograd::test {
namespace {

// Everybody in the order of costs, and how the first one cuts the work.
std::vector<std::string> choice(const problem::Pass& pass, const Machine& machine) {
  std::vector<plan::Answer> answers =
      plan::judge(engines::candidates(runtime::DeviceKind::kCpu), pass, machine);
  std::vector<std::string> names;
  for (const plan::Answer& answer : answers) names.emplace_back(answer.candidate->name());
  const auto step = plan::make_step(answers.front(), pass, machine, SIZE_MAX);
  names.push_back(step == nullptr ? "no step" : step->describe());
  return names;
}

void check(const problem::Request& request) {
  SCOPED_TRACE(to_text(request));
  const auto problem = problem::judge(request);
  ASSERT_TRUE(problem.is_ok()) << problem.status().message();
  for (const std::string_view name : machine_names()) {
    Machine machine = *named_machine(name);
    if (machine.kind != Machine::Kind::kCpu) continue;
    for (const problem::Pass& pass : problem.value().passes) {
      machine.cpu.threads = 1;
      const auto alone = choice(pass, machine);
      for (const int threads : {2, 7, 61}) {
        machine.cpu.threads = threads;
        EXPECT_EQ(choice(pass, machine), alone) << name << ", " << threads << " threads";
      }
    }
  }
}

TEST(SelectionThreadsTest, DrawnProblems) {
  for (const GeneratorOptions& options : {GeneratorOptions{}, GeneratorOptions::network()}) {
    ProblemGenerator generator(20261117, options);
    for (int i = 0; i < 100 && !testing::Test::HasFailure(); ++i) check(*to_request(generator.any()));
  }
}

}  // namespace
}  // namespace retrograd::test
