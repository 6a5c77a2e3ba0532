// SPDX-License-Identifier: Apache-2.0
// Every number of results, and rows that end in every block of vectors, against plain loops.
#include "kernels/cpu/few_channels/row_sums.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "kernels/cpu/vector_shape.h"

namespace retrograd::kernels::cpu::row_sums_test {
namespace {

constexpr float kGuard = -1000;

void expect_sums(int results, int64_t count, int64_t step, bool accumulate, bool starts = false) {
  std::vector<float> start;
  for (int i = 0; i < 2 * results; ++i) start.push_back(static_cast<float>(i) - 3);
  const std::array<int64_t, 3> offsets = {1, 7, 0};
  constexpr int64_t kOuter = 2;
  const int64_t reach = count + widest_shape().row_overrun(), outer_stride = reach + 9,
                out_stride = reach + 5;
  std::vector<float> source(static_cast<size_t>(kOuter * outer_stride + 8)), weights;
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i * 7 % 13) - 6;
  for (int64_t i = 0; i < kOuter * 3 * step + results; ++i) weights.push_back(static_cast<float>(i % 5) - 2);
  std::vector<float> out(static_cast<size_t>(results * out_stride), kGuard), want = out;
  for (int m = 0; m < results; ++m)
    for (int64_t x = 0; x < count; ++x) {
      float& sum = want[static_cast<size_t>(m * out_stride + x)];
      if (!accumulate) sum = starts ? start[static_cast<size_t>(2 * m)] : 0;
      for (int64_t o = 0; o < kOuter; ++o)
        for (size_t j = 0; j < 3; ++j)
          sum +=
              source[static_cast<size_t>(o * outer_stride + offsets[j] + x)] *
              weights[(static_cast<size_t>(o) * 3 + j) * static_cast<size_t>(step) + static_cast<size_t>(m)];
    }
  row_sums({.source = source.data(),
            .offsets = offsets.data(),
            .inner = 3,
            .outer = kOuter,
            .outer_stride = outer_stride,
            .weights = weights.data(),
            .weight_step = step,
            .results = results,
            .out = out.data(),
            .out_stride = out_stride,
            .count = count,
            .accumulate = accumulate,
            .start = starts ? start.data() : nullptr,
            .start_step = 2});
  for (int m = 0; m < results; ++m)
    for (int64_t x = 0; x < out_stride; ++x) {
      if (x >= count && x < reach - 1) continue;  // may be written, holds nothing
      EXPECT_EQ(out[static_cast<size_t>(m * out_stride + x)], want[static_cast<size_t>(m * out_stride + x)])
          << "result " << m << " of " << results << ", x " << x << " of " << count;
    }
}

TEST(RowSums, EveryNumberOfResultsAndEveryTail) {
  for (int results = 1; results <= widest_shape().row_results(); ++results)
    for (int64_t count = 1; count <= 2 * widest_shape().row_positions(results) + 3; ++count)
      expect_sums(results, count, count % 3 == 0 ? results + 2 : results, count % 2 == 0);
}

TEST(RowSums, SumsBeginWithWhatIsGiven) {
  for (int results = 1; results <= widest_shape().row_results(); ++results)
    for (int64_t count = 1; count <= 40; count += 3)
      expect_sums(results, count, results, count % 2 == 0, true);
}

// A tensor may hold the same weights for every term.
TEST(RowSums, StepsOfZeroAreTaken) {
  for (int results = 1; results <= widest_shape().row_results(); ++results)
    expect_sums(results, 19, 0, false);
}

}  // namespace
}  // namespace retrograd::kernels::cpu::row_sums_test
