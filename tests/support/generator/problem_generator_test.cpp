// SPDX-License-Identifier: Apache-2.0
// The generator draws everything that it is for: a pattern, a value or a shape that is never drawn is one
// that nobody tests.
#include "support/generator/problem_generator.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "problem/operand_views.h"
#include "problem/problem_text.h"
#include "support/generator/operand_data.h"

namespace retrograd::test {
namespace {

using problem::Operand;
using problem::TensorView;
using Features = std::set<std::string>;

constexpr int kDraws = 40'000;

constexpr Operand kRead[] = {Operand::kGradOutput, Operand::kInput, Operand::kWeight};
constexpr Operand kWritten[] = {Operand::kGradInput, Operand::kGradWeight, Operand::kGradBias};

// From the strides themselves, not from what the generator meant.
void add_layout(const std::string& operand, const TensorView& view, Features& features) {
  const int rank = view.shape.rank();
  bool ascending = true, dense = problem::is_dense(view);
  int64_t smallest = INT64_MAX, span = 1;
  for (int a = 0; a < rank; ++a) {
    const int64_t stride = view.strides[a], size = view.shape[a];
    if (size == 1) {
      if (stride < 0 || stride > 900) features.insert(operand + " has a stride that means nothing");
      continue;
    }
    if (stride == 0) features.insert(fmt::format("{} rank {} broadcast along {}", operand, rank, a));
    if (stride < 0) features.insert(fmt::format("{} rank {} reversed along {}", operand, rank, a));
    if (stride != 0) smallest = std::min(smallest, std::abs(stride));
    span += std::abs(stride) * (size - 1);
    for (int b = a + 1; b < rank; ++b)
      if (view.shape[b] > 1 && std::abs(stride) < std::abs(view.strides[b])) ascending = false;
  }
  const int64_t count = problem::element_count(view.shape).value();
  if (dense && count > 1) features.insert(operand + " dense");
  if (!ascending) features.insert(operand + " permuted");
  if (span > count && count > 0) features.insert(operand + " with gaps");
  if (span < count) features.insert(operand + " with elements that share memory");
  if (rank == 4 && view.strides[1] == 1 && view.shape[1] > 1 && view.strides[3] == view.shape[1] &&
      view.shape[3] > 1)
    features.insert(operand + " channels last");
  features.insert(fmt::format("{} {}", operand, name_of(view.dtype)));
}

void add_conv(const ProblemSketch& s, Features& features) {
  const std::string kind = s.transposed ? "transposed" : "plain";
  features.insert(fmt::format("{} {}-D", kind, s.axes.size()));
  features.insert(fmt::format("mask {}", s.mask));
  features.insert(fmt::format("math {}", s.math_mode));
  if (s.winograd) features.insert("winograd");
  if (s.batch == 0) features.insert("empty batch");
  const bool one_input = s.inputs == 1, one_output = s.outputs == 1;
  if (s.groups > 1 && !one_input && !one_output) features.insert(kind + " groups");
  if (s.groups > 1 && one_input && one_output) features.insert(kind + " depthwise");
  if (s.groups > 1 && one_input && !one_output) features.insert(kind + " depthwise with a multiplier");
  if (s.groups == 1 && s.inputs <= 4 && s.outputs >= 16) features.insert("stem");
  features.insert(fmt::format("{} channels in", s.groups * s.inputs));
  features.insert(fmt::format("{} channels out", s.groups * s.outputs));
  features.insert(fmt::format("{} channels a group", s.inputs));
  features.insert(fmt::format("rows of {}", s.axes.back().size));
  bool one_place = true, patches = true, padded = true;
  for (const AxisSketch& a : s.axes) {
    features.insert(fmt::format("kernel {}", a.kernel));
    if (a.stride > 1) features.insert("stride");
    if (a.dilation > 1) features.insert("dilation");
    if (a.pad_lo != a.pad_hi) features.insert(fmt::format("padding on one side in {}-D", s.axes.size()));
    if (a.extra_hi > 0) features.insert("output padding");
    if (a.extra_hi >= a.stride) features.insert("output padding beyond the stride");
    if (a.extra_lo > 0) features.insert("output padding in front");
    if (a.kernel > a.size && !s.transposed) features.insert("a kernel larger than its plane");
    one_place &= a.size == 1;
    patches &= a.kernel == a.stride && a.kernel > 1 && a.pad_lo == 0;
    padded &= a.kernel == 3 && a.pad_lo == 1;
  }
  if (patches) features.insert(kind + " patches");
  if (one_place && padded && s.inputs >= 64 && s.outputs >= 16)
    features.insert("1x1 images, 3x3 kernels, many channels");
  const auto& t = s.types;
  if (t[0] != t[1] || t[1] != t[2]) features.insert("mixed operands");
  if (t[1] != t[3] || t[1] != t[4]) features.insert("results of another type");
}

void add_pool(const ProblemSketch& s, Features& features) {
  features.insert(fmt::format("pool {}-D", s.axes.size()));
  if (s.ceil_mode) features.insert("pool ceil");
  if (s.uncorrected_ceil_sizes) features.insert("pool ceil without correction");
  if (!s.count_include_pad) features.insert("pool without padding counted");
  if (s.divisor > 0) features.insert("pool divisor");
  if (s.without_batch) features.insert("pool without batch");
  for (const AxisSketch& a : s.axes) {
    if (a.pad_lo > 0) features.insert("pool padding");
    if (a.kernel == a.size && a.size > 1) features.insert("pool of everything");
    if (a.stride > a.kernel) features.insert("pool that leaves places out");
    if (a.stride < a.kernel) features.insert("pool that overlaps");
  }
}

Features features_of(const ProblemSketch& sketch) {
  Features features{sketch.shape_class};
  if (sketch.kind == ProblemKind::kConv) add_conv(sketch, features);
  if (sketch.kind == ProblemKind::kAvgPool) add_pool(sketch, features);
  const problem::Request request = *to_request(sketch);
  const problem::OperandViews views = problem::views_of(request);
  const std::string prefix = sketch.kind == ProblemKind::kConvTbc ? "tbc " : "";
  if (sketch.kind == ProblemKind::kAvgPool) return features;
  for (size_t i = 0; i < views.size(); ++i)
    if (views[i])
      add_layout(prefix + std::string(problem::name_of(static_cast<Operand>(i))), *views[i], features);
  return features;
}

Features expected_features() {
  Features all{"empty batch",
               "winograd",
               "stem",
               "stride",
               "dilation",
               "output padding",
               "output padding beyond the stride",
               "output padding in front",
               "a kernel larger than its plane",
               "1x1 images, 3x3 kernels, many channels",
               "mixed operands",
               "results of another type",
               "pool ceil",
               "pool ceil without correction",
               "pool without padding counted",
               "pool divisor",
               "pool without batch",
               "pool padding",
               "pool of everything",
               "pool that leaves places out",
               "pool that overlaps"};
  for (const auto classes : {truth_shapes(), truth_pools()})
    for (const ShapeClass& shape : classes) all.insert(shape.name);
  for (const char* kind : {"plain", "transposed"})
    for (const char* what :
         {"1-D", "2-D", "3-D", "groups", "depthwise", "depthwise with a multiplier", "patches"})
      all.insert(fmt::format("{} {}", kind, what));
  for (int i = 1; i <= 3; ++i) {
    all.insert(fmt::format("pool {}-D", i));
    all.insert(fmt::format("padding on one side in {}-D", i));
  }
  for (int mask = 1; mask <= 7; ++mask) all.insert(fmt::format("mask {}", mask));
  for (int mode = 0; mode <= 3; ++mode) all.insert(fmt::format("math {}", mode));
  for (int size : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65}) {
    for (const char* what : {"{} channels in", "{} channels out", "{} channels a group", "rows of {}"})
      all.insert(fmt::format(fmt::runtime(what), size));
  }
  for (int kernel : {1, 2, 3, 4, 5, 7, 9, 11, 16, 21, 31}) all.insert(fmt::format("kernel {}", kernel));
  for (const auto operands : {std::span<const Operand>(kRead), std::span<const Operand>(kWritten)})
    for (Operand operand : operands) {
      const std::string name(problem::name_of(operand));
      for (const char* type : {"f32", "f16", "bf16"}) all.insert(name + " " + type);
      for (const char* what : {" dense", " with gaps"}) all.insert(name + what);
      if (operand == Operand::kGradBias) continue;
      for (const char* what : {" permuted", " channels last", " has a stride that means nothing"})
        all.insert(name + what);
      for (int rank = 3; rank <= 5; ++rank)
        for (int axis = 0; axis < rank; ++axis)
          all.insert(fmt::format("{} rank {} reversed along {}", name, rank, axis));
    }
  all.insert("grad_bias rank 1 reversed along 0");
  for (Operand operand : kRead) {
    const std::string name(problem::name_of(operand));
    for (const char* what : {" hif8", " e4m3", " with elements that share memory"}) all.insert(name + what);
    for (int axis = 0; axis < 3; ++axis)
      all.insert(fmt::format("tbc {} rank 3 broadcast along {}", name, axis));
    for (int rank = 3; rank <= 5; ++rank)
      for (int axis = 0; axis < rank; ++axis)
        all.insert(fmt::format("{} rank {} broadcast along {}", name, rank, axis));
  }
  for (const char* of_8bit : {"grad_input hif8", "grad_input e4m3", "grad_weight hif8"}) all.insert(of_8bit);
  return all;
}

TEST(ProblemGeneratorTest, EverythingIsDrawn) {
  Features missing = expected_features();
  ProblemGenerator generator(20261116);
  for (int i = 0; i < kDraws && !missing.empty(); ++i)
    for (const std::string& feature : features_of(generator.any())) missing.erase(feature);
  EXPECT_TRUE(missing.empty()) << missing.size() << " never drawn in " << kDraws
                               << " problems, among them: " << *missing.begin();
}

// What forward problems have of their own.
Features forward_features(const ProblemSketch& sketch) {
  Features found;
  if (!sketch.forward) return found;
  const problem::Request request = *to_request(sketch);
  const auto* conv = std::get_if<problem::ConvRequest>(&request);
  if (conv == nullptr) return {sketch.kind == ProblemKind::kAvgPool ? "pool" : "tbc"};
  const std::string kind = conv->transposed ? "transposed" : "plain";
  found.insert(kind + (conv->bias ? " with a bias" : " without"));
  if (conv->grad_output.dtype != conv->input.dtype) found.insert("output of another type");
  if (is_8bit(conv->grad_output.dtype)) found.insert("output of 8 bits");
  for (size_t i = 0; i < conv->output_padding.size() && conv->output_padding.size() == conv->stride.size();
       ++i)
    if (conv->output_padding[i] >= conv->stride[i] && conv->transposed)
      found.insert("output padding up to the dilation");
  if (!conv->bias) return found;
  found.insert(conv->bias->dtype == conv->input.dtype ? "bias of the operands' type"
                                                      : "bias of another type");
  if (conv->bias->shape[0] > 1 && conv->bias->strides[0] == 0) found.insert("bias broadcast");
  if (conv->bias->strides[0] < 0) found.insert("bias reversed");
  return found;
}

TEST(ProblemGeneratorTest, ForwardProblemsOfEverySortAreDrawn) {
  Features missing{"pool",
                   "tbc",
                   "plain with a bias",
                   "plain without",
                   "transposed with a bias",
                   "transposed without",
                   "output of another type",
                   "output of 8 bits",
                   "output padding up to the dilation",
                   "bias of the operands' type",
                   "bias of another type",
                   "bias broadcast",
                   "bias reversed"};
  ProblemGenerator generator(20261116, {.forward = 35});
  for (int i = 0; i < 5000 && !missing.empty(); ++i)
    for (const std::string& feature : forward_features(generator.any())) missing.erase(feature);
  EXPECT_TRUE(missing.empty()) << missing.size() << " never drawn, among them: " << *missing.begin();
}

TEST(ProblemGeneratorTest, WhatIsLeftOutIsMissed) {
  Features drawn;
  ProblemGenerator generator(20261116, {.all_dtypes = false, .any_strides = false});
  for (int i = 0; i < 5000; ++i) drawn.merge(features_of(generator.any()));
  EXPECT_TRUE(drawn.contains("weight f32") && drawn.contains("weight dense"));
  for (const char* never : {"weight rank 4 broadcast along 0", "grad_output rank 3 reversed along 2",
                            "input channels last", "grad_input with gaps", "weight bf16", "mixed operands"})
    EXPECT_TRUE(!drawn.contains(never) && expected_features().contains(never)) << never;
}

TEST(ProblemGeneratorTest, EverySpecialValueAndPlaceIsDrawn) {
  Features missing;
  const auto special = [](size_t operand, Special kind, Amount amount) {
    return fmt::format("{} {} in {}", name_of(amount), name_of(kind), operand);
  };
  const auto place = [](size_t operand, int against, int odd) {
    return fmt::format("{} against {}, {} bytes off", operand, against, odd);
  };
  for (size_t operand = 0; operand < 3; ++operand)
    for (int kind = 0; kind < kSpecialCount; ++kind)
      for (Amount amount : {Amount::kOne, Amount::kFew, Amount::kMany, Amount::kAll})
        missing.insert(special(operand, static_cast<Special>(kind), amount));
  for (size_t operand = 0; operand < problem::kOperandCount; ++operand)
    for (int against = 0; against < 3; ++against)
      for (int odd = 0; odd <= 3; ++odd) missing.insert(place(operand, against, odd));
  Draw draw(1);
  int none = 0, alone = 0;
  for (int i = 0; i < kDraws; ++i) {
    const DataSketch data = draw_data(draw);
    if (!data.has_specials()) ++none;
    for (size_t operand = 0; operand < data.specials.size(); ++operand)
      for (int kind = 0; kind < kSpecialCount; ++kind)
        if ((data.specials[operand].kinds >> static_cast<unsigned>(kind) & 1U) != 0) {
          missing.erase(special(operand, static_cast<Special>(kind), data.specials[operand].amount));
          if (data.specials[operand].kinds == 1U << static_cast<unsigned>(kind)) ++alone;
        }
    for (size_t operand = 0; operand < data.placements.size(); ++operand) {
      const Placement& p = data.placements[operand];
      missing.erase(place(operand, static_cast<int>(p.against), p.odd_bytes));
    }
  }
  EXPECT_TRUE(missing.empty()) << missing.size() << " never drawn, among them: " << *missing.begin();
  EXPECT_GT(none, kDraws / 4);
  EXPECT_GT(alone, kDraws / 10);
}

TEST(ProblemGeneratorTest, SpecialValuesAreWhatTheirNamesSay) {
  for (int type = 0; type < kDTypeCount; ++type) {
    const auto dtype = static_cast<DType>(type);
    Draw draw(3);
    for (int kind = 0; kind < kSpecialCount; ++kind)
      for (int i = 0; i < 50; ++i) {
        const auto special = static_cast<Special>(kind);
        const double drawn = special_value(special, dtype, draw);
        uint32_t bits = 0;
        store_from_f32(dtype, &bits, static_cast<float>(drawn));
        const double stored = load_as_f32(dtype, &bits);
        SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << name_of(special) << " " << drawn);
        const bool has_infinity = dtype != DType::kE4M3;
        if (special == Special::kNan || (special <= Special::kMinusInf && !has_infinity)) {
          EXPECT_TRUE(std::isnan(stored));
        } else {
          EXPECT_EQ(stored, drawn);  // the type holds it exactly; zeros compare equal
          if (special <= Special::kMinusInf) {
            EXPECT_TRUE(std::isinf(stored));
          }
        }
        if (special == Special::kDenormal) {
          EXPECT_NE(stored, 0);
        }
        if (special == Special::kMinusZero) {
          EXPECT_EQ(std::signbit(stored), dtype != DType::kHiF8);
        }
        // The next larger magnitude is an infinity, or NaN where there is none.
        store_from_f32(dtype, &bits, static_cast<float>(drawn * 1.26));
        if (special == Special::kLargest) {
          EXPECT_FALSE(std::isfinite(load_as_f32(dtype, &bits)));
        }
      }
  }
}

