// SPDX-License-Identifier: Apache-2.0
// Plans for GPUs that are not here: every implementation answers for drawn problems, on each machine of the
// table, and what accepts has a cost and a step.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/machine.h"
#include "engines/cost.h"
#include "engines/registry.h"
#include "plan/plan.h"
#include "problem/problem_text.h"
#include "support/generator/problem_generator.h"
#include "support/generator/problem_sketch.h"
#include "support/shape_files.h"

namespace retrograd::test {
namespace {

std::vector<Machine> gpus() {
  std::vector<Machine> all;
  for (const std::string_view name : machine_names()) {
    const Machine machine = *named_machine(name);
    if (machine.kind != Machine::Kind::kGpu) continue;
    all.push_back(machine);
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
      for (const problem::Pass& pass : problem.value().passes) check(pass, machine);
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
      ASSERT_NE(step, nullptr);
      EXPECT_FALSE(step->describe().empty());
      EXPECT_LT(step->workspace_bytes(), size_t{1} << 40);
      size_t converted = 0;
      for (const auto& conversion : step->conversions()) {
        EXPECT_EQ(conversion->bytes() % 64, 0U) << conversion->text();
        EXPECT_GT(conversion->bytes(), 0U) << conversion->text();
        converted += conversion->bytes();
      }
      EXPECT_LE(converted, step->workspace_bytes());
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

// Forward problems have kernels of their own: the formula is the last resort.
TEST_F(SelectionGpuTest, ForwardProblemsAreTakenByKernels) {
  const struct {
    const char* text;
    std::string_view part;  // of its name
  } cases[] = {
      {"conv input=2x16x99x99 weight=64x16x3x3 forward=1", "_products"},
      {"conv input=2x16x99x99 weight=64x16x3x3 forward=1 bias=64", "_products"},
      {"conv input=2x16x99x99 weight=16x64x3x3 stride=2x2 transposed=1 forward=1 bias=64", "_products"},
      {"conv input=2x32x99x99 weight=32x64x2x2 stride=3x3 transposed=1 forward=1 bias=64", "_products"},
      {"conv input=2x16x99x99 weight=16x64x3x3 dilation=3x3 output_padding=2x2 transposed=1 forward=1",
       "_products"},
      {"conv input=2x16x99x99 weight=16x1x9x9 groups=16 forward=1 bias=16", "depthwise_"},
      {"conv_tbc input=99x20x64 weight=3x64x64 forward=1", "_products"},
      {"avgpool input=2x16x99x99 kernel=3 forward=1", "pool_windows"},
      {"avgpool input=2x16x99x99 kernel=3", "pool_"},
      // One window, whose stride is never taken.
      {"avgpool input=31x1064x43x43@1967336x1x45752x1064 grad_output=31x1064x1x1 "
       "grad_input=31x1064x43x43@1967336x1x45752x1064 kernel=43x43 stride=2x2 dtype=f16",
       "pool_disjoint"},
  };
  for (const auto& [text, part] : cases) {
    SCOPED_TRACE(text);
    const auto problem = problem::judge(problem::parse_request(text).value());
    ASSERT_TRUE(problem.is_ok()) << problem.status().message();
    for (const Machine& machine : gpus_) {
      const auto answers =
          plan::judge(engines::candidates(runtime::DeviceKind::kCuda), problem.value().passes[0], machine);
      // Of copies: who computes them.
      const auto rest = answers[0].candidate->rest(problem.value().passes[0], machine);
      const std::string_view name = (rest ? rest->candidate : answers[0].candidate)->name();
      EXPECT_TRUE(name.find(part) != std::string_view::npos) << name;
    }
  }
}

// Where the caller allows TF32, operands in f32 are rounded as they are read, or on their way to rows.
TEST_F(SelectionGpuTest, RoundedF32IsTakenByTF32) {
  const struct {
    const char* text;
    std::string_view part;  // of its name
  } cases[] = {
      {"conv input=2x16x99x99 weight=16x64x3x3 stride=2x2 transposed=1 forward=1 bias=64", "in_place_tf32"},
      {"conv input=8x64x28x28 weight=96x64x1x1 mask=i", "in_place_tf32"},
      {"conv input=8x64x28x28 weight=96x64x1x1 mask=w", "tf32_products"},
      {"conv input=8x64x28x28 weight=96x64x3x3 padding=1x1 mask=i", "tf32"},
      {"conv input=8x64x28x28 weight=96x64x3x3 padding=1x1 mask=w", "tf32_products"},
  };
  for (const auto& [text, part] : cases)
    for (const Machine& machine : gpus_)
      for (const bool allowed : {true, false}) {
        SCOPED_TRACE(text);
        const auto problem = problem::judge(
            problem::parse_request(std::string(text) + (allowed ? " math=1" : " math=0")).value());
        ASSERT_TRUE(problem.is_ok()) << problem.status().message();
        const auto answers =
            plan::judge(engines::candidates(runtime::DeviceKind::kCuda), problem.value().passes[0], machine);
        const std::string_view name = answers[0].candidate->name();
        EXPECT_EQ(name.find(allowed ? part : "tf32") != std::string_view::npos, allowed) << name;
      }
}

// Three TF32 products are not as exact as one of FP32, which a sum of few products shows.
TEST_F(SelectionGpuTest, ShortSumsOfF32AreNotSplit) {
  const auto problem = problem::judge(
      problem::parse_request("conv input=2x3x9x9 weight=5x3x2x1 output=2x5x8x9 forward=1").value());
  ASSERT_TRUE(problem.is_ok()) << problem.status().message();
  const std::set<std::string_view> split = {"cuda.box_products", "cuda.in_place_products",
                                            "cuda.row_products"};
  size_t seen = 0;
  for (const Machine& machine : gpus_)
    for (const auto& answer :
         plan::judge(engines::candidates(runtime::DeviceKind::kCuda), problem.value().passes[0], machine))
      if (split.contains(answer.candidate->name())) {
        ++seen;
        EXPECT_FALSE(answer.support.accepted()) << answer.candidate->name();
      }
  EXPECT_EQ(seen, split.size() * gpus_.size());
}

// What times choose may leave a kernel without a problem that runs it: tests/shapes has one for each cut.
TEST_F(SelectionGpuTest, ShapeFilesHaveEveryCutOfPointwisePlanes) {
  const struct {
    std::string_view pass;
    std::vector<std::string> cuts;
  } wanted[] = {
      {"forward",
       {"64 x 256", "128 x 128", "192 x 128"}},  // 128 x 256 takes 3e8 products, too many for tests
      {"grad_input", {"64 x 256", "128 x 128", "192 x 128"}},
      {"grad_weight", {"128 x 128", "128 x 256", "192 x 192"}},
  };
  const Machine machine = *named_machine("h200");
  std::set<std::string> seen;
  for (const NamedRequest& named : read_shape_files()) {
    const auto problem = problem::judge(named.request);
    if (!problem.is_ok()) continue;
    for (const problem::Pass& pass : problem.value().passes)
      for (const engines::Candidate* candidate : engines::candidates(runtime::DeviceKind::kCuda)) {
        if (candidate->name() != std::string_view("cuda.pointwise_planes")) continue;
        if (!candidate->supports(pass, machine).accepted()) continue;
        const std::string how = candidate->make_step(pass, machine)->describe();
        seen.insert(std::string(name_of(pass)) + ' ' + how.substr(0, how.find(',', how.find(',') + 1)));
      }
  }
  for (const auto& [pass, cuts] : wanted) {
    EXPECT_TRUE(seen.contains(std::string(pass) + " tiles 128 x 128, planes in pieces")) << pass;
    for (const std::string& cut : cuts)
      EXPECT_TRUE(seen.contains(std::string(pass) + " tiles " + cut + ", planes in place"))
          << pass << ' ' << cut;
  }
}

// grad_output is brought to rows of channels, or to another dense layout, once for both gradients.
TEST_F(SelectionGpuTest, BothGradientsReadOneConversionOfGradOutput) {
  const struct {
    const char *text, *conversion;
  } cases[] = {
      {"conv input=8x64x28x28 weight=96x64x3x3 padding=1x1 dtype=bf16",
       "grad_output as bf16 rows of 8x96x1x28x28"},
      {"conv input=8x64x28x28 weight=64x96x3x3 padding=1x1 transposed=1 dtype=f16",
       "grad_output as f16 rows of 8x96x1x28x28"},
      {"conv input=8x64x56x56 weight=64x1x3x3 grad_output=8x64x56x56@401408x1x7168x128 padding=1x1 groups=64",
       "grad_output in planes"},
  };
  const Machine machine = *named_machine("h200");
  for (const auto& [text, conversion] : cases) {
    SCOPED_TRACE(text);
    const auto problem = problem::judge(problem::parse_request(text).value());
    ASSERT_TRUE(problem.is_ok()) << problem.status().message();
    std::vector<std::unique_ptr<const engines::Step>> steps;
    for (const problem::Pass& pass : problem.value().passes)
      steps.push_back(plan::judge(engines::candidates(runtime::DeviceKind::kCuda), pass, machine)
                          .front()
                          .candidate->make_step(pass, machine));
    ASSERT_GE(steps.size(), 2U);
    ASSERT_FALSE(steps[1]->conversions().empty()) << steps[1]->describe();
    EXPECT_EQ(steps[1]->conversions()[0]->text(), conversion) << steps[1]->describe();
    EXPECT_EQ(count_made(steps[1]->conversions(), steps[0]->conversions()), 1U) << steps[0]->describe();
  }
}

// BF16 operands beside FP32 weights are FP16 numbers under cubeMathType 2: whoever reads them where they lie
// declines.
TEST_F(SelectionGpuTest, RoundedOperandsAreCopied) {
  const auto problem = problem::judge(
      problem::parse_request("conv input=4x64x16x16:bf16@16384x1x1024x64 weight=64x64x3x3:f32 "
                             "grad_output=4x64x16x16:bf16@16384x1x1024x64 padding=1x1 math=2 mask=w")
          .value());
  ASSERT_TRUE(problem.is_ok()) << problem.status().message();
  const Machine machine = *named_machine("h200");
  for (const engines::Candidate* candidate : engines::candidates(runtime::DeviceKind::kCuda)) {
    if (!candidate->supports(problem.value().passes[0], machine).accepted()) continue;
    const auto step = candidate->make_step(problem.value().passes[0], machine);
    ASSERT_NE(step, nullptr) << candidate->name();
    EXPECT_EQ(step->describe().find("in place"), std::string::npos)
        << candidate->name() << ": " << step->describe();
  }
}

// Why a candidate declines the problem's first pass; empty: it does not.
std::string reason_of(const char* text, std::string_view name, std::string_view machine = "h200") {
  const auto problem = problem::judge(problem::parse_request(text).value());
  for (const engines::Candidate* candidate : engines::candidates(runtime::DeviceKind::kCuda)) {
    if (candidate->name() != name) continue;
    const engines::Support support = candidate->supports(problem.value().passes[0], *named_machine(machine));
    return support.accepted() ? "" : support.reason();
  }
  return "no such candidate";
}

// Who adds no bias says so; a place without a tap has it, too.
TEST_F(SelectionGpuTest, BiasIsAddedOrDeclined) {
  const char* const strided =
      "conv input=2x16x9x9 weight=16x64x3x3 stride=2x2 transposed=1 forward=1 bias=64 dtype=f16";
  const char* const gaps =
      "conv input=2x16x9x9 weight=16x64x1x1 stride=2x2 transposed=1 forward=1 bias=64 dtype=f16";
  EXPECT_EQ(reason_of(strided, "cuda.wgmma_products"), "");
  EXPECT_EQ(reason_of(gaps, "cuda.wgmma_products"), "adds no bias to places without a tap");
  EXPECT_EQ(reason_of(gaps, "cuda.row_products"), "");
  EXPECT_EQ(reason_of(strided, "cuda.small_images"), "adds no bias");
  EXPECT_EQ(reason_of(strided, "cuda.direct"), "");
}

// What does not fit is declined with its size and the limit.
TEST_F(SelectionGpuTest, LimitsAreNamed) {
  const char* const stem = "conv input=1x3x400x400 weight=8x3x40x100 mask=i";
  EXPECT_EQ(reason_of("conv input=1x3x400x400 weight=8x3x7x7 mask=i", "cuda.stem_gather", "rtx4090"), "");
  EXPECT_EQ(reason_of(stem, "cuda.stem_gather", "rtx4090"),
            "window and stride need 244768 bytes of shared memory, at most 101376 are taken");
  EXPECT_EQ(reason_of(stem, "cuda.stem_gather"),
            "window and stride need 244768 bytes of shared memory, at most 115712 are taken");
  EXPECT_EQ(reason_of("conv input=1x3x400x400 weight=8x3x7x7 stride=5x5 mask=i", "cuda.stem_gather"),
            "strides of 5 x 5 make 25 classes of places, a block has no threads for as many");
  EXPECT_EQ(reason_of("avgpool input=1x1x65537x2x2 kernel=3x1x1 stride=1x1x1", "cuda.pool_columns"),
            "windows span depths, and the input has 65537 of them, at most 65536 are taken");
  EXPECT_EQ(reason_of("avgpool input=1x1x65536x2x2 kernel=3x1x1 stride=1x1x1", "cuda.pool_columns"), "");
  EXPECT_EQ(reason_of("avgpool input=1x1x65537x4x4 kernel=1x3x3 stride=1x1x1", "cuda.pool_columns"), "");
}

}  // namespace
}  // namespace retrograd::test
