// SPDX-License-Identifier: Apache-2.0
// Waiting for calls that have begun, and for no others.
#include "base/in_flight.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

namespace retrograd {
namespace {

TEST(InFlight, HasNothingToWaitForWithoutCalls) {
  InFlight calls;
  calls.drain();
  { const InFlight::Call call(calls); }
  calls.drain();
  calls.drain();
}

TEST(InFlight, WaitsForACallThatHasBegun) {
  InFlight calls;
  std::optional<InFlight::Call> call(std::in_place, calls);
  std::atomic<bool> drained{false};
  std::thread draining([&] {
    calls.drain();
    drained = true;
  });
  // A call that begins and ends meanwhile ends nothing.
  for (int i = 0; i < 1000; ++i) {
    const InFlight::Call later(calls);
    EXPECT_FALSE(drained);
  }
  call.reset();
  draining.join();
  EXPECT_TRUE(drained);
}

// What InFlight is for: a flag, calls that look at it, and a thread that clears it and takes away what they
// use.
TEST(InFlight, NoCallUsesWhatWasTakenAwayAfterDraining) {
  for (int round = 0; round < 50; ++round) {
    InFlight calls;
    std::atomic<bool> open{true};
    std::atomic<int> begun{0};
    int shared = 1;  // not atomic: a race would be seen by the thread sanitizer
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&] {
        for (;;) {
          const InFlight::Call call(calls);
          if (!open) return;
          EXPECT_EQ(shared, 1);
          ++begun;
        }
      });
    while (begun < 100) std::this_thread::yield();
    open = false;
    calls.drain();
    shared = 0;
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace retrograd
