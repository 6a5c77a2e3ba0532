// SPDX-License-Identifier: Apache-2.0
// Rules of products: every one that is broken is found, requests that are malformed break none, and mode 1
// rounds as the product does. tests/acl has every row of the table.
#include "problem/product_rules.h"

#include <gtest/gtest.h>

#include "problem/problem.h"
#include "problem/problem_text.h"
#include "rule_case.h"

namespace retrograd::problem {
namespace {

Request request_of(const std::string& text) {
  auto request = parse_request(text);
  EXPECT_TRUE(request.is_ok()) << request.status().message();
  return std::move(request).value();
}

std::vector<std::string> broken(const std::string& text, Product product) {
  std::vector<std::string> names;
  for (const BrokenRule& each : broken_rules(request_of(text), product)) names.emplace_back(each.rule->name);
  return names;
}
using Names = std::vector<std::string>;

TEST(ProductRulesTest, AllThatAreBrokenAreFound) {
  const std::string text =
      "conv input=1x2x600x600 weight=2x2x600x3 padding=300x0 dtype=bf16 grad_bias=2:f32 bias_sizes=3 math=3";
  EXPECT_EQ(broken(text, Product::kA2),
            (Names{"conv.kernel", "conv.padding", "conv.bias_sizes", "conv.grad_bias_type"}));
  EXPECT_EQ(broken(text, Product::kA3), broken(text, Product::kA2));
  EXPECT_EQ(broken(text, Product::k910_95), broken(text, Product::kA2));
  EXPECT_EQ(broken(text, Product::kTraining),
            (Names{"conv.bf16", "conv.kernel", "conv.padding", "conv.bias_sizes", "conv.grad_bias_type"}));
  EXPECT_EQ(broken("avgpool input=1x1x999 kernel=900 dtype=bf16", Product::kTraining), Names{});
}

// The interface refuses them before rules are looked at; a line of text does not.
TEST(ProductRulesTest, EightBitOperandsOfTbcAreRefusedByEveryProduct) {
  for (const Product product : kProducts) {
    EXPECT_EQ(broken("conv_tbc input=5x1x2 weight=1x2x2:hif8 grad_weight=1x2x2:hif8 math=1", product).front(),
              "tbc.8bit");
    EXPECT_EQ(broken("conv_tbc input=5x1x2 weight=1x2x2 grad_weight=1x2x2:hif8 math=1", product).empty(),
              product == Product::k910_95);
  }
}

TEST(ProductRulesTest, APlainProblemBreaksNone) {
  for (const Product product : kProducts) {
    EXPECT_EQ(broken("conv input=2x3x10x10 weight=6x3x3x3 padding=1x1", product), Names{});
    EXPECT_EQ(broken("conv_tbc input=5x1x2 weight=1x2x2 math=1", product), Names{});
  }
}

// Judging goes on to the rules that everybody has.
TEST(ProductRulesTest, MalformedRequestsBreakNone) {
  for (const char* text : {"conv input=2x3 weight=4", "conv input=2x3x8x8 weight=4x3x3 stride=9x9x9x9x9",
                           "conv input=2x3x8x8 weight=4x3x3x3 stride=none padding=none dilation=none",
                           "conv input=scalar weight=scalar", "conv_tbc input=scalar weight=scalar math=1",
                           "conv input=2x3x8x8 weight=4x3x3x3 groups=0 bias_sizes=5",
                           "conv input=2x3x8x8 weight=3x4x3x3 transposed=1 groups=0 bias_sizes=4",
                           "conv input=2x3x8x8 weight=3x4x3x3 transposed=1 groups=-1 bias_sizes=4"})
    for (const Product product : kProducts) {
      EXPECT_EQ(broken(text, product), Names{}) << text;
      EXPECT_FALSE(judge(request_of(text + (" product=" + std::string(name_of(product))))).is_ok());
    }
}

TEST(ProductRulesTest, AProblemOfAProductKeepsItsRules) {
  const auto problem = judge(request_of("conv input=1x1x8 weight=1x1x3 padding=256 product=910_95"));
  ASSERT_FALSE(problem.is_ok());
  EXPECT_EQ(problem.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(
      problem.status().message(),
      "padding[0] is 256, expected 0 to 255: product 910_95 refuses it, rule conv.padding: padding H, W "
      "(1-D: L) of a plain convolution\n"
      "reproduce: retrograd explain \"conv input=1x1x8 weight=1x1x3 grad_output=1x1x518 padding=256 "
      "product=910_95\"");
}

TEST(ProductRulesTest, ARefusalOfBiasSizesIsReproduced) {
  for (const char* text :
       {"conv input=1x3x8 weight=4x3x3 product=a2 bias_sizes=none",
        "conv input=1x3x8 weight=4x3x3 product=a2 bias_sizes=5 grad_bias=5",
        "conv input=1x3x8 weight=3x4x3 transposed=1 product=a2 bias_sizes=3 grad_bias=3"}) {
    const auto problem = judge(request_of(text));
    EXPECT_NE(problem.status().message().find("rule conv.bias_sizes"), std::string::npos) << text;
    expect_reproduced(problem.status());
  }
}

ConvPass pass_of(const std::string& text) {
  return std::get<ConvPass>(judge(request_of(text)).value().passes.front());
}

TEST(ProductRulesTest, Mode1RoundsAsTheProductDoes) {
  const std::string conv = "conv input=1x1x8 weight=1x1x3 winograd=1 math=",
                    tbc = "conv_tbc input=5x1x2 weight=1x2x2 math=";
  for (const std::string& text : {conv, tbc}) {
    for (const char* product : {"a2", "a3", "910_95"}) {
      const ConvPass pass = pass_of(text + "1 product=" + product);
      EXPECT_EQ(pass.rounding, OperandRounding::kHf32Bits11);
      EXPECT_FALSE(pass.winograd_allowed || pass.hf32_allowed) << "what is rounded is multiplied exactly";
    }
    EXPECT_EQ(pass_of(text + "1 product=training").rounding, OperandRounding::kF16);
    EXPECT_EQ(pass_of(text + "2 product=a2").rounding, OperandRounding::kF16);
    EXPECT_EQ(pass_of(text + "1").rounding, OperandRounding::kNone);
    EXPECT_TRUE(pass_of(text + "1").hf32_allowed);
    EXPECT_EQ(pass_of(text + "1 dtype=f16 product=a2").rounding, OperandRounding::kNone);
  }
  EXPECT_EQ(pass_of(conv + "0 product=a2").rounding, OperandRounding::kNone);
  EXPECT_EQ(pass_of(tbc + "3 product=910_95").rounding, OperandRounding::kHf32Bits11);
  Request ten = request_of(conv + "1 product=a2");
  std::get<ConvRequest>(ten).math.hf32_mantissa_bits = 10;
  EXPECT_EQ(std::get<ConvPass>(judge(ten).value().passes.front()).rounding, OperandRounding::kHf32Bits10);
}

TEST(ProductRulesTest, TheTableIsWhole) {
  for (const ProductRule& rule : product_rules()) {
    EXPECT_NE(std::string_view(rule.text), "");
    EXPECT_NE(rule.code, Code::kOk);
    bool any = false;
    for (const Product product : kProducts) any |= rule.products.has(product);
    EXPECT_TRUE(any) << rule.name;
    ConvRequest conv;
    ConvTbcRequest tbc;
    conv.forward = tbc.forward = std::string_view(rule.name).ends_with(".output_type");
    EXPECT_TRUE(concerns(rule, Request(conv)) != concerns(rule, Request(tbc))) << rule.name;
  }
}

}  // namespace
}  // namespace retrograd::problem
