// SPDX-License-Identifier: Apache-2.0
// The text form: printing and parsing are inverse, defaults are left out, mistakes are pointed at.
#include <gtest/gtest.h>

#include "problem/problem.h"
#include "problem/problem_text.h"
#include "rule_case.h"

namespace retrograd::problem {
namespace {

std::string round_trip(const std::string& text) {
  const auto request = parse_request(text);
  return request.is_ok() ? to_text(request.value()) : request.status().message();
}

TEST(ProblemTextTest, CanonicalLinesAreUnchanged) {
  for (const char* text : {
           "conv input=2x3x9 weight=4x3x3 grad_output=2x4x7",
           "conv input=2x3x10x10 weight=6x3x3x3 grad_output=2x6x6x4 stride=1x2 padding=0x1 dilation=2x2",
           "conv input=1x2x5x6 weight=3x2x3x3 grad_output=1x3x4x6 padding=0x1x2x0",
           "conv input=1x6x4x4 weight=6x2x3x3 grad_output=1x6x10x9 stride=2x2 transposed=1 "
           "output_padding=1x0 groups=3",
           "conv input=2x3x6x6@108x1x18x3 weight=4x3x3x3:bf16 grad_output=2x4x4x4@64x16x-4x1 mask=iw "
           "grad_input=2x3x6x6:f32 grad_weight=4x3x3x3@1x4x36x12 math=3 dtype=f16",
           "conv input=1x1x4 weight=1x1x1 grad_output=1x1x4 mask=none rules=aclnn",
           "conv input=1x1x4 weight=1x1x1 grad_output=1x1x4 rules=infiniop",
           "conv input=1x1x4 weight=1x1x1 grad_output=1x1x4 winograd=1 rules=infiniop",
           "conv input=1x1x4 weight=1x1x1 grad_output=1x1x4 math=1 rules=aclnn product=910_95 bias_sizes=4x4 "
           "formats=ncl,nd,-,nchw,ncdhw",
           "conv_tbc input=7x2x3 weight=3x3x4 grad_output=7x2x4 pad=1 grad_weight=3x3x4:e4m3 math=1 "
           "product=training",
           "conv input=1x-1x4 weight=1x1 grad_output=9x9x9x9x9 stride=none padding=1x2x3 groups=-4",
           "conv_tbc input=7x2x3 weight=3x3x4 grad_output=7x2x4 pad=1",
           "conv_tbc input=7x2x3@6x-3x1 weight=3x3x4 grad_output=7x2x4 bias=5 pad=1 grad_bias=5@2 math=2 "
           "dtype=f16",
           "avgpool input=2x5x77x89 grad_output=2x5x20x45 kernel=5x3 stride=4x2 padding=2x1 ceil=1",
           "avgpool input=4x6x6 grad_output=4x2x2 kernel=3 count_include_pad=0 divisor=-3 spatial=2 "
           "dtype=bf16",
           "avgpool input=1x1x3 grad_output=1x1x2 kernel=2 stride=4 padding=1 ceil=1 rules=infiniop",
           "conv input=2x3x9 weight=4x3x3 output=2x4x7 forward=1",
           "conv input=2x3x9 weight=4x3x3 output=2x4x7:f32@28x1x4 bias=4:f32@-2 forward=1 math=3 dtype=f16 "
           "rules=aclnn",
           "conv_tbc input=7x2x3 weight=3x3x4 output=7x2x4 bias=4@0 pad=1 forward=1 dtype=f16",
           "avgpool input=1x1x5 output=1x1x3 forward=1 kernel=2 ceil=1 divisor=3",
       })
    EXPECT_EQ(round_trip(text), text);
}

TEST(ProblemTextTest, SizesThatFollowNeedNotBeWritten) {
  EXPECT_EQ(round_trip("conv weight=4x3x3   input=2x3x9"), "conv input=2x3x9 weight=4x3x3 grad_output=2x4x7");
  EXPECT_EQ(round_trip("conv input=1x2x4x4 weight=2x3x4x4 stride=2x2 padding=1x1 transposed=1"),
            "conv input=1x2x4x4 weight=2x3x4x4 grad_output=1x3x8x8 stride=2x2 padding=1x1 transposed=1");
  EXPECT_EQ(round_trip("conv weight=4x3x3 input=2x3x9 forward=1 bias=4"),
            "conv input=2x3x9 weight=4x3x3 output=2x4x7 bias=4 forward=1");
  EXPECT_EQ(round_trip("conv_tbc input=5x1x2 weight=1x2x2"),
            "conv_tbc input=5x1x2 weight=1x2x2 grad_output=5x1x2");
  EXPECT_EQ(round_trip("avgpool input=1x1x5 kernel=2 ceil=1"),
            "avgpool input=1x1x5 grad_output=1x1x3 kernel=2 ceil=1");
}

// Neither sizes of a storage nor the ends of long lists are in the text: it would be taken, or not be read.
TEST(ProblemTextTest, WhatTheTextDoesNotShowIsRefusedWithoutIt) {
  const Request plain = parse_request("conv input=2x3x9 weight=4x3x3").value();
  Request beyond = plain, offset = plain, long_list = plain, other = plain;
  std::get<ConvRequest>(beyond).input.storage_shape = Dims{53};
  std::get<ConvRequest>(offset).grad_weight->storage_shape = Dims{36};
  std::get<ConvRequest>(offset).grad_weight->offset = 1;
  std::get<ConvRequest>(long_list).stride = std::vector<int64_t>(17, 1);
  std::get<ConvRequest>(other).weight.storage_shape = Dims{1};
  std::get<ConvRequest>(other).groups = 0;
  for (const Request& request : {beyond, offset, long_list, other}) {
    const auto problem = judge(request);
    ASSERT_FALSE(problem.is_ok());
    EXPECT_EQ(problem.status().message().find("reproduce:"), std::string::npos) << problem.status().message();
  }
}

// A size that would be negative is told as through the other interfaces.
TEST(ProblemTextTest, KernelsThatDoNotFitAreJudged) {
  for (const char* text : {"conv input=1x1x4 weight=1x1x9", "conv input=1x1x4 weight=1x1x9 forward=1",
                           "conv input=1x1x4x4 weight=1x1x2x9 stride=1x3", "avgpool input=1x1x4 kernel=9",
                           "avgpool input=1x1x4 kernel=99 stride=2 forward=1"}) {
    const auto problem = make_problem(parse_request(text).value());
    ASSERT_FALSE(problem.is_ok()) << text;
    EXPECT_TRUE(problem.status().message().starts_with("the kernel does not fit into the padded input: "))
        << problem.status().message();
  }
  for (const char* text :
       {"conv input=1x1x4 weight=1x1x2 transposed=1 padding=9", "conv_tbc input=1x1x2 weight=9x2x2 pad=0"}) {
    const auto problem = make_problem(parse_request(text).value());
    ASSERT_FALSE(problem.is_ok()) << text;
    EXPECT_EQ(problem.status().message().find("sizes are at least 0"), std::string::npos)
        << problem.status().message();
  }
}

struct Mistake {
  const char* text;
  const char* sentence;
  size_t column;  // where the caret stands
};

TEST(ProblemTextTest, MistakesArePointedAt) {
  for (const Mistake& m : std::initializer_list<Mistake>{
           {"convolution input=1x1x1", "'convolution' is not one of conv, conv_tbc, avgpool", 0},
           {"", "'' is not one of conv, conv_tbc, avgpool", 0},
           {"conv input=1x1x4", "'weight' is missing", 16},
           {"conv input=1x1x4 weigth=1x1x1", "; the nearest is 'weight'", 17},
           {"conv inptu=1x1x4 weight=1x1x1", "'inptu' is not known here, expected one of dtype, input", 5},
           {"conv input=1x1x4 weight=1x1x1 stried=2", "; the nearest is 'stride'", 30},
           {"conv input=1x1xq weight=1x1x1", "SHAPE[:dtype][@strides]", 11},
           {"conv input=1x1x4@1x1 weight=1x1x1", "SHAPE[:dtype][@strides]", 11},
           {"conv input=1x1x4:f64 weight=1x1x1", "'f64' is not one of f32, f16, bf16, hif8, e4m3", 11},
           {"conv input=1x1x4 weight=1x1x1 stride=a", "'a' is no list of numbers", 37},
           {"conv input=1x1x4 weight=1x1x1 groups=two", "'two' is no number", 37},
           {"conv input=1x1x4 weight=1x1x1 mask=xyz", "'xyz' is not one of iwb", 35},
           {"conv input=1x1x4 weight=1x1x1 transposed=2", "2 is neither 0 nor 1", 41},
           {"conv input=1x1x4 weight=1x1x1 product=a4", "'a4' is not one of a2 a3 910_95 training", 38},
           {"conv input=1x1x4 weight=1x1x1 formats=nd,nd,nd", "is not five of -, ncl, nd, nchw, ncdhw", 38},
           {"conv input=1x1x4 weight=1x1x1 formats=nd,nd,nd,nd,nhwc", "is not five of", 38},
           {"avgpool input=1x1x4 kernel=2 spatial=4", "4 is not one of 0 to 3", 37},
           {"conv input=1x1x4 weight=1x1x1 color=red",
            "'color' is not known here, expected one of dtype, input", 30},
           {"conv input=1x1x4 weight=1x1x1 forward=1 mask=i", "'mask' is not known here", 40},
           {"conv input=1x1x4 weight=1x1x1 forward=1 grad_output=1x1x4", "'grad_output' is not known here",
            40},
           {"conv input=1x1x4 weight=1x1x1 bias=1", "'bias' is not known here", 30},
           {"avgpool input=1x1x4 kernel=2 forward=1 grad_input=1x1x4", "'grad_input' is not known here", 39},
           {"avgpool input=1x1x4 kernel=2 forward=2", "2 is neither 0 nor 1", 37},
           {"conv input=1x1x4 weight=1x1x1 oops", "'oops' is not of the form key=value", 30},
           {"conv input=1x1x4 input=1x1x4", "'input' is given twice", 17},
           {"conv input=1x1x4 weight=1x1x1 dtype=int8", "'int8' is not one of", 36},
           {"conv input=1x1x1x1x1x1x1x1x1 weight=1", "at most 8 sizes", 11},
           {"conv input=1x1x99999999999999999999 weight=1x1x1",
            "input: '99999999999999999999' does not fit in 64 bits", 11},
           {"conv input=1x1x4@1x-9223372036854775809x1 weight=1x1x1",
            "input: '-9223372036854775809' does not fit in 64 bits", 11},
           {"conv input=1x1x4 weight=1x1x1 groups=9223372036854775808",
            "groups: '9223372036854775808' does not fit in 64 bits", 37},
           {"conv input=1x1x4 weight=1x1x1 stride=1x99999999999999999999",
            "stride: '99999999999999999999' does not fit in 64 bits", 37},
           {"conv input=1x1x4 weight=1x1x1 groups=99999999999999999999k",
            "'99999999999999999999k' is no number", 37},
       }) {
    const auto request = parse_request(m.text);
    ASSERT_FALSE(request.is_ok()) << m.text;
    const std::string& message = request.status().message();
    EXPECT_NE(message.find(m.sentence), std::string::npos) << message;
    EXPECT_EQ(message.substr(message.find_last_of('\n') + 1), std::string(m.column, ' ') + "^") << message;
    EXPECT_NE(message.find(std::string("\n") + m.text + "\n"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace retrograd::problem
