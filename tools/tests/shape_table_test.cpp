// SPDX-License-Identifier: Apache-2.0
// Tables and files of lines become problems; what does not fit is named with its line.
#include "tools/problems/shape_table.h"

#include <gtest/gtest.h>

#include "problem/problem.h"
#include "problem/problem_text.h"

namespace retrograd::tools {
namespace {

constexpr const char* kConv =
    "name,ndim,N,Cin,Cout,groups,spatial_in,kernel,stride,pad,dilation,transposed\n";

std::string only_text(const std::string& row) {
  const auto rows = parse_shape_table(kConv + row, "t.csv");
  EXPECT_TRUE(rows.is_ok()) << rows.status().message();
  EXPECT_EQ(rows.value().size(), 1U);
  return rows.value().at(0).text;
}

TEST(ShapeTableTest, PlainGroupedAndTransposedRows) {
  EXPECT_EQ(only_text("a,2,4,6,8,2,10x11,3x2,2x1,1x0,1x3,0\n"),
            "conv input=4x6x10x11 weight=8x3x3x2 stride=2x1 padding=1x0 dilation=1x3 groups=2");
  EXPECT_EQ(only_text("a,1,4,6,8,2,10,3,2,1,1,1\r\n"),
            "conv input=4x6x10 weight=6x4x3 stride=2 padding=1 dilation=1 groups=2 transposed=1");
}

TEST(ShapeTableTest, PoolingRows) {
  const auto rows =
      parse_shape_table("name,ndim,N,C,spatial_in,kernel,stride,pad\np,1,2,3,9,4,2,1\n", "t.csv");
  ASSERT_TRUE(rows.is_ok());
  EXPECT_EQ(rows.value().at(0).text, "avgpool input=2x3x9 kernel=4 stride=2 padding=1");
  EXPECT_EQ(rows.value().at(0).name, "p");
}

TEST(ShapeTableTest, FailuresNameTheLine) {
  const auto columns = parse_shape_table("name,N\n", "t.csv");
  ASSERT_FALSE(columns.is_ok());
  EXPECT_NE(columns.status().message().find("t.csv:1: 'name,N' are not the columns"), std::string::npos);
  const auto cells = parse_shape_table(std::string(kConv) + "\na,2,4\n", "t.csv");
  ASSERT_FALSE(cells.is_ok());
  EXPECT_EQ(cells.status().message(), "t.csv:3: 3 cells, expected 12");
}

TEST(ShapeTableTest, CellsThatAreNoNumbersAreNamed) {
  const auto refusal = [](const std::string& row) {
    const auto rows = parse_shape_table(kConv + row, "t.csv");
    return rows.is_ok() ? "" : rows.status().message();
  };
  EXPECT_EQ(refusal("a,2,4,6,8abc,2,10x11,3x2,2x1,1x0,1x3,0"),
            "t.csv:2: Cout is '8abc', expected a whole number");
  EXPECT_EQ(refusal("a,2,4,6x6,8,2,10x11,3x2,2x1,1x0,1x3,0"),
            "t.csv:2: Cin is '6x6', expected a whole number");
  EXPECT_EQ(refusal("a,2,4,6,8,,10x11,3x2,2x1,1x0,1x3,0"), "t.csv:2: groups is '', expected a whole number");
  EXPECT_EQ(refusal("a,2,99999999999999999999,6,8,2,10x11,3x2,2x1,1x0,1x3,0"),
            "t.csv:2: N is '99999999999999999999', which does not fit in 64 bits");
  EXPECT_EQ(refusal("a,2,4,6,8,2,10x11,3x2,2x1,1x0,1x3,yes"),
            "t.csv:2: transposed is 'yes', expected 0 or 1");
  EXPECT_EQ(refusal("a,2,4,6,8,2,10x11,3x2,2x1,1x0,1x3,01"), "t.csv:2: transposed is '01', expected 0 or 1");
  EXPECT_EQ(refusal("a,2,4,6,8,2,10xx11,3x2,2x1,1x0,1x3,0"),
            "t.csv:2: spatial_in is '10xx11', expected whole numbers with x between");
  EXPECT_EQ(refusal("a,2,4,6,8,2,10x11,3x2 mask=w,2x1,1x0,1x3,0"),
            "t.csv:2: kernel is '3x2 mask=w', expected whole numbers with x between");
  EXPECT_EQ(refusal("a,2,4,6,8,2,10x11,3x2,2x1,1x0x,1x3,0"),
            "t.csv:2: pad is '1x0x', expected whole numbers with x between");
  EXPECT_EQ(refusal("a,2,4,6,8,0,10x11,3x2,2x1,1x0,1x3,0"), "");  // refused as a problem
}

TEST(ShapeTableTest, LinesWithComments) {
  const auto lines = parse_problem_lines("# all of it\n\n  conv a # why\r\navgpool b", "x.txt");
  ASSERT_TRUE(lines.is_ok());
  ASSERT_EQ(lines.value().size(), 2U);
  EXPECT_EQ(lines.value()[0].name, "x.txt:3");
  EXPECT_EQ(lines.value()[0].text, "conv a");
  EXPECT_EQ(lines.value()[1].text, "avgpool b");
}

TEST(ShapeTableTest, EveryRowOfTheSuitesIsLegal) {
  for (const auto& [file, expected] : {std::pair{"conv.csv", 79U}, std::pair{"avgpool.csv", 19U}}) {
    const auto rows = read_shapes(std::string(RETROGRAD_SOURCE_DIR "/bench/shapes/") + file);
    ASSERT_TRUE(rows.is_ok()) << rows.status().message();
    EXPECT_EQ(rows.value().size(), expected) << file;
    for (const ShapeLine& row : rows.value()) {
      const auto request = problem::parse_request(row.text);
      ASSERT_TRUE(request.is_ok()) << request.status().message();
      const auto problem = problem::judge(request.value());
      EXPECT_TRUE(problem.is_ok()) << row.name << ": " << problem.status().message();
    }
  }
}

}  // namespace
}  // namespace retrograd::tools
