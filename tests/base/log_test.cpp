// SPDX-License-Identifier: Apache-2.0
// The log: which topics are heard, what a record looks like, that records stay whole and warnings single.
#include "base/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "probe.h"
#include "sanitizers.h"

namespace retrograd {
namespace {

using test::run_probe;

// Before anything asks for the settings: the tests of this program hear every topic.
const bool kHearAll = setenv("RETROGRAD_VERBOSE", "all", 1) == 0;

// The sink belongs to the process, so it is put back even when a test fails.
class LogSink : public testing::Test {
 protected:
  LogSink() {
    heard().clear();
    log::set_sink([](log::Topic topic, std::string_view line) {
      std::lock_guard lock(mutex());
      heard().emplace_back(topic, line);
    });
  }
  ~LogSink() override { log::set_sink(nullptr); }

  using Records = std::vector<std::pair<log::Topic, std::string>>;
  static Records& heard() {
    static Records records;
    return records;
  }
  static std::mutex& mutex() {
    static std::mutex instance;
    return instance;
  }
};

TEST_F(LogSink, GetsEveryEnabledTopicWithItsName) {
  ASSERT_TRUE(kHearAll);
  const std::pair<log::Topic, std::string> topics[] = {{log::Topic::kWarning, "warning"},
                                                       {log::Topic::kError, "error"},
                                                       {log::Topic::kDispatch, "dispatch"},
                                                       {log::Topic::kCall, "call"}};
  for (const auto& [topic, name] : topics) {
    EXPECT_TRUE(log::enabled(topic));
    log::write(topic, "text");
    ASSERT_FALSE(heard().empty());
    EXPECT_EQ(heard().back().first, topic);
    EXPECT_EQ(heard().back().second, "retrograd: " + name + ": text");
  }
  EXPECT_EQ(heard().size(), 4u);
}

TEST_F(LogSink, GetsOneLineWhateverTheTextContains) {
  log::write(log::Topic::kError, "first\nreproduce: second\r");
  ASSERT_EQ(heard().size(), 1u);
  EXPECT_EQ(heard()[0].second, "retrograd: error: first | reproduce: second | ");
}

TEST_F(LogSink, GetsTheSameWarningOnce) {
  static int run = 0;  // --gtest_repeat stays in this process, which has heard the texts of the last time
  const std::string one = "warning one of run " + std::to_string(++run),
                    two = "warning two of run " + std::to_string(run);
  for (int i = 0; i < 3; ++i) {
    log::warn_once(one);
    log::warn_once(two);
  }
  ASSERT_EQ(heard().size(), 2u);
  EXPECT_EQ(heard()[0].second, "retrograd: warning: " + one);
  EXPECT_EQ(heard()[1].second, "retrograd: warning: " + two);
}

TEST_F(LogSink, GetsTheBeginningOfALongWarning) {
  const std::string text = "biasSizes of this test is [" + std::string(100'000, '7') + "]";
  log::warn_once(text);
  ASSERT_EQ(heard().size(), 1u);
  const std::string& line = heard()[0].second;
  EXPECT_EQ(line.find("retrograd: warning: biasSizes of this test is [777"), 0u);
  EXPECT_NE(line.find("... (100028 characters)"), std::string::npos) << line.substr(line.size() - 50);
  EXPECT_LT(line.size(), 1100u);
  log::warn_once(text);
  EXPECT_EQ(heard().size(), 1u);
}

TEST(Log, WritesOnlyWarningsByDefault) {
  const auto result = run_probe("topics", {});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.lines, (std::vector<std::string>{"retrograd: warning: one"}));
}

TEST(Log, WritesTheTopicsThatAreNamed) {
  EXPECT_EQ(run_probe("topics", {{"RETROGRAD_VERBOSE", "none"}}).lines, std::vector<std::string>{});
  EXPECT_EQ(run_probe("topics", {{"RETROGRAD_VERBOSE", "dispatch"}}).lines,
            (std::vector<std::string>{"retrograd: warning: one", "retrograd: dispatch: three"}));
  EXPECT_EQ(run_probe("topics", {{"RETROGRAD_VERBOSE", "all"}}).lines,
            (std::vector<std::string>{"retrograd: warning: one", "retrograd: error: two",
                                      "retrograd: dispatch: three", "retrograd: call: four"}));
}

// The settings warn through the log, and the log asks the settings: neither may wait for the other.
TEST(Log, CanBeTheFirstToReadSettingsThatWarn) {
  const auto result = run_probe("topics", {{"RETROGRAD_VERBOSE", "loud,error"}});
  EXPECT_EQ(result.exit_code, 0);
  ASSERT_EQ(result.lines.size(), 3u);
  EXPECT_NE(result.lines[0].find("RETROGRAD_VERBOSE is \"loud\""), std::string::npos) << result.lines[0];
  EXPECT_EQ(result.lines[1], "retrograd: warning: one");
  EXPECT_EQ(result.lines[2], "retrograd: error: two");
}

TEST(Log, KeepsRecordsOfManyThreadsWhole) {
  const auto result =
      run_probe("write_from_threads", {{"RETROGRAD_VERBOSE", "call"}, {"RETROGRAD_DEVICE", "x"}});
  EXPECT_EQ(result.exit_code, 0);
  std::vector<int> counts(8, 0);
  int warnings = 0;
  for (const std::string& line : result.lines) {
    if (line.starts_with("retrograd: warning: RETROGRAD_DEVICE")) {
      ++warnings;
      continue;
    }
    ASSERT_FALSE(line.empty());
    const char letter = line.back();
    ASSERT_EQ(line, "retrograd: call: " + std::string(200, letter));
    ASSERT_TRUE(letter >= 'a' && letter <= 'h');
    ++counts[static_cast<size_t>(letter - 'a')];
  }
  EXPECT_EQ(counts, std::vector<int>(8, 300));
  EXPECT_EQ(warnings, 1);
}

TEST(Log, WarnsOnceFromManyThreads) {
  EXPECT_EQ(run_probe("warn_from_threads", {}).lines,
            (std::vector<std::string>{"retrograd: warning: the same"}));
}

TEST(Log, StopsAfterAThousandDifferentWarnings) {
  const auto result = run_probe("warn_without_end", {});
  ASSERT_EQ(result.lines.size(), 1000u);
  EXPECT_EQ(result.lines.back(), "retrograd: warning: number 999");
}

// What remembers the texts is bounded, not only their number.
TEST(Log, KeepsLittleOfLongWarnings) {
#ifdef RG_SANITIZER
  GTEST_SKIP() << "a sanitizer's allocator does not tell mallinfo2 anything";
#endif
  const auto result = run_probe("warn_at_length", {});
  ASSERT_EQ(result.exit_code, 0);
  ASSERT_FALSE(result.lines.empty());
  size_t kept = 0;
  for (const std::string& line : result.lines)
    if (line.starts_with("kept=")) kept = std::stoull(line.substr(5));
  EXPECT_GT(kept, 0u);
  EXPECT_LT(kept, size_t{4} << 20);
}

}  // namespace
}  // namespace retrograd
