// SPDX-License-Identifier: Apache-2.0
// A CPU's plans need at most 1.5 times the largest operand and 8 MB: what networks have, on every CPU that
// has a name.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "base/machine.h"
#include "engines/registry.h"
#include "plan/plan.h"
#include "problem/problem_text.h"
#include "support/generator/problem_generator.h"
#include "support/legal_problem.h"

namespace retrograd::test::workspace_bound_test {
namespace {

struct Chosen {
  std::unique_ptr<const engines::Step> step;
  std::string name;
  double slower = 1;  // than the cheapest of all, by the costs
};
Chosen choose(const problem::Pass& pass, const Machine& machine, size_t limit) {
  auto answers = plan::judge(engines::candidates(runtime::DeviceKind::kCpu), pass, machine);
  for (plan::Answer& answer : answers)
    if (auto step = plan::make_step(answer, pass, machine, limit))
      return {std::move(step), answer.candidate->name(), answer.microseconds / answers.front().microseconds};
  return {};
}

void check(const problem::Request& request) {
  SCOPED_TRACE(to_text(request));
  for (const problem::Pass& pass : legal_problem(request).passes)
    for (const std::string_view name : machine_names()) {
      Machine machine = *named_machine(name);
      if (machine.kind != Machine::Kind::kCpu) continue;
      const size_t limit = plan::workspace_limit(pass, machine);
      EXPECT_EQ(limit, static_cast<size_t>(1.5 * engines::largest_operand(pass) + 8e6));
      const Chosen chosen = choose(pass, machine, limit);
      ASSERT_NE(chosen.step, nullptr) << name << ", " << name_of(pass);
      EXPECT_LE(chosen.step->workspace_bytes(), limit)
          << name << ", " << name_of(pass) << ", " << chosen.name;
      // Not bought with plain loops.
      EXPECT_LT(chosen.slower, 20) << name << ", " << name_of(pass) << ", " << chosen.name;
      for (const int threads : {1, 2, 61}) {  // which bits do not depend on
        machine.cpu.threads = threads;
        const Chosen other = choose(pass, machine, limit);
        EXPECT_EQ(other.name + other.step->describe(), chosen.name + chosen.step->describe())
            << name << ", " << name_of(pass) << ", " << threads << " threads";
        EXPECT_LE(other.step->workspace_bytes(), limit);
      }
    }
}

void check_drawn(uint64_t seed, int problems) {
  fmt::print("seed {}\n", seed);
  SCOPED_TRACE(fmt::format("seed {}", seed));
  GeneratorOptions options = GeneratorOptions::network();
  options.most_products = 2.5e8;  // of a sweep on a CPU
  options.most_elements = 2e7;
  options.forward = 30;
  ProblemGenerator generator(seed, options);
  std::mt19937_64 random(seed);
  for (int i = 0; i < problems && !testing::Test::HasFailure(); ++i) {
    ProblemSketch sketch = generator.any();
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      using Order = LayoutSketch::Order;
      sketch.types.fill(dtype);
      sketch.layouts.fill({.order = random() % 2 == 0 ? Order::kRowMajor : Order::kChannelsLast});
      if (const auto request = to_request(sketch)) check(*request);
    }
  }
}

TEST(WorkspaceBoundTest, DrawnProblems) { check_drawn(20261119, 300); }
TEST(WorkspaceBoundTest, DrawnAnew) { check_drawn(std::random_device()(), 100); }

// Needs 1000 bytes an x channel, and 500 a thread.
class Greedy final : public engines::Candidate {
 public:
  const char* name() const override { return "greedy"; }
  engines::Support supports(const problem::Pass&, const Machine&) const override {
    return engines::Support::yes();
  }
  std::unique_ptr<const engines::Step> make_step(const problem::Pass& pass,
                                                 const Machine& machine) const override {
    return std::make_unique<GreedyStep>(std::get<problem::ConvPass>(pass).x_channels, machine.cpu.threads);
  }

 private:
  class GreedyStep final : public engines::Step {
   public:
    GreedyStep(int64_t channels, int threads)
        : bytes_(static_cast<size_t>(1000 * channels + 500 * threads)), threads_(threads) {}
    size_t workspace_bytes() const override { return bytes_; }
    std::string describe() const override { return fmt::format("{} threads", threads_); }
    void run(const engines::Bindings&, std::byte*, runtime::ExecutionContext&) const override {}

   private:
    size_t bytes_;
    int threads_;
  };
};

TEST(WorkspaceBoundTest, ALimitTakesThreadsThenSlices) {
  const Greedy greedy;
  const Machine machine = *named_machine("sapphire-rapids");  // 16 threads
  const auto passes =
      legal_problem(problem::parse_request("conv input=1x64x8x8 weight=8x64x3x3").value()).passes;
  const auto under = [&](const problem::Pass& pass, size_t limit) -> std::string {
    plan::Answer answer{&greedy, engines::Support::yes(), 1};
    const auto step = plan::make_step(answer, pass, machine, limit);
    return step != nullptr ? step->describe() : answer.support.reason();
  };
  EXPECT_EQ(under(passes[0], 72'063), "16 threads");
  EXPECT_EQ(under(passes[0], 72'062), "15 threads");
  EXPECT_EQ(under(passes[0], 64'563), "1 threads");
  EXPECT_EQ(under(passes[0], 64'562), "2 slices of 32 x channels: 16 threads");
  EXPECT_EQ(under(passes[0], 32'563), "2 slices of 32 x channels: 1 threads");
  EXPECT_EQ(under(passes[0], 4'563), "16 slices of 4 x channels: 1 threads");
  EXPECT_EQ(under(passes[0], 4'562), "needs 72063 bytes of workspace, the limit is 4562");
}

}  // namespace
}  // namespace retrograd::test::workspace_bound_test
