// SPDX-License-Identifier: Apache-2.0
// NaN and Inf reach exactly the results that depend on them; padding, remainder columns and dead taps give
// exact zeros.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "engines/registry.h"
#include "problem/problem_text.h"
#include "support/generator/problem_generator.h"
#include "support/legal_problem.h"
#include "support/operands.h"
#include "support/oracle.h"

namespace retrograd::test {
namespace {

using problem::Operand;

problem::Request parsed(const char* text) {
  auto request = problem::parse_request(text);
  EXPECT_TRUE(request.is_ok()) << request.status().message();
  return std::move(request).value();
}

// Puts `poison` into one element of one operand and compares which results are not finite with what the terms
// say, for every candidate that must be exact.
void check_spread(const problem::Request& request, Operand poisoned, double poison, std::mt19937_64& random) {
  SCOPED_TRACE(problem::to_text(request));
  Operands operands(request);
  operands.fill_integers(random, 2);
  HostTensor& tensor = *operands[poisoned];
  if (tensor.count() == 0) return;
  Dims place;
  for (int64_t size : tensor.view().shape)
    place.push_back(std::uniform_int_distribution<int64_t>(0, size - 1)(random));
  tensor.set(place, poison);

  std::set<size_t> inputs, weights;
  const size_t poisoned_at = flat_index(tensor.view().shape, place);
  for_each_term(request, [&](const Term& t) {
    const size_t touched = poisoned == Operand::kGradOutput ? t.out
                           : poisoned == Operand::kInput    ? t.in
                                                            : t.w;
    if (touched != poisoned_at) return;
    if (poisoned != Operand::kInput) inputs.insert(t.in);
    if (poisoned != Operand::kWeight) weights.insert(t.w);
  });
  const auto judge = [&](Operand operand, const std::set<size_t>& expected) {
    if (!operands[operand]) return;
    size_t i = 0;
    operands[operand]->for_each([&](const Dims& index) {
      const bool spread = !std::isfinite(operands[operand]->get(index));
      EXPECT_EQ(spread, expected.contains(i))
          << name_of(operand) << "[" << to_string(index) << "] after " << name_of(poisoned) << "["
          << to_string(place) << "] = " << poison;
      ++i;
    });
  };
  const problem::Problem problem = legal_problem(request);
  for (runtime::Device* device : devices_under_test()) {
    const auto all = engines::candidates(device->kind());
    for (const engines::Candidate* candidate : all) {
      if (!is_exact(*candidate)) continue;
      SCOPED_TRACE(candidate->name());
      operands.poison_results();
      const auto order = with_the_exact_behind(*candidate, all);
      ASSERT_TRUE(run_on(*device, problem, operands, order).is_ok());
      judge(Operand::kGradInput, inputs);
      judge(Operand::kGradWeight, weights);
    }
  }
}

TEST(SpecialValuesTest, NanAndInfReachWhatDependsOnThemOnly) {
  std::mt19937_64 random(5);
  // Broadcast operands would hold the value several times.
  ProblemGenerator generator(5, {.all_dtypes = false, .any_strides = false});
  for (int i = 0; i < 60 && !HasFailure(); ++i) {
    const problem::Request request = *to_request(generator.conv());
    for (Operand operand : {Operand::kGradOutput, Operand::kInput, Operand::kWeight})
      for (double value : {std::nan(""), std::numeric_limits<double>::infinity()})
        check_spread(request, operand, value, random);
  }
}

// Results that pass through other layouts, and results that are looked at where they lie.
TEST(SpecialValuesTest, NanAndInfInSixteenBits) {
  std::mt19937_64 random(6);
  for (const char* text : {
           "conv input=2x16x9x9 weight=8x16x3x3 padding=1x1 dtype=f16",
           "conv input=1x16x18x17 weight=8x16x3x3 padding=1x1 dtype=bf16",
           "conv input=1x16x20x20 weight=8x16x3x3 stride=2x2 padding=1x1 dtype=f16",
           "conv input=1x8x17x17 weight=16x8x2x2 padding=1x1 dtype=bf16",
           "conv input=1x8x9x9 weight=8x16x3x3 stride=2x2 transposed=1 dtype=f16",
           "conv input=1x16x20x20@6400x1x320x16 weight=8x16x1x1 grad_output=1x8x10x10@800x1x80x8 "
           "grad_input=1x16x20x20@6400x1x320x16 stride=2x2 dtype=f16",
           "conv input=1x16x20x20@6400x1x320x16 weight=8x16x3x3@144x1x48x16 "
           "grad_output=1x8x20x20@3200x1x160x8 "
           "grad_input=1x16x20x20@6400x1x320x16 grad_weight=8x16x3x3@144x1x48x16 padding=1x1 dtype=bf16",
           "conv input=2x32x6x8 weight=32x4x3x3 groups=8 padding=1x1 dtype=f16",
           "conv input=1x16x30x28@13440x1x448x16 weight=16x8x3x3 groups=2 padding=1x1 dtype=bf16 "
           "grad_output=1x16x30x28@13440x1x448x16 grad_input=1x16x30x28@13440x1x448x16",
           "conv input=2x1x700 weight=9x1x10 stride=5 padding=2 dtype=bf16",
           "conv input=2x1x7 weight=2x1x1 grad_output=2x2x8 padding=0x1 dtype=f16",  // padding behind one tap
       })
    for (Operand operand : {Operand::kGradOutput, Operand::kInput, Operand::kWeight})
      for (double value : {std::nan(""), std::numeric_limits<double>::infinity()})
        check_spread(parsed(text), operand, value, random);
}

// Zeros stand for places outside in one engine or another on each of these; what is not finite must not meet
// them, and must reach everything else.
TEST(SpecialValuesTest, NanAndInfInEveryEngine) {
  std::mt19937_64 random(7);
  for (const char* text : {
           "conv input=1x32x8x16 weight=32x1x1x1 groups=32",
           "conv input=1x2x2 weight=2x1x1 stride=2 groups=2",  // one output, and places behind it
           "conv input=1x32x8x16 weight=32x1x1x1 groups=32 transposed=1",
           "conv input=2x24x9x19 weight=24x1x3x3 padding=1x1 groups=24",
           "conv input=2x24x9x19 weight=24x1x3x3 padding=1x1 groups=24 transposed=1",
           "conv input=2x24x7x7 weight=24x1x5x5 padding=2x2 groups=24",
           "conv input=2x24x14x14 weight=24x1x3x3 padding=1x1 stride=2x2 groups=24",
           "conv input=1x16x12x40 weight=16x1x7x7 padding=6x6 dilation=2x2 groups=16",
           "conv input=2x17x70 weight=17x1x3 padding=1 groups=17",
           "conv input=2x17x70 weight=17x1x5 padding=8 dilation=4 groups=17 transposed=1",
           "conv input=2x12x10x13 weight=12x4x3x3 padding=1x1 groups=3",
           "conv input=2x12x10x13 weight=12x4x3x3 padding=1x1 groups=3 transposed=1",
           "conv input=1x12x14x14 weight=12x4x3x3 padding=1x1 stride=2x2 groups=3",
           "conv input=2x1x20x40 weight=3x1x3x3 padding=1x1",
           "conv input=2x1x6x20x40 weight=3x1x3x3x3 padding=1x1x1",
           "conv input=1x3x20x22 weight=33x3x5x5 padding=2x2 stride=2x2",
           "conv input=1x2x300 weight=5x2x9 padding=4",
           "conv input=1x16x5x7 weight=32x16x5x5 padding=2x2",
           "conv input=1x16x5x7 weight=32x16x5x5 padding=2x2 dtype=bf16",
           "conv input=1x16x1x9 weight=32x16x1x7 padding=0x3",
           "conv input=2x64x3x3 weight=64x64x3x3 padding=1x1 dtype=bf16",
           // One tap, and weights that are read where they lie.
           "conv input=1x2x2 weight=2x1x1 stride=3 padding=1 output_padding=1 transposed=1",
           "conv input=2x8x2 weight=8x1x1 stride=3 padding=1 output_padding=1 transposed=1",
           "conv input=2x4x2 weight=4x1x1 stride=3 padding=1 output_padding=1 transposed=1",
           "conv input=2x16x2 weight=16x1x1 stride=3 padding=1 output_padding=1 transposed=1",
           "conv input=2x32x2 weight=32x1x1 stride=3 padding=1 output_padding=1 transposed=1",
       })
    for (Operand operand : {Operand::kGradOutput, Operand::kInput, Operand::kWeight})
      for (double value : {std::nan(""), std::numeric_limits<double>::infinity()})
        for (int place = 0; place < 2; ++place) check_spread(parsed(text), operand, value, random);
}

// Runs every candidate that must be exact on what `fill` makes of the operands, and hands each result over:
// operand, value, exact value, sum of the terms' magnitudes.
template <class Fill, class Judge>
void check_values(const char* text, Fill&& fill, Judge&& judge) {
  const problem::Request request = parsed(text);
  Operands operands(request);
  fill(operands);
  const Gradients exact = gradients_by_scattering(request, operands);
  const problem::Problem problem = legal_problem(request);
  for (runtime::Device* device : devices_under_test()) {
    const auto all = engines::candidates(device->kind());
    for (const engines::Candidate* candidate : all) {
      if (!is_exact(*candidate)) continue;
      SCOPED_TRACE(testing::Message() << text << ", " << candidate->name());
      operands.poison_results();
      const auto order = with_the_exact_behind(*candidate, all);
      ASSERT_TRUE(run_on(*device, problem, operands, order).is_ok());
      const auto judge_all = [&](Operand operand, const auto& values, const auto& magnitudes) {
        size_t i = 0;
        operands[operand]->for_each([&](const Dims& index) {
          judge(operands[operand]->get(index), values[i], magnitudes[i]);
          ++i;
        });
      };
      judge_all(Operand::kGradInput, exact.grad_input.values, exact.grad_input.magnitudes);
      judge_all(Operand::kGradWeight, exact.grad_weight.values, exact.grad_weight.magnitudes);
    }
  }
}

// Tensor cores take operands of 11 bits; FP32 is made of several of them.
constexpr const char* kWideShapes[] = {"conv input=2x20x6x7 weight=36x20x3x3 padding=1x1",
                                       "conv input=3x40x5x5 weight=40x20x2x2 groups=2 transposed=1"};

TEST(SpecialValuesTest, IntegersOf13BitsAreMultipliedExactly) {
  for (const char* text : kWideShapes)
    for (const Operand wide : {Operand::kGradOutput, Operand::kInput, Operand::kWeight})
      check_values(
          text,
          [&](Operands& operands) {
            std::mt19937_64 random(3);
            operands.fill_integers(random, 1);
            std::uniform_int_distribution<int> integers(-4096, 4096);
            operands[wide]->for_each(
                [&](const Dims& index) { operands[wide]->set(index, integers(random)); });
          },
          [](double value, double exact, double) { EXPECT_EQ(value, exact); });
}

TEST(SpecialValuesTest, TheLargestNumbersDoNotOverflowBeforeTheirSum) {
  for (const char* text : kWideShapes)
    check_values(
        text,
        [](Operands& operands) {
          std::mt19937_64 random(4);
          operands.fill_integers(random, 2);
          HostTensor& tensor = *operands[Operand::kGradOutput];
          tensor.set(Dims::filled(tensor.view().shape.rank(), 1), std::numeric_limits<float>::max());
          for (const Operand operand : {Operand::kInput, Operand::kWeight})
            operands[operand]->for_each(
                [&](const Dims& index) { operands[operand]->set(index, operands[operand]->get(index) / 8); });
        },
        [](double value, double exact, double magnitude) { EXPECT_NEAR(value, exact, 1e-6 * magnitude); });
}

// Numbers on both sides of the smallest normal one; of such operands what lies below 2^-137 may be lost.
TEST(SpecialValuesTest, TheSmallestNumbersCount) {
  for (const char* text : kWideShapes)
    check_values(
        text,
        [](Operands& operands) {
          std::mt19937_64 random(5);
          operands.fill_integers(random, 2);
          HostTensor& tensor = *operands[Operand::kGradOutput];
          std::uniform_int_distribution<int> integers(-100, 100);
          tensor.for_each([&](const Dims& index) { tensor.set(index, std::ldexp(integers(random), -130)); });
        },
        [](double value, double exact, double) { EXPECT_EQ(value, exact); });
}

TEST(SpecialValuesTest, UntouchedPlacesAreExactPositiveZeros) {
  // Width 7, kernel 2, stride 3: columns 2 and 5 are between windows, column 6 is the remainder.
  const problem::Request request = parsed("conv input=1x1x7 weight=1x1x2 stride=3");
  Operands operands(request);
  std::mt19937_64 random(1);
  operands.fill_integers(random, 1);
  for (int i = 0; i < 2; ++i) operands[Operand::kGradOutput]->set({0, 0, i}, std::nan(""));
  operands.poison_results();
  ASSERT_TRUE(run_on_cpu(legal_problem(request), operands).is_ok());
  for (int column : {2, 5, 6}) {
    const double value = operands[Operand::kGradInput]->get({0, 0, column});
    EXPECT_EQ(value, 0.0) << "column " << column;
    EXPECT_FALSE(std::signbit(value)) << "column " << column;
  }
}

TEST(SpecialValuesTest, TapsThatNeverMeetTheInputGetZero) {
  // One input element, padding 2, kernel 5: with one output, tap 2 alone reads the input.
  const problem::Request request = parsed("conv input=1x1x1 weight=1x1x5 padding=2");
  Operands operands(request);
  operands[Operand::kGradOutput]->set({0, 0, 0}, 3);
  operands[Operand::kInput]->set({0, 0, 0}, 5);
  for (int k = 0; k < 5; ++k) operands[Operand::kWeight]->set({0, 0, k}, 1);
  operands.poison_results();
  ASSERT_TRUE(run_on_cpu(legal_problem(request), operands).is_ok());
  for (int k = 0; k < 5; ++k) EXPECT_EQ(operands[Operand::kGradWeight]->get({0, 0, k}), k == 2 ? 15.0 : 0.0);
}

}  // namespace
}  // namespace retrograd::test
