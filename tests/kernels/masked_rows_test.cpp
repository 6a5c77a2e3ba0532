// SPDX-License-Identifier: Apache-2.0
// Masked sums against plain loops that leave products out, with NaN wherever a product must be left out.
#include "kernels/cpu/layout/masked_rows.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <vector>

#include "kernels/cpu/vector_shape.h"

namespace retrograd::kernels::cpu::masked_rows_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kGuard = -1000;

bool is_there(size_t place) { return place % 7 != 3 && place % 5 != 0; }
bool is_live(size_t term, int result) { return (term + static_cast<size_t>(result)) % 3 != 1; }

// One channel of places that are there or not: values, NaN where they are not, and what says so.
struct Strip {
  explicit Strip(size_t channel, size_t channels)
      : values(channel * channels), valid(channel), pitch(static_cast<int64_t>(channel)) {
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = is_there(i % channel) ? static_cast<float>(i * 7 % 13) - 6 : kNan;
    for (size_t i = 0; i < channel; ++i) valid[i] = is_there(i) ? 1.0F : 0.0F;
  }
  std::vector<float> values, valid;
  int64_t pitch;
};

void expect_sums(int results, int64_t count, bool with_live, bool accumulate) {
  const std::array<int64_t, 3> offsets = {1, 7, 0};
  constexpr int64_t kOuter = 2;
  const int64_t reach = count + widest_shape().row_overrun(), out_stride = reach + 5;
  const Strip source(static_cast<size_t>(reach + 9), kOuter);
  std::vector<float> weights, live;
  for (int64_t o = 0; o < kOuter; ++o)
    for (size_t j = 0; j < 3; ++j)
      for (int m = 0; m < results; ++m) {
        const auto i = static_cast<size_t>(o) * 3 + j;
        const bool used = !with_live || is_live(j, m);
        weights.push_back(used ? static_cast<float>((i + static_cast<size_t>(m)) % 5) - 2 : kNan);
        if (o == 0) live.push_back(used ? 1.0F : 0.0F);
      }
  std::vector<float> out(static_cast<size_t>(results * out_stride), kGuard), want = out;
  for (int m = 0; m < results; ++m)
    for (int64_t x = 0; x < count; ++x) {
      float& sum = want[static_cast<size_t>(m * out_stride + x)];
      if (!accumulate) sum = 0;
      for (int64_t o = 0; o < kOuter; ++o)
        for (size_t j = 0; j < 3; ++j) {
          const auto place = static_cast<size_t>(offsets[j] + x);
          if (!is_there(place) || (with_live && !is_live(j, m))) continue;
          const auto weight = (static_cast<size_t>(o) * 3 + j) * static_cast<size_t>(results);
          sum += source.values[static_cast<size_t>(o * source.pitch) + place] *
                 weights[weight + static_cast<size_t>(m)];
        }
    }
  masked_row_sums({.source = source.values.data(),
                   .offsets = offsets.data(),
                   .inner = 3,
                   .outer = kOuter,
                   .outer_stride = source.pitch,
                   .weights = weights.data(),
                   .weight_step = results,
                   .results = results,
                   .out = out.data(),
                   .out_stride = out_stride,
                   .count = count,
                   .accumulate = accumulate},
                  source.valid.data(), with_live ? live.data() : nullptr);
  for (int m = 0; m < results; ++m)
    for (int64_t x = 0; x < out_stride; ++x) {
      if (x >= count && x < reach - 1) continue;  // may be written, holds nothing
      EXPECT_EQ(out[static_cast<size_t>(m * out_stride + x)], want[static_cast<size_t>(m * out_stride + x)])
          << "result " << m << " of " << results << ", x " << x << " of " << count;
    }
}

TEST(MaskedRowSums, EveryNumberOfResultsAndEveryTail) {
  for (int results = 1; results <= widest_shape().row_results(); ++results)
    for (int64_t count = 1; count <= 3 * widest_shape().row_overrun() + 2; ++count)
      expect_sums(results, count, count % 3 == 0, count % 2 == 0);
}

void expect_dots(int channels, int64_t taps, int64_t rows, int64_t count, bool y_has_gaps) {
  const int64_t lanes = vector_shape().dot_lanes(), y_row = count + 2, y_stride = rows * y_row + 1,
                source_row = count + 5;
  const Strip x(static_cast<size_t>(rows * source_row + 3 * taps + lanes), 2);
  // Nothing of y beyond the last row may be read: under a sanitizer this would show.
  std::vector<float> y(static_cast<size_t>((channels - 1) * y_stride + (rows - 1) * y_row + count));
  std::vector<float> y_valid(static_cast<size_t>((rows - 1) * y_row + count));
  const auto y_there = [&](int64_t place) { return !y_has_gaps || place % 4 != 2; };
  for (int64_t o = 0; o < channels; ++o)
    for (size_t i = 0; i < y_valid.size(); ++i) {
      const bool there = y_there(static_cast<int64_t>(i));
      y_valid[i] = there ? 1.0F : 0.0F;
      y[static_cast<size_t>(o * y_stride) + i] = there ? static_cast<float>(i * 5 % 11) - 5 : kNan;
    }
  std::vector<int64_t> offsets;
  for (int64_t channel = 0; channel < 2; ++channel)
    for (int64_t t = 0; t < taps; ++t) offsets.push_back(channel * x.pitch + t * 3);
  const int64_t terms = 2 * taps;
  std::vector<float> room(static_cast<size_t>(channels * terms * lanes + 32), kGuard);
  float* sums = room.data() + (-reinterpret_cast<uintptr_t>(room.data()) / sizeof(float) & 15U);
  masked_row_dots(
      {.y = y.data(),
       .y_stride = y_stride,
       .y_row = y_row,
       .channels = channels,
       .source = x.values.data(),
       .source_row = source_row,
       .offsets = offsets.data(),
       .terms = terms,
       .rows = rows,
       .count = count,
       .sums = sums},
      {.valid = x.valid.data(), .valid_terms = taps, .y_valid = y_has_gaps ? y_valid.data() : nullptr});
  std::vector<float> totals(static_cast<size_t>(channels * terms));
  lane_totals(sums, channels * terms, totals.data());
  for (int64_t o = 0; o < channels; ++o)
    for (int64_t t = 0; t < terms; ++t) {
      float want = 0;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0; i < count; ++i) {
          const auto place = static_cast<size_t>(offsets[static_cast<size_t>(t % taps)] + r * source_row + i);
          if (!is_there(place) || !y_there(r * y_row + i)) continue;
          want += y[static_cast<size_t>(o * y_stride + r * y_row + i)] *
                  x.values[static_cast<size_t>(t / taps * x.pitch) + place];
        }
      EXPECT_EQ(totals[static_cast<size_t>(o * terms + t)], want)
          << "channel " << o << " of " << channels << ", term " << t << " of " << terms << ", " << rows
          << " rows of " << count;
    }
  EXPECT_EQ(sums[channels * terms * lanes], kGuard);
}

TEST(MaskedRowDots, EveryTileAndEveryTail) {
  for (int channels = 1; channels <= vector_shape().dot_channels(); ++channels)
    for (int64_t taps = 1; taps <= 5; ++taps)
      for (int64_t count = 1; count <= 2 * vector_shape().dot_lanes() + 1; ++count)
        expect_dots(channels, taps, 1 + count % 3, count, count % 2 == 0);
}

}  // namespace
}  // namespace retrograd::kernels::cpu::masked_rows_test