TEST(ProblemGeneratorTest, EqualSeedsGiveEqualDraws) {
  for (const GeneratorOptions& options : {GeneratorOptions{}, GeneratorOptions::network()}) {
    ProblemGenerator one(5, options), same(5, options), other(6, options);
    Draw data(5), same_data(5);
    int differ = 0;
    for (int i = 0; i < 200; ++i) {
      const std::string text = problem::to_text(*to_request(one.any()));
      EXPECT_EQ(text, problem::to_text(*to_request(same.any())));
      if (text != problem::to_text(*to_request(other.any()))) ++differ;
      EXPECT_EQ(to_string(draw_data(data)), to_string(draw_data(same_data)));
    }
    EXPECT_GT(differ, 190);
  }
}

TEST(ProblemGeneratorTest, EveryDrawIsLegalAndWithinItsBounds) {
  for (GeneratorOptions options : {GeneratorOptions{}, GeneratorOptions::network(),
                                   GeneratorOptions{.most_products = 500, .most_elements = 500},
                                   GeneratorOptions{.mode = GeneratorOptions::Mode::kNetwork}}) {
    double most_room = 1;
    if (options.mode == GeneratorOptions::Mode::kTruth)
      for (const ShapeClass& shape : truth_shapes()) most_room = std::max(most_room, shape.room);
    ProblemGenerator generator(7, options);
    for (int i = 0; i < 2000; ++i) {
      const ProblemSketch sketch = generator.any();
      const auto request = to_request(sketch);
      ASSERT_TRUE(request.has_value()) << sketch.shape_class;
      const auto judged = problem::judge(*request);
      ASSERT_TRUE(judged.is_ok()) << judged.status().message();
      // What is printed is what was drawn.
      const std::string text = problem::to_text(*request);
      const auto again = problem::parse_request(text);
      ASSERT_TRUE(again.is_ok()) << text << ": " << again.status().message();
      ASSERT_EQ(problem::to_text(again.value()), text);
      EXPECT_LE(products_of(sketch), options.most_products * most_room) << text;
      EXPECT_LE(elements_of(sketch), options.most_elements) << text;
    }
  }
}

