// SPDX-License-Identifier: Apache-2.0
// What cubeMathType does, for each mode and type.
#include "tools/explain/math_mode.h"

#include <gtest/gtest.h>

#include "problem/problem_text.h"

namespace retrograd::tools::math_mode_test {
namespace {

std::string effect(const std::string& text) {
  return effect_of_math_mode(problem::judge(problem::parse_request(text).value()).value());
}
bool says(const std::string& text, const char* words) {
  return effect(text).find(words) != std::string::npos;
}

const std::string kConv = "conv input=1x1x4 weight=1x1x1 ";

TEST(MathModeTest, WhatItDoes) {
  EXPECT_TRUE(says(kConv, "cubeMathType 0 (KEEP_DTYPE): operands are multiplied as they are"));
  EXPECT_TRUE(
      says(kConv + "math=1", "(ALLOW_FP32_DOWN_PRECISION): on a GPU operands may be rounded to TF32"));
  EXPECT_TRUE(says(kConv + "math=1", "on the CPU they are multiplied as they are"));
  EXPECT_TRUE(says(kConv + "math=1 winograd=1", "engines with fewer multiplications (Winograd) are allowed"));
  EXPECT_TRUE(says(kConv + "winograd=1", "engines with fewer multiplications (Winograd) are allowed"));
  EXPECT_TRUE(says(kConv + "math=2", "(USE_FP16): FP32 operands are rounded to FP16"));
  EXPECT_TRUE(says(kConv + "math=3", "(USE_HF32): FP32 operands are rounded to 11"));
  EXPECT_TRUE(says(kConv + "math=1 dtype=bf16", "changes nothing"));
  EXPECT_TRUE(says(kConv + "math=3 dtype=f16", "changes nothing"));
  EXPECT_TRUE(says(kConv + "math=2 mask=b", "no products here"));
  EXPECT_TRUE(says("conv_tbc input=5x1x2 weight=1x2x2 math=3", "rounded to 11"));
  EXPECT_EQ(effect("avgpool input=1x1x4 kernel=2"), "");
}

}  // namespace
}  // namespace retrograd::tools::math_mode_test
