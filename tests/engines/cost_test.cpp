// SPDX-License-Identifier: Apache-2.0
// The cost formula, tables of efficiencies, and named machines.
#include "engines/cost.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "engines/machines.h"
#include "engines/registry.h"
#include "problem/problem_text.h"
#include "support/legal_problem.h"

namespace retrograd::engines {
namespace {

class Constant final : public Candidate {
 public:
  explicit Constant(Effort effort) : effort_(effort) {}
  const char* name() const override { return "test.constant"; }
  Support supports(const problem::Pass&, const Machine&) const override { return Support::yes(); }
  Effort effort(const problem::Pass&, const Machine&) const override { return effort_; }
  std::unique_ptr<const Step> make_step(const problem::Pass&, const Machine&) const override {
    return nullptr;
  }

 private:
  Effort effort_;
};

Machine small_cpu() {
  Machine machine;
  machine.cpu.gflops = 10;  // 10 000 operations a microsecond and thread
  machine.cpu.threads = 2;
  machine.cpu.copy_gbs = 2;  // 2 000 bytes a microsecond and thread
  return machine;
}

TEST(CostTest, IsStartAndTheLongerOfArithmeticAndMemory) {
  Tuning tuning;
  tuning.set("test.constant", {.arithmetic = 0.5, .memory = 0.25, .start = 3, .call = 2000});
  const problem::Pass pass = problem::BiasPass{};
  const auto us = [&](Effort effort) { return cost(Constant(effort), pass, small_cpu(), tuning); };
  EXPECT_DOUBLE_EQ(us({.operations = 1e6, .bytes = 1, .launches = 1}), 3 + 100);
  EXPECT_DOUBLE_EQ(us({.operations = 1, .bytes = 1e6, .launches = 1}), 3 + 1000);
  EXPECT_DOUBLE_EQ(us({.operations = 1e6, .bytes = 1, .launches = 1, .calls = 5}), 3 + 5 + 100);
  EXPECT_DOUBLE_EQ(us({.operations = 1e6, .bytes = 1e6, .launches = 4}), 12 + 1000);
}

TEST(CostTest, SixteenBitsHaveAPeakOfTheirOwnOnGpus) {
  const Machine h200 = *named_machine("h200");
  Tuning tuning;
  tuning.set("test.constant", {.arithmetic = 1, .memory = 1, .start = 1e-9, .call = 0});
  problem::ConvPass pass;
  const Constant candidate({.operations = 1e9, .bytes = 0, .launches = 0});
  const double f32 = cost(candidate, pass, h200, tuning);
  pass.x.dtype = pass.y.dtype = pass.w.dtype = DType::kF16;
  EXPECT_NEAR(f32 / cost(candidate, pass, h200, tuning), h200.gpu.f16_tflops / h200.gpu.fp32_tflops, 1e-9);
}

TEST(CostTest, EffortCountsProductsAndBytesOnce) {
  const problem::Problem problem =
      test::legal_problem(problem::parse_request("conv input=2x3x5x7 weight=4x3x1x1 mask=i").value());
  const Effort effort = effort_of(problem.passes.front());
  EXPECT_EQ(effort.operations, 2.0 * 2 * 3 * 4 * 35);
  EXPECT_EQ(effort.bytes, 4.0 * (2 * 3 * 35 + 2 * 4 * 35 + 12));
}

// Somebody takes the pass even where no cost is a finite number.
TEST(CostTest, TheFirstOfInfiniteCostsIsTheCheapest) {
  const Constant first({.operations = std::numeric_limits<double>::infinity(), .bytes = 1, .launches = 1}),
      second = first;
  const Candidate* const both[] = {&first, &second};
  EXPECT_EQ(cheapest(both, problem::BiasPass{}, small_cpu()).candidate, &first);
}

TEST(TuningTest, TextAndBack) {
  const auto tuning = Tuning::parse("# a comment\n\n  a.b 0.5 0.25 3 7 # behind\nc 1e-3 1 10 0\n");
  ASSERT_TRUE(tuning.is_ok()) << tuning.status().message();
  EXPECT_EQ(tuning.value().of("a.b").arithmetic, 0.5);
  EXPECT_EQ(tuning.value().of("a.b").start, 3);
  EXPECT_EQ(tuning.value().of("a.b").call, 7);
  EXPECT_EQ(tuning.value().of("c").arithmetic, 1e-3);
  const auto again = Tuning::parse(tuning.value().to_text());
  ASSERT_TRUE(again.is_ok());
  EXPECT_EQ(again.value().of("a.b").memory, 0.25);
}

TEST(TuningTest, ALineOfACaseGoesBeforeThatOfTheImplementation) {
  const auto tuning = Tuning::parse("a 0.5 1 1 0\na/grad_weight/f16/nhwc 0.25 1 1 0\nb 0.1 1 1 0\n").value();
  EXPECT_EQ(tuning.of("a", "grad_weight/f16/nhwc").arithmetic, 0.25);
  EXPECT_EQ(tuning.of("a/grad_weight/f16/nhwc").arithmetic, 0.25);
  EXPECT_EQ(tuning.of("a", "grad_weight/f32/nhwc").arithmetic, 0.5);
  EXPECT_EQ(tuning.of("b", "grad_weight/f16/nhwc").arithmetic, 0.1);
  EXPECT_EQ(Tuning::parse(tuning.to_text()).value().of("a", "grad_weight/f16/nhwc").arithmetic, 0.25);
}

TEST(TuningTest, CasesOfPasses) {
  const auto cases = [](const char* text) {
    std::vector<std::string_view> all;
    for (const problem::Pass& pass : test::legal_problem(problem::parse_request(text).value()).passes)
      all.push_back(tuning_case(pass));
    return all;
  };
  using Cases = std::vector<std::string_view>;
  EXPECT_EQ(cases("conv input=2x3x5x7 weight=4x3x1x1"),
            (Cases{"grad_input/f32/nchw", "grad_weight/f32/nchw", "grad_bias/f32/nchw"}));
  EXPECT_EQ(cases("conv input=2x8x5x7@280x1x56x8 weight=4x8x1x1 forward=1 dtype=bf16"),
            (Cases{"forward/f16/nhwc"}));
  EXPECT_EQ(cases("avgpool input=2x8x6x6 kernel=2x2 stride=2x2 dtype=f16"), (Cases{"avgpool/f16/nchw"}));
}

TEST(TuningTest, BuiltInTablesHaveEveryImplementation) {
  for (const char* name : {"zen3", "zen4", "sapphire-rapids", "granite-rapids", "neoverse-n1", "h200"}) {
    const Machine machine = *named_machine(name);
    const bool is_cpu = machine.kind == Machine::Kind::kCpu;
    const Tuning& tuning = tuning_for(machine);
    for (const Candidate* candidate :
         candidates(is_cpu ? runtime::DeviceKind::kCpu : runtime::DeviceKind::kCuda))
      EXPECT_TRUE(tuning.has(candidate->name())) << candidate->name() << " on " << name;
  }
}

TEST(TuningTest, RefusalsNameLineAndReason) {
  const auto refusal = [](const char* text) { return Tuning::parse(text).status().message(); };
  EXPECT_EQ(refusal("a 1 1 1 1\nb 1 1\n"), "line 2: 3 words, expected 5: name arithmetic memory start call");
  EXPECT_EQ(refusal("a 1 x 1 1"), "line 1: 'x' is not a number from 1e-9 to 1000000");
  EXPECT_EQ(refusal("a 1 0 1 1"), "line 1: '0' is not a number from 1e-9 to 1000000");
  EXPECT_EQ(refusal("a -1 1 1 1"), "line 1: '-1' is not a number from 1e-9 to 1000000");
  EXPECT_EQ(refusal("a/grad_bais 1 1 1 1"),
            "line 1: 'grad_bais' is not a case of a pass, such as grad_weight/f16/nhwc");
  EXPECT_EQ(refusal("a 2.3e-308 1 1 1"), "line 1: '2.3e-308' is not a number from 1e-9 to 1000000");
  EXPECT_EQ(refusal("a 1 1 9e-10 1"), "line 1: '9e-10' is not a number from 1e-9 to 1000000");
  EXPECT_EQ(refusal("a 1 1 1 -1"), "line 1: '-1' is not a number from 0 to 1000000");
  EXPECT_EQ(refusal("a 1e-9 1e-9 1e-9 0"), "");
  EXPECT_EQ(refusal("a nan 1 1 1"), "line 1: 'nan' is not a number from 1e-9 to 1000000");
  EXPECT_EQ(refusal("a 1 1e400 1 1"), "line 1: '1e400' is not a number from 1e-9 to 1000000");
}

// A name that is missing would get the default's 50 %, and win against all that were measured.
TEST(TuningTest, TheBuiltInTablesNameEveryImplementation) {
  for (const auto& [kind, machine] : {std::pair(runtime::DeviceKind::kCpu, named_machine("zen4")),
                                      std::pair(runtime::DeviceKind::kCuda, named_machine("h200"))}) {
    const std::string table = fmt::format("\n{}", tuning_for(*machine).to_text());
    for (const Candidate* candidate : candidates(kind))
      EXPECT_NE(table.find(fmt::format("\n{} ", candidate->name())), std::string::npos)
          << candidate->name() << " is not in tuning/";
  }
}

TEST(MachineTest, NamesAreKnownAndPlausible) {
  std::set<std::string_view> names(machine_names().begin(), machine_names().end());
  for (const char* name : {"zen3", "zen4", "sapphire-rapids", "granite-rapids", "cascade-lake", "neoverse-n1",
                           "h200", "a100", "rtx4090"})
    EXPECT_TRUE(names.contains(name)) << name;
  for (const std::string_view name : machine_names()) {
    const auto machine = named_machine(name);
    ASSERT_TRUE(machine.has_value()) << name;
    EXPECT_EQ(machine->name, name);
    if (machine->kind == Machine::Kind::kCpu) {
      EXPECT_GT(machine->cpu.gflops, 3 * machine->cpu.vector_floats) << name;
      EXPECT_GT(machine->cpu.caches.level[1].bytes, machine->cpu.caches.level[0].bytes) << name;
    } else {
      EXPECT_GT(machine->gpu.f16_tflops, machine->gpu.fp32_tflops) << name;
      EXPECT_GE(machine->gpu.architecture, 80) << name;
    }
  }
  EXPECT_FALSE(named_machine("cray-1").has_value());
}

}  // namespace
}  // namespace retrograd::engines
