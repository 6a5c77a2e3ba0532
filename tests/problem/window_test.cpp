// SPDX-License-Identifier: Apache-2.0
// The window arithmetic against counting: every function is compared with what trying all positions says.
#include "problem/window.h"

#include <gtest/gtest.h>

#include <limits>

namespace retrograd::problem {
namespace {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

template <class Visit>
void for_each_window(Visit visit) {
  for (int64_t x = 0; x <= 7; ++x)
    for (int64_t kernel = 0; kernel <= 4; ++kernel)
      for (int64_t stride = 1; stride <= 4; ++stride)
        for (int64_t dilation = 1; dilation <= 3; ++dilation)
          for (int64_t pad = -2; pad <= 4; ++pad)
            for (int64_t y = 0; y <= 6; ++y) visit(Window{x, y, kernel, stride, dilation, pad});
}

bool inside(const Window& w, int64_t output, int64_t tap) {
  const int64_t at = output * w.stride - w.pad_lo + tap * w.dilation;
  return at >= 0 && at < w.x;
}

std::string describe(const Window& w) {
  return testing::PrintToString(std::vector<int64_t>{w.x, w.y, w.kernel, w.stride, w.dilation, w.pad_lo});
}

TEST(WindowTest, LiveTapsAreTheTapsInside) {
  for_each_window([](const Window& w) {
    for (int64_t o = 0; o < w.y; ++o) {
      const Range live = live_taps(w, o);
      ASSERT_LE(live.begin, live.end) << describe(w);
      for (int64_t t = 0; t < w.kernel; ++t)
        ASSERT_EQ(t >= live.begin && t < live.end, inside(w, o, t))
            << describe(w) << " output " << o << " tap " << t;
      ASSERT_TRUE(live.size() == 0 || (live.begin >= 0 && live.end <= w.kernel)) << describe(w);
    }
  });
}

TEST(WindowTest, LiveOutputsAreTheOutputsInside) {
  for_each_window([](const Window& w) {
    for (int64_t t = 0; t < w.kernel; ++t) {
      const Range live = live_outputs(w, t);
      for (int64_t o = 0; o < w.y; ++o)
        ASSERT_EQ(o >= live.begin && o < live.end, inside(w, o, t))
            << describe(w) << " output " << o << " tap " << t;
      ASSERT_TRUE(live.size() == 0 || (live.begin >= 0 && live.end <= w.y)) << describe(w);
    }
  });
}

TEST(WindowTest, OutputReadingInvertsPosition) {
  for_each_window([](const Window& w) {
    for (int64_t i = 0; i < w.x; ++i)
      for (int64_t t = 0; t < w.kernel; ++t) {
        std::optional<int64_t> expected;
        for (int64_t o = 0; o < w.y; ++o)
          if (position(w, o, t) == i) expected = o;
        ASSERT_EQ(output_reading(w, i, t), expected) << describe(w) << " place " << i << " tap " << t;
      }
  });
}

TEST(WindowTest, OutputSizeIsTheNumberOfWindowsThatFit) {
  for (int64_t x = 1; x <= 9; ++x)
    for (int64_t kernel = 1; kernel <= 4; ++kernel)
      for (int64_t stride = 1; stride <= 4; ++stride)
        for (int64_t dilation = 1; dilation <= 3; ++dilation)
          for (int64_t lo = 0; lo <= 2; ++lo)
            for (int64_t hi = 0; hi <= 2; ++hi) {
              int64_t count = 0;
              while (count * stride + dilation * (kernel - 1) < x + lo + hi) ++count;
              const auto size = output_size({x, kernel, stride, dilation, lo, hi});
              ASSERT_TRUE(size.has_value());
              ASSERT_EQ(std::max<int64_t>(*size, 0), count);
            }
}

TEST(WindowTest, TransposedSizeInvertsOutputSize) {
  for (int64_t y = 1; y <= 5; ++y)
    for (int64_t kernel = 1; kernel <= 4; ++kernel)
      for (int64_t stride = 1; stride <= 4; ++stride)
        for (int64_t extra = 0; extra < stride; ++extra) {
          const auto x = transposed_output_size({y, kernel, stride, 2, 1, 0}, y, 0, extra);
          ASSERT_TRUE(x.has_value());
          if (*x < 1) continue;
          EXPECT_EQ(output_size({*x, kernel, stride, 2, 1, 0}), y);
        }
}

TEST(WindowTest, OverflowIsReported) {
  EXPECT_EQ(output_size({kHuge, 1, 1, 1, 1, 1}), std::nullopt);
  EXPECT_EQ(output_size({1, kHuge, 1, kHuge, 0, 0}), std::nullopt);
  EXPECT_EQ(transposed_output_size({kHuge, 1, kHuge, 1, 0, 0}, kHuge, 0, 0), std::nullopt);
  EXPECT_FALSE(positions_fit({kHuge, 1, 1, 1, 1, 0}));
  EXPECT_FALSE(positions_fit({1, kHuge / 2, 1, 4, 1, 0}));
  EXPECT_TRUE(positions_fit({int64_t{1} << 40, int64_t{1} << 40, 255, 63, 255, 255}));
  EXPECT_EQ(pool_output_size({kHuge, 0, 1, 1, 1}, false, false), std::nullopt);
}

TEST(PoolWindowTest, InversesAndCountsAgreeWithTrying) {
  for (int64_t x = 1; x <= 8; ++x)
    for (int64_t kernel = 1; kernel <= 5; ++kernel)
      for (int64_t stride = 1; stride <= 4; ++stride)
        for (int64_t pad = 0; pad <= kernel / 2; ++pad) {
          const PoolWindow w{x, 7, kernel, stride, pad};
          for (int64_t o = 0; o < w.y; ++o) {
            const int64_t start = o * stride - pad;
            int64_t in = 0, padded = 0;
            for (int64_t k = start; k < start + kernel; ++k) {
              in += k >= 0 && k < x;
              padded += k < x + pad;
            }
            ASSERT_EQ(pooled_positions(w, o).size(), in);
            ASSERT_EQ(pooled_count(w, o, false), in);
            ASSERT_EQ(pooled_count(w, o, true), padded);
            for (int64_t i = 0; i < x; ++i) {
              const Range holding = outputs_pooling(w, i);
              ASSERT_EQ(o >= holding.begin && o < holding.end, i >= start && i < start + kernel);
            }
          }
        }
}

TEST(PoolWindowTest, CeilModeAddsTheOverhangingWindowUnlessItStartsBeyondTheInput) {
  EXPECT_EQ(pool_output_size({5, 0, 2, 2, 0}, false, true), 2);
  EXPECT_EQ(pool_output_size({5, 0, 2, 2, 0}, true, true), 3);
  EXPECT_EQ(pool_output_size({4, 0, 1, 3, 0}, true, false), 2);
  // (out − 1)·stride = 4 ≥ x + pad = 4: the last window would see nothing.
  EXPECT_EQ(pool_output_size({3, 0, 2, 4, 1}, true, false), 2);
  EXPECT_EQ(pool_output_size({3, 0, 2, 4, 1}, true, true), 1);
}

}  // namespace
}  // namespace retrograd::problem
