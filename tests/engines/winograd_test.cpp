// SPDX-License-Identifier: Apache-2.0
// Winograd: where it is chosen, how far its results are from exact ones, how far a NaN spreads.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

#include "engines/machines.h"
#include "engines/registry.h"
#include "problem/problem_text.h"
#include "runtime/thread_pool.h"
#include "support/legal_problem.h"
#include "support/operands.h"
#include "support/tolerance.h"

namespace retrograd::test {
namespace {

using problem::Operand;

problem::Request parsed(const std::string& text) {
  auto request = problem::parse_request(text);
  EXPECT_TRUE(request.is_ok()) << request.status().message();
  return std::move(request).value();
}

// The first candidate that accepts the pass.
const engines::Candidate& chosen(const problem::Pass& pass) {
  const auto all = engines::candidates(runtime::DeviceKind::kCpu);
  return **std::find_if(all.begin(), all.end(), [&](const engines::Candidate* candidate) {
    return candidate->supports(pass, engines::machine_of(runtime::DeviceKind::kCpu)).accepted();
  });
}

// "cpu.winograd_gather cpu.winograd_grad_weight"
std::string chosen_for(const std::string& text) {
  std::string names;
  for (const problem::Pass& pass : legal_problem(parsed(text)).passes)
    names += fmt::format("{}{}", names.empty() ? "" : " ", chosen(pass).name());
  return names;
}

bool reduces(const std::string& text) { return chosen_for(text).find("winograd") != std::string::npos; }

// Why the named candidate declines the first pass.
std::string reason(const std::string& name, const std::string& text) {
  const problem::Problem problem = legal_problem(parsed(text));
  for (const engines::Candidate* candidate : engines::candidates(runtime::DeviceKind::kCpu))
    if (candidate->name() == name)
      return candidate->supports(problem.passes.front(), engines::machine_of(runtime::DeviceKind::kCpu))
          .reason();
  return "no such candidate";
}

constexpr const char* kBoth = "cpu.winograd_gather cpu.winograd_grad_weight";
const std::string kPlain = "conv input=2x64x14x14 weight=64x64x3x3 padding=1x1 mask=iw";

TEST(WinogradSelectionTest, TakenWhereTheUserAllowsIt) {
  EXPECT_EQ(chosen_for(kPlain + " math=1 winograd=1"), kBoth);
  EXPECT_EQ(chosen_for(kPlain + " math=1 winograd=1 rules=aclnn"), kBoth);
  EXPECT_EQ(chosen_for(kPlain + " winograd=1 rules=infiniop"), kBoth);
  EXPECT_EQ(
      chosen_for("conv input=2x64x14x14 weight=64x64x3x3 padding=1x1 mask=iw math=1 winograd=1 transposed=1"),
      kBoth);
}

TEST(WinogradSelectionTest, NeverWhereExactnessIsAskedFor) {
  for (const char* mode :
       {" math=0", " math=2", " math=3", " rules=infiniop", " math=2 winograd=1", " math=3 winograd=1",
        " math=0 rules=aclnn", " math=0 winograd=1 rules=aclnn", " math=1", " math=1 rules=aclnn"})
    EXPECT_FALSE(reduces(kPlain + mode)) << mode;
  EXPECT_EQ(reason("cpu.winograd_gather", kPlain), "exact products are asked for");
}

TEST(WinogradSelectionTest, NeverForOtherTypes) {
  for (const char* dtype : {"f16", "bf16", "hif8"})
    EXPECT_FALSE(reduces(kPlain + " math=1 winograd=1 dtype=" + dtype)) << dtype;
  // Products in FP32, operands or results not.
  EXPECT_FALSE(reduces("conv input=2x64x14x14:f16 weight=64x64x3x3 padding=1x1 mask=iw math=1 winograd=1"));
  EXPECT_EQ(reason("cpu.winograd_gather",
                   "conv input=2x64x14x14 weight=64x64x3x3 padding=1x1 mask=i math=1 winograd=1 "
                   "grad_input=2x64x14x14:bf16"),
            "an operand is not f32");
}

TEST(WinogradSelectionTest, OnlyWhereItWins) {
  const std::string gather = "cpu.winograd_gather";
  for (const char* kernel : {"1x1", "3x1", "5x5", "3x4"})
    EXPECT_EQ(reason(gather, fmt::format("conv input=2x64x14x14 weight=64x64x{} math=1 winograd=1", kernel)),
              "the kernel is not 3x3 with stride and dilation 1")
        << kernel;
  for (const char* rest : {"stride=2x2", "stride=1x2", "dilation=2x2"})
    EXPECT_EQ(
        reason(gather, fmt::format("conv input=2x64x14x14 weight=64x64x3x3 math=1 winograd=1 {}", rest)),
        "the kernel is not 3x3 with stride and dilation 1")
        << rest;
  EXPECT_FALSE(reduces("conv input=2x8x14x14 weight=8x8x3x3 padding=1x1 mask=iw math=1 winograd=1"));
  EXPECT_FALSE(
      reduces("conv input=2x64x14x14 weight=64x1x3x3 padding=1x1 groups=64 mask=iw math=1 winograd=1"));
  EXPECT_EQ(reason(gather, "conv input=128x256x2x2 weight=256x256x3x3 padding=1x1 math=1 winograd=1"),
            "planes so small leave too much of a tile unused");
  EXPECT_EQ(reason(gather,
                   "conv input=1x64x7x14x14 weight=64x64x3x3x3 padding=1x1x1 stride=2x1x1 math=1 winograd=1"),
            "the stride along D is not 1");
  EXPECT_EQ(
      reason("cpu.winograd_grad_weight", "conv input=2x64x14x14 weight=64x64x3x3 math=1 winograd=1 mask=i"),
      "computes grad_weight only");
}

// Largest error of the pass's result for one of its largest magnitude; `values` is what was computed.
double relative_error(const HostTensor& values, const HostTensor& exact) {
  double error = 0, largest = 0;
  exact.for_each([&](const Dims& index) {
    error = std::max(error, std::abs(values.get(index) - exact.get(index)));
    largest = std::max(largest, std::abs(exact.get(index)));
  });
  return error / largest;
}

void run_step(const engines::Candidate& candidate, const problem::Pass& pass, Operands& operands,
              runtime::ThreadPool& pool = runtime::ThreadPool::instance()) {
  const auto step = candidate.make_step(pass, engines::machine_of(runtime::DeviceKind::kCpu));
  const std::unique_ptr<void, void (*)(void*)> workspace(
      std::aligned_alloc(64, step->workspace_bytes() / 64 * 64 + 64), std::free);
  runtime::ExecutionContext context{.pool = &pool};
  operands[result_of(pass).operand]->poison();
  step->run(operands.bindings(), static_cast<std::byte*>(workspace.get()), context);
}

void shift(HostTensor& tensor, double mean) {
  tensor.for_each([&](const Dims& index) { tensor.set(index, tensor.get(index) + mean); });
}

// The largest error over all means of the two operands that are read, against the reference's sums in double.
double worst_error(const std::string& text, const std::vector<double>& means = {0.0, 10.0}) {
  const problem::Request request = parsed(text);
  const problem::Problem problem = legal_problem(request);
  const problem::Pass& pass = problem.passes.front();
  const engines::Candidate& candidate = chosen(pass);
  EXPECT_TRUE(candidate.reduces_precision()) << text << ": " << candidate.name();
  std::mt19937_64 random(1);
  double worst = 0;
  for (const double mean_y : means)
    for (const double mean_other : means) {
      Operands operands(request);
      operands.fill_normal(random, 1.0);
      shift(*operands[Operand::kGradOutput], mean_y);
      shift(*operands[Operand::kInput], mean_other);
      shift(*operands[Operand::kWeight], mean_other);
      run_step(candidate, pass, operands);
      const HostTensor values = *operands[result_of(pass).operand];
      run_step(*engines::candidates(runtime::DeviceKind::kCpu).back(), pass, operands);
      worst = std::max(worst, relative_error(values, *operands[result_of(pass).operand]));
    }
  return worst;
}

// With 1, 2, 3 and 7 threads.
void expect_same_bits(const std::string& text) {
  const problem::Request request = parsed(text);
  const problem::Problem problem = legal_problem(request);
  const problem::Pass& pass = problem.passes.front();
  const engines::Candidate& candidate = chosen(pass);
  std::mt19937_64 random(2);
  Operands operands(request);
  operands.fill_normal(random, 1.0);
  run_step(candidate, pass, operands);
  const std::vector<uint32_t> bits = operands[result_of(pass).operand]->bits();
  for (const int threads : {1, 2, 3, 7}) {
    runtime::ThreadPool pool(threads);
    run_step(candidate, pass, operands, pool);
    EXPECT_EQ(operands[result_of(pass).operand]->bits(), bits) << text << ", " << threads << " threads";
  }
}

TEST(WinogradErrorTest, WithinTheBoundFrom16To1024Channels) {
  for (const int64_t channels : {16, 32, 64, 128, 256, 512, 1024}) {
    // The sum runs over the channels of grad_output, of input when transposed, over places for grad_weight.
    const std::string gradient =
        fmt::format("conv input=1x64x8x12 weight={0}x64x3x3 padding=1x1 mask=i math=1 winograd=1", channels);
    const std::string transposed = fmt::format(
        "conv input=1x64x8x12 weight=64x{0}x3x3 padding=1x1 mask=i math=1 winograd=1 transposed=1", channels);
    const std::string weight = fmt::format(
        "conv input=1x{0}x16x12 weight=64x{0}x3x3 padding=1x1 mask=w math=1 winograd=1", channels);
    for (const std::string& text : {gradient, transposed, weight}) {
      const double error = worst_error(text);
      EXPECT_LE(error, reduced_precision_bound(1)) << text;
      EXPECT_GT(error, 0) << text << ": nothing was compared";
      RecordProperty(fmt::format("error_{}", text), fmt::to_string(error));
    }
  }
}

TEST(WinogradErrorTest, WithinTheBoundForLongSumsOverPlaces) {
  for (const char* text : {"conv input=16x32x28x28 weight=32x32x3x3 padding=1x1 mask=w math=1 winograd=1",
                           "conv input=1x32x112x112 weight=32x32x3x3 padding=1x1 mask=w math=1 winograd=1"})
    EXPECT_LE(worst_error(text), reduced_precision_bound(1)) << text;
}

// Too many weights to keep them transformed: channels that fill no vector, more tiles than a block has,
// groups, planes of which some taps lie outside.
TEST(WinogradErrorTest, WithinTheBoundForManyWeights) {
  for (const char* text :
       {"conv input=3x200x7x9 weight=192x200x3x3 padding=1x1 mask=i math=1 winograd=1",
        "conv input=1x200x5x8 weight=200x192x3x3 padding=1x1 mask=i math=1 winograd=1 transposed=1",
        "conv input=1x384x5x8 weight=400x192x3x3 padding=1x1 groups=2 mask=i math=1 winograd=1",
        "conv input=1x96x3x8x8 weight=136x96x3x3x3 padding=1x1x1 mask=i math=1 winograd=1",
        "conv input=1x16x9x140 weight=1160x16x3x3 padding=1x1 mask=i math=1 winograd=1"}) {
    EXPECT_LE(worst_error(text, {0.0}), reduced_precision_bound(1)) << text;
    expect_same_bits(text);
  }
}

// A value that is not finite reaches no further than the tiles that read it.
TEST(WinogradNanTest, StaysInItsTiles) {
  const problem::Request request =
      parsed("conv input=2x32x12x12 weight=32x32x3x3 padding=1x1 mask=i math=1 winograd=1");
  const problem::Problem problem = legal_problem(request);
  Operands operands(request);
  std::mt19937_64 random(3);
  operands.fill_normal(random, 1.0);
  operands[Operand::kGradOutput]->set({1, 5, 5, 6}, std::nan(""));
  run_step(chosen(problem.passes.front()), problem.passes.front(), operands);
  operands[Operand::kGradInput]->for_each([&](const Dims& index) {
    // Read by the tile of rows 4 to 7 and columns 4 to 7 alone: others see rows up to 4, and from 7.
    const bool in_tile = index[0] == 1 && index[2] / 4 == 1 && index[3] / 4 == 1;
    EXPECT_EQ(std::isfinite(operands[Operand::kGradInput]->get(index)), !in_tile) << to_string(index);
  });
}

}  // namespace
}  // namespace retrograd::test
