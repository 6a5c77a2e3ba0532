// SPDX-License-Identifier: Apache-2.0
// Spaced rows of every length against a plain loop; nothing else is touched.
#include "kernels/cpu/layout/row_space.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cpu/dense/tile_product.h"

namespace retrograd::kernels::cpu {
namespace {

void expect_spaced(int64_t step, int64_t count, int64_t length) {
  constexpr int64_t kRows = 2;
  constexpr float kGuard = -1000;
  const int64_t in_stride = count + 1, out_stride = length + 3;
  // Nothing lies behind the last value.
  std::vector<float> in(static_cast<size_t>((kRows - 1) * in_stride + count));
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i + 1);
  std::vector<float> out(static_cast<size_t>(kRows * out_stride), kGuard), want = out;
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t p = 0; p < length; ++p)
      want[static_cast<size_t>(r * out_stride + p)] =
          p % step == 0 && p / step < count ? in[static_cast<size_t>(r * in_stride + p / step)] : 0;
  space_rows({.in = in.data(),
              .in_stride = in_stride,
              .out = out.data(),
              .out_stride = out_stride,
              .rows = kRows,
              .count = count,
              .step = step,
              .length = length});
  EXPECT_EQ(out, want) << count << " values " << step << " apart in " << length << " places";
}

TEST(RowSpace, SpacesEveryCountAndLength) {
  for (int64_t step = 1; step <= 4; ++step)
    for (int64_t count = 0; count <= 40; ++count)
      for (int64_t behind = count == 0 ? 0 : 1; behind <= 40; ++behind)
        expect_spaced(step, count, (count == 0 ? 0 : (count - 1) * step) + behind);
}

TEST(RowSpace, StreamsWhatItSpaces) {
  constexpr int64_t kRows = 2, kLine = 16, kStride = 8 * kLine;
  for (int64_t length = kLine; length <= 6 * kLine; length += kLine)
    for (int64_t count = 0; count <= length / 2; ++count) {
      std::vector<float> in(static_cast<size_t>(kRows * count), 7), room(kRows * kStride + kLine, -1);
      float* out = room.data() + (-reinterpret_cast<uintptr_t>(room.data()) / sizeof(float) & (kLine - 1));
      space_rows({.in = in.data(),
                  .in_stride = count,
                  .out = out,
                  .out_stride = kStride,
                  .rows = kRows,
                  .count = count,
                  .step = 2,
                  .length = length,
                  .stream = true});
      end_stream();
      for (int64_t p = 0; p < kRows * kStride; ++p) {
        const int64_t place = p % kStride;
        EXPECT_EQ(out[p], place >= length                       ? -1
                          : place % 2 == 0 && place / 2 < count ? 7
                                                                : 0)
            << count << " values in " << length << " places, at " << p;
      }
    }
}

TEST(RowSpace, PicksEveryOther) {
  for (int64_t count = 0; count <= 70; ++count) {
    // Nothing lies behind the last value.
    std::vector<float> in(static_cast<size_t>(count == 0 ? 0 : 2 * count - 1));
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i + 1);
    in.shrink_to_fit();
    std::vector<float> out(static_cast<size_t>(count + 1), -1), want = out;
    for (int64_t i = 0; i < count; ++i) want[static_cast<size_t>(i)] = in[static_cast<size_t>(2 * i)];
    pick_every_other(in.data(), out.data(), count);
    EXPECT_EQ(out, want) << count;
  }
}

}  // namespace
}  // namespace retrograd::kernels::cpu
