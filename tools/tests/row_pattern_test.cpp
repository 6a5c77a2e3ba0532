// SPDX-License-Identifier: Apache-2.0
// The patterns of --rows: what they find, what is refused, and that neither length nor depth harms.
#include "tools/problems/row_pattern.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <regex>
#include <string>

#include "tools/problems/problems.h"

namespace retrograd::tools {
namespace {

bool found(std::string_view pattern, std::string_view name) {
  const auto parsed = RowPattern::parse(pattern);
  EXPECT_TRUE(parsed.is_ok()) << pattern << ": " << parsed.status().message();
  return parsed.is_ok() && parsed.value().found_in(name);
}

TEST(RowPatternTest, FindsWhatIsWritten) {
  EXPECT_TRUE(found("dw3|dw5", "mnv2_dw5x5_14"));
  EXPECT_FALSE(found("dw3|dw5", "rn50_3x3_14"));
  EXPECT_TRUE(found("^tiny", "tiny_1x1"));
  EXPECT_FALSE(found("^tiny", "not_tiny"));
  EXPECT_TRUE(found("^(rn50_3x3_14|a\\-b\\.c)$", "a-b.c"));
  EXPECT_FALSE(found("^(rn50_3x3_14|a\\-b\\.c)$", "a-b_c"));
  EXPECT_FALSE(found("^(rn50_3x3_14)$", "rn50_3x3_14x"));
  EXPECT_TRUE(found("[3-5]x[^3]", "a4x4"));
  EXPECT_FALSE(found("[3-5]x[^3]", "a4x3"));
  EXPECT_TRUE(found("", "anything"));
  EXPECT_TRUE(found("^$", ""));
}

// Short patterns of these characters, against std::regex, which means the same by them.
TEST(RowPatternTest, AgreesWithStdRegexOnShortOnes) {
  std::mt19937 random(2026);
  const std::string_view letters = "abc", signs = "ab()|*+?^$.[]-\\";
  int judged = 0, matches = 0;
  for (int i = 0; i < 40000; ++i) {
    std::string pattern, name;
    for (size_t n = random() % 7; n > 0; --n) pattern += signs[random() % signs.size()];
    for (size_t n = random() % 6; n > 0; --n) name += letters[random() % letters.size()];
    const auto parsed = RowPattern::parse(pattern);
    // Ours refuses what ECMAScript gives another meaning or none.
    if (!parsed.is_ok()) continue;
    try {
      const bool expected = std::regex_search(name, std::regex(pattern));
      EXPECT_EQ(parsed.value().found_in(name), expected) << pattern << " in " << name;
      ++judged;
      matches += expected ? 1 : 0;
    } catch (const std::regex_error&) {
      // [] and the like: legal here only.
    }
  }
  EXPECT_GT(judged, 5000);
  EXPECT_GT(matches, 1000);
  EXPECT_GT(judged - matches, 1000);
}

TEST(RowPatternTest, MistakesArePointedAt) {
  const std::pair<const char*, const char*> cases[] = {{"(", "character 1: a ( is not closed"},
                                                       {"a)", "character 2: a ) that closes nothing"},
                                                       {"*a", "character 1: nothing that * could repeat"},
                                                       {"a+?", "character 3: ? behind a repetition"},
                                                       {"a{2}", "character 2: { is not known here"},
                                                       {"[ab", "character 3: a [ is not closed"},
                                                       {"[z-a]", "ends before it begins"},
                                                       {"\\d", "character 2: \\d has no meaning here"},
                                                       {"a\\", "nothing behind \\"}};
  for (const auto& [pattern, message] : cases) {
    const auto parsed = RowPattern::parse(pattern);
    ASSERT_FALSE(parsed.is_ok()) << pattern;
    EXPECT_NE(parsed.status().message().find(message), std::string::npos) << parsed.status().message();
  }
}

TEST(RowPatternTest, LengthAndDepthDoNoHarm) {
  EXPECT_TRUE(found("a.*b", fmt::format("a{}b", std::string(300'000, 'x'))));
  EXPECT_FALSE(found("^(x|xx)*$", std::string(300'000, 'x') + "b"));
  EXPECT_TRUE(found(fmt::format("{}a{}", std::string(4999, '('), std::string(4999, ')')), "bab"));
  std::string stars(3000, '(');
  for (int i = 0; i < 3000; ++i) stars += ")*";
  EXPECT_TRUE(found(stars, "b"));
  for (const char bracket : {'(', '[', ')', '*'}) {
    const auto parsed = RowPattern::parse(std::string(100'000, bracket));
    ASSERT_FALSE(parsed.is_ok());
    EXPECT_NE(parsed.status().message().find("100000 characters, at most 10000"), std::string::npos);
  }
}

TEST(RowPatternTest, ALongPatternIsShownShort) {
  ProblemSource source;
  source.files = {RETROGRAD_SOURCE_DIR "/bench/shapes/avgpool.csv"};
  source.rows = std::string(100'000, '(');
  const auto problems = collect(source);
  ASSERT_FALSE(problems.is_ok());
  EXPECT_EQ(problems.status().message().find("--rows: '(((((("), 0u);
  EXPECT_LT(problems.status().message().size(), 250u);
}

}  // namespace
}  // namespace retrograd::tools
