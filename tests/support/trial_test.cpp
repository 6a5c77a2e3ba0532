// SPDX-License-Identifier: Apache-2.0
// The judges can fail: results that are changed, unwritten or written beside are reported, and a candidate
// that is wrong is found and its problem made small.
#include "support/trial.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "engines/machines.h"
#include "engines/registry.h"
#include "problem/problem_text.h"
#include "support/fault_guard.h"
#include "support/generator/problem_generator.h"
#include "support/legal_problem.h"
#include "support/oracle.h"
#include "support/verdict.h"

namespace retrograd::test {
namespace {

using problem::Operand;

constexpr double kInf = std::numeric_limits<double>::infinity();

const engines::Candidate& reference() { return *engines::candidates(runtime::DeviceKind::kCpu).back(); }
runtime::Device& cpu() { return *runtime::find_device(runtime::DeviceKind::kCpu, 0); }

class VerdictTest : public testing::Test {
 protected:
  void compute(const char* text, const DataSketch& data) {
    data_ = data;
    request_ = problem::parse_request(text).value();
    operands_.emplace(request_);
    fill(*operands_, data);
    exact_ = gradients_by_scattering(request_, *operands_);
    operands_->poison_results();
    const engines::Candidate* const only[] = {&reference()};
    ASSERT_TRUE(run_on_cpu(legal_problem(request_), *operands_, only).is_ok());
  }
  std::optional<std::string> verdict(Operand operand) {
    const Standard standard = standard_of(data_, *operands_, runtime::DeviceKind::kCpu);
    return find_error(*(*operands_)[operand], *exact_.find(operand), standard);
  }
  // The element as it is, then as `value`.
  void expect_seen(Operand operand, const Dims& index, double value) {
    SCOPED_TRACE(testing::Message() << problem::to_text(request_) << " as " << value);
    HostTensor& result = *(*operands_)[operand];
    EXPECT_EQ(verdict(operand).value_or("right"), "right");
    const double right = result.get(index);
    result.set(index, value);
    EXPECT_TRUE(verdict(operand).has_value());
    result.set(index, right);
  }

  DataSketch data_;
  problem::Request request_;
  std::optional<Operands> operands_;
  Gradients exact_;
};

TEST_F(VerdictTest, AChangedElementIsSeen) {
  constexpr const char* kText = "conv input=2x3x5x5@1x2x6x30 weight=4x3x3x3 padding=1x1";
  for (const auto numbers : {DataSketch::Numbers::kIntegers, DataSketch::Numbers::kNormal}) {
    compute(kText, {.numbers = numbers});
    for (const auto& [operand, index] : {std::pair{Operand::kGradInput, Dims{1, 2, 4, 3}},
                                         {Operand::kGradWeight, Dims{3, 0, 1, 1}},
                                         {Operand::kGradBias, Dims{2}}}) {
      const double right = (*operands_)[operand]->get(index);
      for (const double other :
           {right + 1e-3 * std::max(1.0, std::abs(right)), -right - 1, kInf, std::nan("")})
        expect_seen(operand, index, other);
      expect_seen(operand, index, -431602080);  // the poison of an element that was not written
    }
  }
  // The last bit counts where sums are exact.
  compute(kText, {});
  const double right = (*operands_)[Operand::kGradBias]->get({0});
  ASSERT_NE(right, 0);
  expect_seen(Operand::kGradBias, {0}, std::nextafter(static_cast<float>(right), 1e9F));
}

TEST_F(VerdictTest, EverySpecialValueIsHeldToTheTerms) {
  const char* const text = "conv input=1x2x6 weight=2x2x2 padding=1";
  for (const auto& [special, value] :
       {std::pair{Special::kNan, std::nan("")}, {Special::kInf, kInf}, {Special::kMinusInf, -kInf}}) {
    DataSketch data;
    data.specials[0] = {Amount::kOne, 1U << static_cast<unsigned>(special)};
    compute(text, data);
    Dims spread, finite;
    HostTensor& result = *(*operands_)[Operand::kGradInput];
    result.for_each([&](const Dims& index) { (std::isfinite(result.get(index)) ? finite : spread) = index; });
    ASSERT_FALSE(spread.empty());
    ASSERT_FALSE(finite.empty());
    const double right = result.get(spread);
    expect_seen(Operand::kGradInput, spread, 1);
    expect_seen(Operand::kGradInput, spread, std::isnan(right) ? kInf : std::nan(""));
    if (!std::isnan(right)) expect_seen(Operand::kGradInput, spread, -right);
    expect_seen(Operand::kGradInput, finite, value);
    expect_seen(Operand::kGradInput, finite, result.get(finite) + 1);
  }
}

TEST_F(VerdictTest, PlacesWithoutTermsArePositiveZerosAndGapsStay) {
  DataSketch data;
  data.specials[0] = {Amount::kAll, 1U};
  compute("conv input=1x1x7 weight=1x1x2 stride=3 grad_input=1x1x7@14x14x2", data);
  for (const double wrong : {-0.0, 1.0, std::nan("")}) expect_seen(Operand::kGradInput, {0, 0, 2}, wrong);
  (*operands_)[Operand::kGradInput]->storage()[5] = std::byte{0};
  EXPECT_EQ(verdict(Operand::kGradInput), "bytes between the elements were written");
}

TEST_F(VerdictTest, OverflowOfANarrowTypeIsNoError) {
  compute("conv input=1x300x1 weight=1x300x1 grad_output=1x1x1 grad_weight=1x300x1:e4m3 dtype=e4m3 mask=i",
          {});
  EXPECT_EQ(verdict(Operand::kGradInput).value_or("right"), "right");
  DataSketch largest;
  largest.specials = {DataSketch::Specials{Amount::kAll, 1U << static_cast<unsigned>(Special::kLargest)},
                      {},
                      {Amount::kAll, 1U << static_cast<unsigned>(Special::kLargest)}};
  compute("conv input=1x3x4 weight=2x3x1 dtype=f16", largest);
  EXPECT_EQ(verdict(Operand::kGradInput).value_or("right"), "right");
  const HostTensor& result = *(*operands_)[Operand::kGradInput];
  Dims infinite;
  result.for_each([&](const Dims& index) {
    if (std::isinf(result.get(index))) infinite = index;
  });
  ASSERT_FALSE(infinite.empty());
  for (const double wrong : {3.0, 65504.0, -result.get(infinite)})
    expect_seen(Operand::kGradInput, infinite, wrong);
}

// Has the reference compute, then spoils the result where `spoil` says.
class Spoiler final : public engines::Candidate {
 public:
  using Spoil = void (*)(const problem::Pass& pass, const engines::Bindings& bindings);
  explicit Spoiler(Spoil spoil) : spoil_(spoil) {}
  const char* name() const override { return "spoiler"; }
  engines::Support supports(const problem::Pass& pass, const Machine& /*machine*/) const override {
    return reference().supports(pass, engines::machine_of(runtime::DeviceKind::kCpu));
  }
  std::unique_ptr<const engines::Step> make_step(const problem::Pass& pass,
                                                 const Machine& /*machine*/) const override {
    return std::make_unique<SpoiledStep>(pass, spoil_);
  }