TEST(ProblemGeneratorTest, NetworksHaveTheirDistribution) {
  constexpr int kProblems = 8000;
  ProblemGenerator generator(8, GeneratorOptions::network());
  std::map<std::string, int> classes;
  std::map<size_t, int> ranks;
  std::map<int64_t, int> kernels;
  int multiples_of_8 = 0, dense = 0;
  for (int i = 0; i < kProblems; ++i) {
    const ProblemSketch s = generator.conv();
    ++classes[s.shape_class];
    ++ranks[s.axes.size()];
    if (std::string(s.shape_class) != "dense") continue;
    ++dense;
    ++kernels[s.axes[0].kernel];
    if (s.inputs % 8 == 0) ++multiples_of_8;
  }
  const auto near = [](int count, int all, double percent) {
    EXPECT_NEAR(100.0 * count / all, percent, 4) << count << " of " << all;
  };
  near(classes["dense"], kProblems, 45);
  near(classes["depthwise"], kProblems, 20);
  near(classes["grouped"], kProblems, 12);
  near(classes["stem_or_patches"], kProblems, 10);
  near(classes["transposed"], kProblems, 8);
  near(classes["tiny"], kProblems, 5);
  near(ranks[2], kProblems, 65);
  near(ranks[1], kProblems, 20);
  near(ranks[3], kProblems, 15);
  near(kernels[1], dense, 30);
  near(kernels[3], dense, 45);
  EXPECT_GT(multiples_of_8, dense * 85 / 100);
}

TEST(ProblemGeneratorTest, SimplerProblemsAreLegalAndComeToAnEnd) {
  ProblemGenerator generator(9);
  for (int i = 0; i < 50; ++i) {
    ProblemSketch sketch = generator.any();
    int steps = 0;
    for (auto simpler = simpler_than(sketch); !simpler.empty(); simpler = simpler_than(sketch)) {
      for (const ProblemSketch& each : simpler) ASSERT_TRUE(to_request(each).has_value());
      sketch = simpler[static_cast<size_t>(i) % simpler.size()];
      ASSERT_LT(++steps, 2000) << problem::to_text(*to_request(sketch));
    }
    EXPECT_LE(elements_of(sketch), 20) << problem::to_text(*to_request(sketch));
  }
}

}  // namespace
}  // namespace retrograd::test
