// SPDX-License-Identifier: Apache-2.0
// Depthwise kernels with vectors along W against plain loops: every number of tap rows, rows that are and are
// not whole tiles, rows of less and more than a vector, borders of any width, pairs and odd numbers of
// planes.
#include "kernels/cpu/depthwise/depthwise_wide.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "kernels/cpu/depthwise/depthwise_wide_dots.h"
#include "kernels/cpu/vector_shape.h"

namespace retrograd::kernels::cpu::depthwise_wide_test {
namespace {

constexpr float kUntouched = -77;

struct Case {
  int64_t planes, rows, source_rows, first_row, tap_rows, width, source_width;
  std::vector<int64_t> offsets;
};

// Small integers: every sum is exact.
std::vector<float> integers(std::mt19937& random, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) v = static_cast<float>(static_cast<int>(random() % 7) - 3);
  return values;
}

Case random_case(std::mt19937& random, int64_t tap_rows, bool same) {
  const auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint32_t>(high - low + 1));
  };
  Case c{.planes = pick(1, 3),
         .rows = same ? pick(1, 35) : pick(1, 20),
         .source_rows = 0,
         .first_row = same ? -(tap_rows - 1) / 2 : pick(-tap_rows, 3),
         .tap_rows = tap_rows,
         .width = pick(0, 3) == 0 ? 7 : pick(1, 40),
         .source_width = 0,
         .offsets = {}};
  c.source_rows = same ? c.rows : pick(1, 24);
  c.source_width = same ? c.width : pick(1, 45);
  const int64_t taps = pick(1, 5), first = pick(-6, 3), step = pick(1, 3);
  for (int64_t t = 0; t < taps; ++t) c.offsets.push_back(first + t * step);
  return c;
}

bool inside(int64_t at, int64_t size) { return at >= 0 && at < size; }

float at(const std::vector<float>& v, int64_t i) { return v[static_cast<size_t>(i)]; }

void check_gather(const Case& c, int phases, std::mt19937& random) {
  const auto taps = static_cast<int64_t>(c.offsets.size());
  const auto source = integers(random, c.planes * c.source_rows * c.source_width);
  const auto weights = integers(random, c.planes * taps * c.tap_rows);
  const int64_t out_row = c.width + 3, out_plane = c.rows * out_row;
  std::vector<float> out(static_cast<size_t>(c.planes * out_plane), kUntouched);
  DepthwiseWide r;
  r.lanes = vector_shape().wide_lanes((c.width + phases - 1) / phases);
  r.planes = c.planes;
  r.source = source.data();
  r.source_plane = c.source_rows * c.source_width;
  r.weights = weights.data();
  r.weight_plane = taps * c.tap_rows;
  r.out = out.data();
  r.out_plane = out_plane;
  r.rows = c.rows;
  r.tap_rows = c.tap_rows;
  r.first_row = c.first_row;
  r.source_rows = c.source_rows;
  r.source_row = c.source_width;
  r.out_row = out_row;
  r.width = c.width;
  r.source_width = c.source_width;
  r.offsets = c.offsets.data();
  r.phases = phases;
  r.taps[0] = phases == 1 ? taps : taps / 2;
  r.taps[1] = taps - r.taps[0];
  const auto start = integers(random, c.planes);
  if (c.rows % 2 == 0) r.start = start.data();
  depthwise_wide(r);
  for (int64_t plane = 0; plane < c.planes; ++plane)
    for (int64_t row = 0; row < c.rows; ++row)
      for (int64_t k = 0; k < out_row; ++k) {
        float expected = kUntouched;
        if (k < c.width) {
          expected = r.start != nullptr ? at(start, plane) : 0;
          const int64_t first = k % phases == 0 ? 0 : r.taps[0];
          for (int64_t t = first; t < first + r.taps[k % phases]; ++t)
            for (int64_t h = 0; h < c.tap_rows; ++h) {
              const int64_t y = row + c.first_row + h, x = k / phases + c.offsets[static_cast<size_t>(t)];
              if (!inside(y, c.source_rows) || !inside(x, c.source_width)) continue;
              expected += at(weights, (plane * taps + t) * c.tap_rows + h) *
                          at(source, (plane * c.source_rows + y) * c.source_width + x);
            }
        }
        ASSERT_EQ(at(out, plane * out_plane + row * out_row + k), expected)
            << "plane " << plane << " row " << row << " place " << k;
      }
}

