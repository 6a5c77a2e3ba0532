// SPDX-License-Identifier: Apache-2.0
// Plans of grad_input with few x channels: classes of places, boxes, shared memory.
#include "kernels/cuda/stems/stem_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

namespace retrograd::kernels::cuda {
namespace {

// Every place of x has one class and window start, and reads what the definition says.
TEST(StemPlanTest, ClassesOfAnAxis) {
  for (int x = 1; x <= 13; ++x)
    for (int kernel = 1; kernel <= 7; ++kernel)
      for (int stride = 1; stride <= 4; ++stride)
        for (int pad = -3; pad <= 5; ++pad)
          for (const int y : {1, 2, 6}) {
            const StemAxis a = stem_axis({x, y, kernel, stride, 1, pad});
            std::vector<int> seen(static_cast<size_t>(x), 0);
            for (int b = 0; b < a.stride; ++b)
              for (int start = a.first; start < a.first + a.count; ++start) {
                const int q = stem_place(a, b, start);
                if (q < 0 || q >= x) continue;
                ++seen[static_cast<size_t>(q)];
                ASSERT_LE(stem_taps(a, b), a.most);
                std::set<std::pair<int, int>> read, defined;  // tap, place of y
                for (int i = 0; i < stem_taps(a, b); ++i)
                  if (start + i >= 0 && start + i < y) read.emplace(stem_tap(a, b, i), start + i);
                for (int t = 0; t < kernel; ++t)
                  for (int o = 0; o < y; ++o)
                    if (o * stride - pad + t == q) defined.emplace(t, o);
                ASSERT_EQ(read, defined) << x << " " << kernel << " " << stride << " " << pad << " " << q;
              }
            ASSERT_EQ(std::ranges::count(seen, 1), x) << kernel << " " << stride << " " << pad;
          }
}

TEST(StemPlanTest, ColumnsKeepVectorsWhole) {
  std::set<int> seen;
  for (int c = 0; c < 256; ++c) {
    EXPECT_EQ(stem_column(c), stem_column(c & ~3) + (c & 3));
    EXPECT_EQ(stem_column(c) & ~7, c & ~7);
    seen.insert(stem_column(c));
  }
  EXPECT_EQ(seen.size(), 256u);
  // Eight threads of a row read all banks.
  for (int first = 0; first < 16; first += 4) {
    std::set<int> banks;
    for (int quad = 0; quad < 8; ++quad) banks.insert(stem_column(quad * 8 + first) % 32);
    EXPECT_EQ(banks.size(), 8u);
  }
}

struct Sizes {
  int64_t batch, channels, height, width, y_channels, kernel_h, kernel_w, stride, pad;
};
Conv shape(const Sizes& s, bool last) {
  Conv c{};
  c.batch = s.batch, c.groups = 1, c.x_channels = s.channels, c.y_channels = s.y_channels;
  const auto out = [&](int64_t x, int64_t kernel, int64_t pad) {
    return (x + 2 * pad - kernel) / s.stride + 1;
  };
  const int64_t pad_h = s.kernel_h == 1 ? 0 : s.pad;
  c.axes[0] = {1, 1, 1, 1, 1, 0};
  c.axes[1] = {s.height, out(s.height, s.kernel_h, pad_h), s.kernel_h, s.stride, 1, pad_h};
  c.axes[2] = {s.width, out(s.width, s.kernel_w, s.pad), s.kernel_w, s.stride, 1, s.pad};
  const int64_t h = c.axes[1].y, w = c.axes[2].y, o = s.y_channels;
  const std::array<int64_t, 5> planes{o * h * w, h * w, h * w, w, 1},
      inner{o * h * w, 1, o * h * w, o * w, o};
  std::ranges::copy(last ? inner : planes, c.y.strides);
  return c;
}

TEST(StemPlanTest, Plans) {
  StemPlan p = stem_plan(shape({53, 1, 63, 63, 56, 7, 7, 1, 3}, false), true, kStemShared);
  ASSERT_TRUE(p.fits);
  EXPECT_EQ(p.rows, 4);
  EXPECT_EQ(p.quads, 8);
  EXPECT_EQ(p.positions, 32);
  EXPECT_EQ(p.shares, 8);
  EXPECT_EQ(p.row_tiles * p.column_tiles, 4);
  EXPECT_FALSE(p.wide);

  p = stem_plan(shape({1, 3, 419, 419, 32, 9, 9, 2, 4}, false), true, kStemShared);
  ASSERT_TRUE(p.fits);
  EXPECT_EQ(p.classes, 4);
  EXPECT_EQ(p.channels, 3);
  EXPECT_EQ(p.threads(), 512);

  p = stem_plan(shape({32, 3, 224, 224, 64, 7, 7, 1, 3}, false), true, kStemShared);
  EXPECT_TRUE(p.fits && p.wide);
  EXPECT_EQ(p.w.first % 4, 0);
  EXPECT_FALSE(stem_plan(shape({32, 3, 224, 224, 64, 7, 7, 1, 3}, false), false, kStemShared).wide);
  EXPECT_TRUE(stem_plan(shape({32, 3, 224, 224, 64, 7, 7, 1, 3}, true), true, kStemShared).last);

  p = stem_plan(shape({8, 1, 1, 16000, 64, 1, 31, 1, 15}, false), true, kStemShared);
  EXPECT_TRUE(p.fits);
  EXPECT_EQ(p.rows, 1);
}

// Nothing that a thread reads or writes lies beyond its channel's part of a buffer.
TEST(StemPlanTest, BoxesHoldWhatIsRead) {
  for (const int64_t channels : {1, 2, 3, 4, 5, 7, 8})
    for (const int64_t size : {1, 7, 16, 33, 63, 100, 224})
      for (const int64_t kernel : {1, 2, 3, 5, 7, 8, 9, 11, 17})
        for (const int64_t stride : {1, 2, 3, 4})
          for (const auto& [aligned, most] :
               {std::pair(false, kStemShared), std::pair(true, kStemShared), std::pair(true, 99 << 10)}) {
            const Sizes sizes{2, channels, size, size, 20, kernel, kernel, stride, kernel / 2};
            const StemPlan p = stem_plan(shape(sizes, false), aligned, most);
            ASSERT_TRUE(p.fits) << channels << " " << size << " " << kernel << " " << stride;
            EXPECT_LE(p.threads(), kStemThreads);
            EXPECT_LE(p.shared, most);
            EXPECT_EQ(p.positions % 32, 0);
            EXPECT_EQ(p.chunk % p.shares, 0);
            EXPECT_LE(p.chunk, 32);
            EXPECT_EQ(p.pitch % 4 + p.plane % 4 + p.weight_channel % 4 + p.weight_row % 4, 0);
            EXPECT_GE(p.channels * p.c_blocks, channels);
            EXPECT_GE(p.row_tiles * p.thread_rows * p.rows, p.h.count);
            EXPECT_GE(p.column_tiles * p.quads * kStemRun, p.w.count);
            EXPECT_LE((p.thread_rows - 1) * p.rows + p.h.most + p.rows - 2, p.box_rows - 1);
            EXPECT_GE(p.plane, p.box_rows * p.pitch);
            for (int first = 0; first < p.w.most; first += 8) {
              const int taps = std::min(8, p.w.most - first), fours = (kStemRun + taps - 1 + 3) / 4;
              for (int i = 0; i < fours; ++i)
                EXPECT_LE(stem_column((p.quads - 1) * kStemRun + first + 4 * i) + 4, p.pitch);
              EXPECT_LE(first * p.channels + (taps * p.channels + 3) / 4 * 4, p.weight_row);
            }
            EXPECT_LE(stem_column((p.box_columns + 3) / 4 * 4 - 4) + 4, p.pitch);
          }
}

TEST(StemPlanTest, SharedMemoryOfTheGpu) {
  // Where there is more than a block takes, plans are the same.
  const Conv conv = shape({32, 3, 224, 224, 64, 7, 7, 1, 3}, false);
  EXPECT_EQ(stem_plan(conv, true, 227 << 10).shared, stem_plan(conv, true, kStemShared).shared);
  EXPECT_EQ(stem_plan(conv, true, 163 << 10).cycles, stem_plan(conv, true, kStemShared).cycles);
  // What the least takes is said, and is enough.
  const StemPlan least = stem_plan(conv, true, 1000);
  EXPECT_FALSE(least.fits);
  EXPECT_GT(least.shared, 1000);
  EXPECT_FALSE(stem_plan(conv, true, least.shared - 1).fits);
  EXPECT_TRUE(stem_plan(conv, true, least.shared).fits);
  // Too many classes for any block.
  const StemPlan none = stem_plan(shape({1, 3, 224, 224, 64, 7, 7, 5, 3}, false), true, kStemShared);
  EXPECT_FALSE(none.fits);
  EXPECT_EQ(none.shared, 0);
}

}  // namespace
}  // namespace retrograd::kernels::cuda
