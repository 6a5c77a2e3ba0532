// SPDX-License-Identifier: Apache-2.0
// A judge that lets everything pass is worthless: candidates with planted errors must be found, and only
// those.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "engines/machines.h"
#include "engines/reference/element.h"
#include "engines/reference/reference.h"
#include "problem/problem_text.h"
#include "tools/check/check_pass.h"
#include "tools/check/element_index.h"

namespace retrograd::tools::check_test {
namespace {

using Data = PassCheck::Data;
// Does something to the result, given its address and its strides in bytes.
using Damage = std::function<void(std::byte* result)>;

class DamagedStep final : public engines::Step {
 public:
  DamagedStep(const problem::Pass& pass, Damage damage)
      : pass_(pass),
        step_(
            engines::reference::candidate().make_step(pass, engines::machine_of(runtime::DeviceKind::kCpu))),
        damage_(std::move(damage)) {}
  void run(const engines::Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    step_->run(bindings, workspace, context);
    damage_(static_cast<std::byte*>(bindings[result_of(pass_).operand]));
  }

 private:
  problem::Pass pass_;
  std::unique_ptr<const engines::Step> step_;
  Damage damage_;
};

class Damaged final : public engines::Candidate {
 public:
  explicit Damaged(Damage damage, bool reduces_precision = false)
      : damage_(std::move(damage)), reduces_precision_(reduces_precision) {}
  const char* name() const override { return "damaged"; }
  bool reduces_precision() const override { return reduces_precision_; }
  engines::Support supports(const problem::Pass&, const Machine& /*machine*/) const override {
    return engines::Support::yes();
  }
  std::unique_ptr<const engines::Step> make_step(const problem::Pass& pass,
                                                 const Machine& /*machine*/) const override {
    return std::make_unique<DamagedStep>(pass, damage_);
  }

