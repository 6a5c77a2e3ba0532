// SPDX-License-Identifier: Apache-2.0
// What cpu.few_places_gather, _forward and _grad_weight take, and what they leave to others. Their
// results are those of every candidate's tests.
#include <gtest/gtest.h>

#include "engines/cpu/implementations.h"
#include "problem/problem.h"
#include "problem/problem_text.h"

namespace retrograd::engines::cpu {
namespace {

Support answer(const Candidate& candidate, const char* text) {
  auto request = problem::parse_request(text);
  EXPECT_TRUE(request.is_ok()) << request.status().message();
  auto problem = problem::judge(request.value());
  EXPECT_TRUE(problem.is_ok()) << problem.status().message();
  return candidate.supports(problem.value().passes.front(), *named_machine("zen4"));
}

TEST(FewPlacesTest, TakesFewPlacesOfY) {
  for (const char* text : {
           "conv input=1x696x1 weight=408x696x1 mask=i",
           "conv input=4x8x2x2 weight=6x8x3x3 padding=1x1 mask=i dtype=bf16",
           "conv input=1x8x9x9 weight=6x4x3x3 stride=3x3 groups=2 mask=i",
           "conv input=1x8x3x3@72x1x24x8 weight=6x8x3x3@72x1x24x8 padding=1x1 mask=i",
           "conv input=1x8x3x3 weight=6x8x3x3@72x9x1x3 padding=1x1 mask=i",  // taps in another order
       })
    EXPECT_TRUE(answer(few_places_gather(), text).accepted())
        << text << ": " << answer(few_places_gather(), text).reason();
  EXPECT_TRUE(answer(few_places_grad_weight(), "conv input=16x696x1 weight=408x696x1 mask=w").accepted());
  EXPECT_TRUE(answer(few_places_forward(), "conv input=2x8x7x7 weight=6x8x7x7 forward=1").accepted());
  // Of a transposed convolution grad_input is forward.
  EXPECT_TRUE(
      answer(few_places_forward(), "conv input=2x8x1x1 weight=8x6x4x4 transposed=1 mask=i").accepted());
}

TEST(FewPlacesTest, DeclinesTheRest) {
  EXPECT_EQ(answer(few_places_gather(), "conv input=1x8x1 weight=8x8x1 mask=w").reason(),
            "computes grad_input only");
  EXPECT_EQ(answer(few_places_grad_weight(), "conv input=1x8x1 weight=8x8x1 mask=i").reason(),
            "computes grad_weight only");
  EXPECT_EQ(answer(few_places_forward(), "conv input=1x8x1 weight=8x8x1 mask=i").reason(),
            "computes forward only");
  EXPECT_EQ(answer(few_places_gather(), "conv input=17x8x1 weight=8x8x1 mask=i").reason(),
            "more than 16 places of y");
  EXPECT_EQ(answer(few_places_gather(), "conv input=1x3x512x512 weight=8x3x512x512 mask=i").accepted(),
            false);
  EXPECT_EQ(answer(few_places_gather(), "conv input=1x8x3x3 weight=6x8x3x3@80x10x3x1 mask=i").reason(),
            "channels or taps of the weight do not fill memory side by side");
}

}  // namespace
}  // namespace retrograd::engines::cpu
