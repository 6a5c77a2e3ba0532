// SPDX-License-Identifier: Apache-2.0
// The fit of efficiencies: it finds those that times were made from, and choices that cost less.
#include "tools/sweep/tuning_fit.h"

#include <gtest/gtest.h>

#include <random>

namespace retrograd::tools {
namespace {

using engines::Efficiency;
using engines::Tuning;

// Times of two implementations as their costs say, a few per cent off; the second starts faster and computes
// slower.
std::vector<FitPass> made_from(const Efficiency& first, const Efficiency& second) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(-2, 8), balance(-2, 2), noise(0.97, 1.03);
  std::vector<FitPass> passes;
  for (int i = 0; i < 80; ++i) {
    const double arithmetic = std::exp(exponent(random));
    FitFigure figure{"first", arithmetic, arithmetic * std::exp(balance(random)), 1, 0, 0};
    figure.measured = own_cost(first, figure) * noise(random);
    FitFigure other = figure;
    other.name = "second";
    other.measured = own_cost(second, other) * noise(random);
    passes.push_back({{figure, other}});
  }
  return passes;
}

TEST(TuningFitTest, FindsWhatTimesWereMadeFrom) {
  const Efficiency first{0.6, 0.3, 20}, second{0.1, 0.25, 1};
  const std::vector<FitPass> passes = made_from(first, second);
  Tuning start;
  start.set("first", {0.9, 0.8, 1});
  start.set("second", {0.89, 0.8, 1});
  start.set("unseen", {0.5, 0.4, 3});
  const Tuning fitted = fit(passes, start).tuning;
  for (const auto& [name, right] : {std::pair{"first", first}, std::pair{"second", second}}) {
    const Efficiency found = fitted.of(name);
    EXPECT_NEAR(found.arithmetic / right.arithmetic, 1, 0.1) << name;
    EXPECT_NEAR(found.memory / right.memory, 1, 0.1) << name;
    EXPECT_NEAR(found.start / right.start, 1, 0.1) << name;
    EXPECT_LT(typical_error(fitted, passes, name), 1.05);
  }
  EXPECT_EQ(fitted.of("unseen").arithmetic, 0.5);
  EXPECT_GT(mean_regret(start, passes), 1.2);
  EXPECT_LT(mean_regret(fitted, passes), 1.01);
}

// One implementation that reaches more of the peak in one case than in the other.
TEST(TuningFitTest, CasesThatDifferHaveLinesOfTheirOwn) {
  const std::string narrow = "forward/f16/nchw", wide = "forward/f32/nchw";
  std::vector<FitPass> passes;
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(2, 8), noise(0.97, 1.03);
  for (int i = 0; i < 120; ++i) {
    const bool is_narrow = i % 2 == 0;
    FitFigure one{"one", std::exp(exponent(random)), 1, 1, 0, 0}, other{"other", one.arithmetic, 1, 1, 0, 0};
    one.pass_case = other.pass_case = is_narrow ? narrow : wide;
    one.measured = own_cost({is_narrow ? 0.2 : 0.8, 0.5, 1}, one) * noise(random);
    other.measured = own_cost({0.4, 0.5, 1}, other) * noise(random);
    passes.push_back({{one, other}});
  }
  const Tuning fitted = fit(passes, Tuning{}).tuning;
  EXPECT_NEAR(fitted.of("one", narrow).arithmetic / fitted.of("one", wide).arithmetic, 0.25, 0.05);
  EXPECT_LT(mean_regret(fitted, passes), 1.01);
}

TEST(TuningFitTest, FewFiguresTellOneFactor) {
  Tuning start;
  start.set("first", {0.8, 0.4, 2});
  FitFigure figure{"first", 80, 1, 1, 0, 0};
  figure.measured = 4 * predicted(start, figure);
  const Efficiency found = fit({{{figure}}}, start).tuning.of("first");
  EXPECT_NEAR(found.arithmetic, 0.2, 1e-9);
  EXPECT_NEAR(found.memory, 0.1, 1e-9);
  EXPECT_NEAR(found.start, 8, 1e-9);
}

TEST(TuningFitTest, NothingMeasuredChangesNothing) {
  Tuning start;
  start.set("first", {0.8, 0.4, 2});
  EXPECT_EQ(fit({}, start).tuning.to_text(), start.to_text());
}

// Two whose costs the formula cannot tell apart: the choice that was right before stays.
TEST(TuningFitTest, ChoicesAreNotMadeWorse) {
  std::vector<FitPass> passes;
  std::mt19937 random(1);
  std::uniform_real_distribution<double> any(-1, 1);
  for (int i = 0; i < 40; ++i) {
    const FitFigure wide{"wide", 100, 10, 1, 0, 400};
    const FitFigure general{"general", 100, 10, 1, 0, i % 2 == 0 ? 4e4 : 410 * std::exp(0.1 * any(random))};
    passes.push_back({{wide, general}});
    passes.push_back({{{"general", 100, 10, 1, 0, 200}}});
  }
  Tuning start;
  start.set("wide", {0.9, 0.8, 1});
  start.set("general", {0.89, 0.8, 1});
  EXPECT_LE(mean_regret(fit(passes, start).tuning, passes), mean_regret(start, passes) + 1e-9);
}

TEST(TuningFitTest, TablesCanBeReadAgain) {
  const Tuning fitted = fit(made_from({0.6, 0.3, 20}, {0.1, 0.25, 1}), Tuning{}).tuning;
  const auto read = Tuning::parse("# a comment\n" + fitted.to_text());
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  EXPECT_NEAR(read.value().of("first").start / fitted.of("first").start, 1, 1e-3);
}

}  // namespace
}  // namespace retrograd::tools
