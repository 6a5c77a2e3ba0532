// SPDX-License-Identifier: Apache-2.0
// Quotients of pooling: rounded as a division rounds, whatever they are made by.
#include "kernels/cpu/pooling/row_pool.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace retrograd::kernels::cpu {
namespace {

// Windows of two places side by side in one row.
std::vector<float> pool_pairs(const std::vector<float>& grad_output, float divisor) {
  const auto windows = static_cast<int64_t>(grad_output.size());
  const PoolWindows depth{0, 1};
  const PoolRun run{.first = 0, .rows = 1, .windows = {0, 1}};
  std::vector<PoolPhase> phases(2);
  list_pool_phases(2, 2, phases.data());
  PoolVolumes p;
  p.over_depth = &depth;
  p.runs = &run;
  p.run_count = 1;
  p.x = 2 * windows;
  p.y = windows;
  p.kernel = p.stride = 2;
  p.phases = phases.data();
  p.counts.all = divisor;
  p.derive(vector_shape());
  std::vector<float> scratch(static_cast<size_t>(p.scratch_floats())), out(2 * grad_output.size());
  clear_pool_scratch(p, scratch.data());
  pool_volumes(p, reinterpret_cast<const std::byte*>(grad_output.data()),
               reinterpret_cast<std::byte*>(out.data()), 1, scratch.data());
  return out;
}

std::vector<float> numbers() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> all{0.0F, -0.0F,   kInfinity, -kInfinity, std::numeric_limits<float>::max(),
                         1.0F, 0x1p-79F};
  std::mt19937 random(3);
  // Every exponent whose quotients stay above 2^-101: below, the last bit may differ.
  std::uniform_int_distribution<uint32_t> mantissa(0, 0x7f'ffffu), exponent(127 - 79, 254), sign(0, 1);
  while (all.size() < 200'003)
    all.push_back(std::bit_cast<float>(sign(random) << 31 | exponent(random) << 23 | mantissa(random)));
  // Where many quotients come closest to the middle of two numbers: the first and the last of a binade.
  for (uint32_t i = 0; i < 4096; ++i) {
    all.push_back(std::bit_cast<float>((127u << 23) + i));
    all.push_back(std::bit_cast<float>((128u << 23) - 1 - i));
  }
  return all;
}

TEST(RowPoolTest, QuotientsAreThoseOfADivision) {
  const std::vector<float> in = numbers();
  for (const float divisor :
       {1.0F,  2.0F,  3.0F,  -3.0F,  5.0F,    6.0F,     7.0F,      9.0F,       -9.0F,      12.0F,
        25.0F, 27.0F, 49.0F, 169.0F, 1000.0F, 16383.0F, 262143.0F, 1048575.0F, 1048577.0F, 16777213.0F}) {
    SCOPED_TRACE(divisor);
    const std::vector<float> out = pool_pairs(in, divisor);
    for (size_t i = 0; i < in.size(); ++i) {
      const auto want = std::bit_cast<uint32_t>(in[i] / divisor);
      ASSERT_EQ(std::bit_cast<uint32_t>(out[2 * i]), want) << in[i];
      ASSERT_EQ(std::bit_cast<uint32_t>(out[2 * i + 1]), want) << in[i];
    }
  }
}

TEST(RowPoolTest, ANumberThatIsNoneStaysSo) {
  for (const float divisor : {4.0F, 9.0F, 1048577.0F}) {
    const std::vector<float> out = pool_pairs({1.0F, std::numeric_limits<float>::quiet_NaN(), 2.0F}, divisor);
    EXPECT_EQ(out[1], 1 / divisor);
    EXPECT_TRUE(std::isnan(out[2]) && std::isnan(out[3]));
    EXPECT_EQ(out[4], 2 / divisor);
  }
}

}  // namespace
}  // namespace retrograd::kernels::cpu
