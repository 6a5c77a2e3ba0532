// SPDX-License-Identifier: Apache-2.0
// Every number of pairs up to beyond two vectors, nothing behind them touched.
#include "kernels/cpu/interleave.h"

#include <gtest/gtest.h>

#include <vector>

namespace retrograd::test {
namespace {

TEST(InterleaveTest, EveryNumberOfPairs) {
  for (size_t pairs = 0; pairs < 40; ++pairs) {
    std::vector<float> even(pairs), odd(pairs), out(2 * pairs + 1, 99), expected = out;
    for (size_t i = 0; i < pairs; ++i) {
      expected[2 * i] = even[i] = static_cast<float>(i);
      expected[2 * i + 1] = odd[i] = -static_cast<float>(i);
    }
    kernels::cpu::interleave(even.data(), odd.data(), out.data(), static_cast<int64_t>(pairs));
    EXPECT_EQ(out, expected) << pairs << " pairs";
  }
}

}  // namespace
}  // namespace retrograd::test