void check_dots(const Case& c, std::mt19937& random) {
  const auto taps = static_cast<int64_t>(c.offsets.size());
  const auto x = integers(random, c.planes * c.source_rows * c.source_width);
  const auto y = integers(random, c.planes * c.rows * c.width);
  const int64_t lanes = vector_shape().wide_lanes(c.width), count = taps * c.tap_rows;
  // Rows that could share vectors need not.
  const bool pairs = vector_shape().wide_planes(lanes, c.tap_rows) == 2 && random() % 3 > 0;
  const int64_t sum_plane = count * lanes * (pairs ? 2 : 1);
  std::vector<float> memory(static_cast<size_t>(c.planes * sum_plane + 16), 0.0F);
  auto* sums = memory.data();
  while (reinterpret_cast<uintptr_t>(sums) % 64 != 0) ++sums;
  DepthwiseWideDots r;
  r.lanes = lanes;
  r.planes = c.planes;
  r.x = x.data();
  r.x_plane = c.source_rows * c.source_width;
  r.y = y.data();
  r.y_plane = c.rows * c.width;
  r.sums = sums;
  r.sum_plane = sum_plane;
  r.pairs = pairs;
  r.rows = c.rows;
  r.tap_rows = c.tap_rows;
  r.first_row = c.first_row;
  r.x_rows = c.source_rows;
  r.x_row = c.source_width;
  r.y_row = c.width;
  r.width = c.width;
  r.x_width = c.source_width;
  r.offsets = c.offsets.data();
  r.taps = taps;
  depthwise_wide_dots(r);
  std::vector<float> totals(static_cast<size_t>(c.planes * count));
  add_wide_lanes(sums, lanes, pairs, c.planes, count, totals.data());
  for (int64_t plane = 0; plane < c.planes; ++plane)
    for (int64_t t = 0; t < taps; ++t)
      for (int64_t h = 0; h < c.tap_rows; ++h) {
        float expected = 0;
        for (int64_t row = 0; row < c.rows; ++row)
          for (int64_t k = 0; k < c.width; ++k) {
            const int64_t v = row + c.first_row + h, u = k + c.offsets[static_cast<size_t>(t)];
            if (!inside(v, c.source_rows) || !inside(u, c.source_width)) continue;
            expected += at(y, (plane * c.rows + row) * c.width + k) *
                        at(x, (plane * c.source_rows + v) * c.source_width + u);
          }
        ASSERT_EQ(at(totals, (plane * taps + t) * c.tap_rows + h), expected)
            << "plane " << plane << " tap " << t << " row of taps " << h;
      }
}

class DepthwiseWideTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (vector_shape().wide_lanes(16) == 0) GTEST_SKIP() << "no masked loads";
  }
};

TEST_P(DepthwiseWideTest, Gathers) {
  std::mt19937 random(static_cast<uint32_t>(GetParam()));
  for (int i = 0; i < 200 && !HasFatalFailure(); ++i) {
    check_gather(random_case(random, GetParam(), i % 2 == 0), 1, random);
    if (GetParam() <= kMostWideTapRowsOfTwo)
      check_gather(random_case(random, GetParam(), i % 2 == 0), 2, random);
  }
}

TEST_P(DepthwiseWideTest, Dots) {
  std::mt19937 random(static_cast<uint32_t>(100 + GetParam()));
  for (int i = 0; i < 200 && !HasFatalFailure(); ++i)
    check_dots(random_case(random, GetParam(), i % 2 == 0), random);
}
INSTANTIATE_TEST_SUITE_P(TapRows, DepthwiseWideTest, testing::Range(1, 8));

}  // namespace
}  // namespace retrograd::kernels::cpu::depthwise_wide_test