 private:
  class SpoiledStep final : public engines::Step {
   public:
    SpoiledStep(const problem::Pass& pass, Spoil spoil)
        : pass_(pass),
          spoil_(spoil),
          step_(reference().make_step(pass, engines::machine_of(runtime::DeviceKind::kCpu))) {}
    void run(const engines::Bindings& bindings, std::byte* workspace,
             runtime::ExecutionContext& context) const override {
      step_->run(bindings, workspace, context);
      spoil_(pass_, bindings);
    }

   private:
    problem::Pass pass_;
    Spoil spoil_;
    std::unique_ptr<const engines::Step> step_;
  };
  Spoil spoil_;
};

std::byte* result_at(const problem::Pass& pass, const engines::Bindings& bindings) {
  return static_cast<std::byte*>(bindings[result_of(pass).operand]);
}

// Problems until one fails.
std::optional<Trial::Smaller> first_failure(Spoiler::Spoil spoil, int most = 3000) {
  FaultGuard::install();
  const Spoiler spoiler(spoil);
  const engines::Candidate* const only[] = {&spoiler};
  Trial trial(cpu(), only);
  ProblemGenerator generator(11, {.most_products = 3000});
  Draw draw(11);
  for (int i = 0; i < most; ++i) {
    const ProblemSketch sketch = generator.any();
    const DataSketch data = draw_data(draw);
    if (const auto failure = trial.run(sketch, data, {})) return trial.make_smaller(sketch, data, *failure);
  }
  return std::nullopt;
}

TEST(TrialTest, WhatIsRightIsNotReported) {
  EXPECT_FALSE(first_failure([](const problem::Pass&, const engines::Bindings&) {}).has_value());
}

TEST(TrialTest, AWrongResultIsFoundAndMadeSmall) {
  const auto small = first_failure([](const problem::Pass& pass, const engines::Bindings& bindings) {
    const auto* conv = std::get_if<problem::ConvPass>(&pass);
    if (conv == nullptr || conv->w.operand != Operand::kWeight) return;
    if (conv->w.strides[0] == 0 && conv->y_channels_per_group() > 2)
      *result_at(pass, bindings) ^= std::byte{0x40};
  });
  ASSERT_TRUE(small.has_value());
  SCOPED_TRACE(problem::to_text(*to_request(small->sketch)));
  EXPECT_EQ((small->sketch.transposed ? small->sketch.inputs : small->sketch.outputs), 3);
  // conv_tbc has its output channels behind, and no mask.
  const bool tbc = small->sketch.kind == ProblemKind::kConvTbc;
  EXPECT_NE(small->sketch.layout(Operand::kWeight).broadcast & (tbc ? 4U : 1U), 0U);
  EXPECT_EQ(small->sketch.mask, tbc ? 7U : 1U);
  EXPECT_LE(elements_of(small->sketch), tbc ? 14 : 12);
  EXPECT_FALSE(small->data.has_specials());
}

TEST(TrialTest, AnUnwrittenResultOfASpecialValueIsFound) {
  const auto small = first_failure([](const problem::Pass& pass, const engines::Bindings& bindings) {
    const auto* conv = std::get_if<problem::ConvPass>(&pass);
    if (conv == nullptr || conv->w.operand != Operand::kWeight) return;
    if (!std::isnan(load_as_f32(conv->w.dtype, bindings[Operand::kWeight]))) return;
    std::fill_n(result_at(pass, bindings), size_of(result_of(pass).dtype), kPoison);
  });
  ASSERT_TRUE(small.has_value());
  EXPECT_NE(to_string(small->data).find("weight: "), std::string::npos) << to_string(small->data);
  EXPECT_NE(to_string(small->data).find("nan"), std::string::npos) << to_string(small->data);
}

TEST(TrialTest, BytesBesideTheResultAndOperandsThatAreReadAreWatched) {
  const auto before = first_failure([](const problem::Pass& pass, const engines::Bindings& bindings) {
    if (std::get_if<problem::BiasPass>(&pass) != nullptr) result_at(pass, bindings)[-1] = std::byte{1};
  });
  ASSERT_TRUE(before.has_value());
  const auto operand = first_failure([](const problem::Pass& pass, const engines::Bindings& bindings) {
    if (std::get_if<problem::BiasPass>(&pass) != nullptr)
      *static_cast<std::byte*>(bindings[Operand::kGradOutput]) ^= std::byte{1};
  });
  ASSERT_TRUE(operand.has_value());
  EXPECT_NE(operand->failure.what.find("grad_output, which is read, was written"), std::string::npos)
      << operand->failure.what;
}

// What a GPU's problems go through, on the CPU as a device.
TEST(PassRunnerTest, CopiesGiveTheSameBitsAndStrayBytesAreSeen) {
  const auto copies = PassRunner::make_copying(cpu()), guarded = PassRunner::make(cpu());
  const Spoiler behind([](const problem::Pass& pass, const engines::Bindings& bindings) {
    const auto& bias = std::get<problem::BiasPass>(pass);
    result_at(pass, bindings)[bias.channels * static_cast<int64_t>(size_of(bias.grad_bias.dtype))] =
        std::byte{1};
  });
  ProblemGenerator generator(12, {.most_products = 3000});
  Draw draw(12);
  int strays = 0;
  for (int i = 0; i < 200; ++i) {
    const problem::Request request = *to_request(generator.any());
    SCOPED_TRACE(problem::to_text(request));
    const problem::Problem problem = legal_problem(request);
    const DataSketch data = draw_data(draw);
    Operands operands(request);
    fill(operands, data);
    ASSERT_TRUE(copies->place(operands, data).is_ok());
    ASSERT_TRUE(guarded->place(operands, data).is_ok());
    for (const problem::Pass& pass : problem.passes) {
      HostTensor& result = *operands[result_of(pass).operand];
      auto& pool = runtime::ThreadPool::instance();
      ASSERT_TRUE(guarded->run(reference(), problem, pass, pool, operands).is_ok());
      const auto bits = result.bits();
      result.poison();
      ASSERT_TRUE(copies->run(reference(), problem, pass, pool, operands).is_ok());
      EXPECT_EQ(result.bits(), bits);
      EXPECT_TRUE(result.gaps_untouched());
      if (std::get_if<problem::BiasPass>(&pass) == nullptr || !is_dense(result.view())) continue;
      EXPECT_FALSE(copies->run(behind, problem, pass, pool, operands).is_ok());
      ++strays;
    }
  }
  EXPECT_GT(strays, 50);
}

TEST(TrialTest, AFaultIsSurvivedAndNamed) {
  const auto fault = first_failure([](const problem::Pass& pass, const engines::Bindings& bindings) {
    if (std::get_if<problem::AvgPoolPass>(&pass) != nullptr)
      *static_cast<volatile std::byte*>(result_at(pass, bindings) + (int64_t{1} << 40)) = std::byte{1};
  });
  ASSERT_TRUE(fault.has_value());
  EXPECT_NE(fault->failure.what.find("touched what is not its own"), std::string::npos)
      << fault->failure.what;
  EXPECT_EQ(fault->sketch.kind, ProblemKind::kAvgPool);
}

}  // namespace
}  // namespace retrograd::test
