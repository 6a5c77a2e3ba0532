// SPDX-License-Identifier: Apache-2.0
// The last error of a thread: kept, taken, separate for each thread, and there when memory or the process
// ends.
#include "base/last_error.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include "base/log.h"
#include "failing_memory.h"
#include "probe.h"

namespace retrograd {
namespace {

const std::string kLong = "161002 aclnnConvolutionBackward: gradOutput.shape[3] is 112, expected 111";

std::string& logged() {
  static std::string text;
  return text;
}

// Each test has a thread of its own, so that none sees the errors of another.
class LastError : public testing::Test {
 protected:
  LastError() {
    log::set_sink([](log::Topic, std::string_view line) { logged() = line; });
  }
  ~LastError() override { log::set_sink(nullptr); }

  template <class Body>
  static void on_a_fresh_thread(Body body) {
    std::thread(body).join();
  }
};

TEST_F(LastError, IsEmptyOnAThreadThatNeverFailed) {
  on_a_fresh_thread([] {
    EXPECT_EQ(last_error::take(), nullptr);
    EXPECT_STREQ(last_error::peek(), "");
  });
}

TEST_F(LastError, IsTakenOnce) {
  on_a_fresh_thread([] {
    last_error::set(kLong);
    EXPECT_STREQ(last_error::take(), kLong.c_str());
    EXPECT_EQ(last_error::take(), nullptr);
  });
}

TEST_F(LastError, IsKeptForPeekAlsoWhenTaken) {
  on_a_fresh_thread([] {
    last_error::set("one");
    EXPECT_STREQ(last_error::peek(), "one");
    EXPECT_STREQ(last_error::peek(), "one");
    EXPECT_STREQ(last_error::take(), "one");
    EXPECT_STREQ(last_error::peek(), "one");
  });
}

TEST_F(LastError, IsTheNewestOfSeveral) {
  on_a_fresh_thread([] {
    last_error::set("one");
    last_error::set(std::string("two"));
    EXPECT_STREQ(last_error::peek(), "two");
    EXPECT_STREQ(last_error::take(), "two");
    EXPECT_EQ(last_error::take(), nullptr);
  });
}

TEST_F(LastError, StaysReadableAfterTakeUntilTheNextTake) {
  on_a_fresh_thread([] {
    last_error::set("one");
    const char* taken = last_error::take();
    last_error::set("two");
    last_error::set(kLong);
    EXPECT_STREQ(taken, "one");
    EXPECT_STREQ(last_error::peek(), kLong.c_str());
    EXPECT_STREQ(last_error::take(), kLong.c_str());
  });
}

TEST_F(LastError, BelongsToItsThread) {
  on_a_fresh_thread([] {
    last_error::set("mine");
    std::thread([] {
      EXPECT_EQ(last_error::take(), nullptr);
      last_error::set("theirs");
      EXPECT_STREQ(last_error::peek(), "theirs");
    }).join();
    EXPECT_STREQ(last_error::take(), "mine");
  });
}

TEST_F(LastError, IsLogged) {
  on_a_fresh_thread([] { last_error::set("107000 aclrtFree: no such block"); });
  EXPECT_EQ(logged(), "retrograd: error: 107000 aclrtFree: no such block");
}

TEST_F(LastError, TakesANullTextForAnEmptyOne) {
  on_a_fresh_thread([] {
    last_error::set(static_cast<const char*>(nullptr));
    EXPECT_STREQ(last_error::take(), "");
  });
}

TEST_F(LastError, IsSetWhenMemoryIsOut) {
  on_a_fresh_thread([] {
    std::string text = kLong;
    ASSERT_GT(text.size(), std::string().capacity()) << "a copy must need memory";
    {
      const test::MemoryIsOut now;
      last_error::set(std::move(text));
    }
    EXPECT_STREQ(last_error::take(), kLong.c_str());

    {
      const test::MemoryIsOut now;
      last_error::set(kLong.c_str());
    }
    EXPECT_STREQ(last_error::take(), kLong.c_str());
  });
}

TEST_F(LastError, KeepsTheBeginningOfALongTextWhenMemoryIsOut) {
  on_a_fresh_thread([] {
    const std::string text(1000, 'x');
    {
      const test::MemoryIsOut now;
      last_error::set(text.c_str());
    }
    EXPECT_EQ(last_error::peek(), std::string(255, 'x'));
    last_error::set(text.c_str());
    EXPECT_EQ(last_error::peek(), text);
    {
      const test::MemoryIsOut now;
      last_error::set(std::string());
    }
    EXPECT_STREQ(last_error::peek(), "");
  });
}

// More threads than texts are laid by for, all of them alive with their first failure; and again, since
// threads that end give back what they were given.
TEST_F(LastError, IsThereForManyThreadsWhoseFirstFailureFindsNoMemory) {
  constexpr int kThreads = 40, kLaidBy = 16;
  for (int round = 0; round < 2; ++round) {
    std::latch all_failed(kThreads);
    std::atomic<int> whole = 0, fixed = 0;
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < kThreads; ++i)
        threads.emplace_back([&] {
          {
            const test::MemoryIsOut now;
            last_error::set(kLong.c_str());
          }
          const std::string text = last_error::peek();
          if (text == kLong) ++whole;
          if (text.find("no memory for its message") != std::string::npos) ++fixed;
          EXPECT_EQ(last_error::take(), text);
          EXPECT_EQ(last_error::take(), nullptr);
          all_failed.arrive_and_wait();
          last_error::set("one");
          EXPECT_STREQ(last_error::take(), "one");
        });
    }
    EXPECT_EQ(whole, kLaidBy);
    EXPECT_EQ(whole + fixed, kThreads);
  }
}

TEST_F(LastError, IsStillThereForStaticDestructors) {
  const auto result = test::run_probe("fail_at_exit", {});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.lines,
            (std::vector<std::string>{"retrograd: warning: still heard",
                                      "take=text peek=\"another text too long for the inside of a string "
                                      "object, at exit\""}));
}

}  // namespace
}  // namespace retrograd