 private:
  Damage damage_;
  bool reduces_precision_;
};

Finding judge(const char* text, Data data, const engines::Candidate& candidate, CheckOptions options = {}) {
  const auto request = problem::parse_request(text);
  EXPECT_TRUE(request.is_ok());
  const auto problem = problem::judge(request.value());
  EXPECT_TRUE(problem.is_ok());
  auto check = PassCheck::make(problem.value(), 0, data, options);
  EXPECT_TRUE(check.is_ok());
  return check.value()->judge(candidate);
}

constexpr const char* kConv = "conv input=2x3x6x5 weight=4x3x3x3 padding=1x1 mask=i";
constexpr int64_t kPlace = ((1 * 3 + 2) * 6 + 4) * 5 + 3;  // [1,2,4,3]

Damage scale_one(float factor) {
  return [factor](std::byte* result) {
    float* element = reinterpret_cast<float*>(result) + kPlace;
    *element = *element == 0 ? factor - 1 : *element * factor;
  };
}

TEST(CheckTest, TheReferenceIsRight) {
  for (Data data : {Data::kExact, Data::kRandom}) {
    const Finding finding = judge(kConv, data, engines::reference::candidate());
    EXPECT_TRUE(finding.ok) << finding.why;
    EXPECT_EQ(finding.compared, 180);
    EXPECT_EQ(finding.wrong, 0);
  }
}

TEST(CheckTest, OneWrongElementIsNamed) {
  for (Data data : {Data::kExact, Data::kRandom}) {
    const Finding finding = judge(kConv, data, Damaged(scale_one(1.001F)));
    EXPECT_FALSE(finding.ok);
    EXPECT_EQ(finding.wrong, 1);
    EXPECT_EQ(finding.index, "[1,2,4,3]");
    EXPECT_GT(finding.ulp, 1000);
  }
}

TEST(CheckTest, NanIsWrong) {
  const Damage nan = [](std::byte* result) { reinterpret_cast<float*>(result)[kPlace] = NAN; };
  for (Data data : {Data::kExact, Data::kRandom}) {
    const Finding finding = judge(kConv, data, Damaged(nan));
    EXPECT_FALSE(finding.ok);
    EXPECT_EQ(finding.index, "[1,2,4,3]");
  }
}

// Each element within its bound, all of them together too far off.
TEST(CheckTest, SmallErrorsEverywhereAreFound) {
  const Damage all = [](std::byte* result) {
    for (int i = 0; i < 180; ++i) reinterpret_cast<float*>(result)[i] *= 1.0F + 2e-5F;
  };
  const Finding finding = judge(kConv, Data::kRandom, Damaged(all));
  EXPECT_FALSE(finding.ok);
}

TEST(CheckTest, HalfTypesMustBeRoundedCorrectly) {
  const Damage all = [](std::byte* result) {  // the next number, away from zero
    for (int i = 0; i < 180; ++i) ++reinterpret_cast<uint16_t*>(result)[i];
  };
  const char* text = "conv input=2x3x6x5 weight=4x3x3x3 padding=1x1 mask=i dtype=f16";
  EXPECT_TRUE(judge(text, Data::kRandom, engines::reference::candidate()).ok);
  EXPECT_FALSE(judge(text, Data::kRandom, Damaged(all)).ok);
}

TEST(CheckTest, ElementsThatWereNeverWritten) {
  CheckOptions few;
  few.products = 1;  // a sample of 256, first and last among them, of 12000
  const char* text = "conv input=2x3x40x50 weight=4x3x3x3 padding=1x1 mask=i";
  const Damage unwritten = [](std::byte* result) { std::fill_n(result + 400, 4000, std::byte{0xCD}); };
  const Damage one = [](std::byte* result) { std::fill_n(result + 400, 4, std::byte{0xCD}); };
  EXPECT_FALSE(judge(text, Data::kExact, Damaged(unwritten), few).ok);
  const Finding finding = judge(text, Data::kExact, Damaged(one), few);
  EXPECT_EQ(finding.compared, 256);
  EXPECT_EQ(finding.elements, 12000);
  EXPECT_FALSE(finding.ok);
  EXPECT_EQ(finding.why, "1 elements were never written");
  few.full = true;
  EXPECT_EQ(judge(text, Data::kExact, Damaged(one), few).wrong, 1);
}

TEST(CheckTest, BytesBetweenElements) {
  const char* text = "conv input=1x1x4 weight=1x1x1 mask=i grad_input=1x1x4@8x8x2";
  EXPECT_TRUE(judge(text, Data::kExact, engines::reference::candidate()).ok);
  const Damage gap = [](std::byte* result) { result[5] = std::byte{1}; };
  EXPECT_EQ(judge(text, Data::kExact, Damaged(gap)).why, "bytes between the elements were written");
}

TEST(CheckTest, ReducedPrecisionHasItsOwnBound) {
  EXPECT_TRUE(judge(kConv, Data::kExact, Damaged(scale_one(1.000001F), true)).ok);
  EXPECT_FALSE(judge(kConv, Data::kExact, Damaged(scale_one(1.000001F))).ok);
  EXPECT_FALSE(judge(kConv, Data::kRandom, Damaged(scale_one(1.1F), true)).ok);
}

TEST(CheckTest, PlacesInTheCallersOrder) {
  const auto index = [](const char* text, size_t pass) {
    const auto problem = problem::judge(problem::parse_request(text).value()).value();
    return element_index(problem.request, problem.passes.at(pass), {1, 2, 3, 4, 5});
  };
  EXPECT_EQ(index("conv input=1x1x8 weight=1x1x1", 0), "[1,2,5]");
  EXPECT_EQ(index("conv input=1x1x8x8x8 weight=1x1x1x1x1", 1), "[1,2,3,4,5]");
  EXPECT_EQ(index("conv input=1x1x8 weight=1x1x1", 2), "[2]");
  EXPECT_EQ(index("conv_tbc input=8x1x1 weight=1x1x1", 0), "[5,1,2]");
  EXPECT_EQ(index("conv_tbc input=8x1x1 weight=1x1x1", 1), "[5,2,1]");
  EXPECT_EQ(index("avgpool input=4x8x8 kernel=2 spatial=2", 0), "[2,4,5]");
}

TEST(CheckTest, NoMemoryIsAnAnswer) {
  const auto problem =
      problem::judge(problem::parse_request("conv input=1x1x1099511627776 weight=1x1x1 mask=i").value());
  ASSERT_TRUE(problem.is_ok());
  EXPECT_FALSE(PassCheck::make(problem.value(), 0, Data::kExact, {}).is_ok());
}

}  // namespace
}  // namespace retrograd::tools::check_test
