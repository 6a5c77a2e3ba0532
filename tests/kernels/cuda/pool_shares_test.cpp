// SPDX-License-Identifier: Apache-2.0
// What threads add of a window that they share: every element once, from any begin to any end, in whole
// windows and in parts of them.
#include "kernels/cuda/pooling/pool_shares.h"

#include <gtest/gtest.h>

#include <vector>

#include "pool_draws.h"

namespace retrograd::kernels::cuda {
namespace {

// An element that is not asked for, or is added twice, shows in the sum.
template <class Codec, bool kPacked>
void judge_runs() {
  using T = typename Codec::Type;
  constexpr uint32_t kWide = 16 / sizeof(T), kMost = 600;
  std::vector<Line> memory(kMost);
  auto* const tensor = reinterpret_cast<T*>(memory.data()) + (kPacked ? 0 : 1);
  for (const uint32_t lanes : {8u, 32u})
    for (uint32_t begin = 0; begin < 2 * kWide; ++begin)
      for (uint32_t length = 1; length < kMost; length += length < 40 ? 1 : 37) {
        const uint32_t end = begin + length;
        for (uint32_t i = 0; i < end + kWide; ++i)
          tensor[i] = Codec::store(i >= begin && i < end ? static_cast<float>(i % 11) : 29.0f);
        float sum = 0, expected = 0;
        for (uint32_t lane = 0; lane < lanes; ++lane)
          sum += add_run<Codec, kPacked>(tensor, begin, end, lane, lanes);
        for (uint32_t i = begin; i < end; ++i) expected += static_cast<float>(i % 11);
        ASSERT_EQ(sum, expected) << begin << " to " << end << " by " << lanes;
      }
}

TEST(PoolShares, RunsFromAnywhereToAnywhere) {
  judge_runs<Floats, true>();
  judge_runs<Floats, false>();
  judge_runs<Shorts, true>();
  judge_runs<Shorts, false>();
}

TEST(PoolShares, RunsOfMinusZeroAreZero) {
  alignas(16) const float zeros[] = {-0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f};
  for (uint32_t lane = 0; lane < 8; ++lane)
    EXPECT_FALSE(std::signbit(add_run<Floats, true>(zeros, 1, 9, lane, 8)));
}

template <class Codec, int kV>
void judge_windows(Pool pool, PoolDraw& draw) {
  using T = typename Codec::Type;
  pool.channels = kV * draw(1, 3);
  const auto& [d, h, w] = pool.axes;
  const auto channels = static_cast<size_t>(pool.channels);
  std::vector<Line> memory(static_cast<size_t>(d.x * h.x * w.x) * channels);
  auto* const x = reinterpret_cast<T*>(memory.data());
  const Windows windows = windows_of(pool);
  const auto value = [](size_t i) { return static_cast<float>(i * 7 % 13); };
  for (size_t i = 0; i < static_cast<size_t>(d.x * h.x * w.x) * channels; ++i) x[i] = Codec::store(value(i));
  const auto shares = static_cast<uint32_t>(draw(1, 9)), part = static_cast<uint32_t>(draw(1, 50));
  for (int od = 0; od < d.y; ++od)
    for (int oh = 0; oh < h.y; ++oh)
      for (int ow = 0; ow < w.y; ++ow) {
        const WindowPlaces places = places_in(windows, od, oh, ow);
        const auto first = static_cast<size_t>(draw(0, pool.channels / kV - 1)) * kV;
        float sums[kV] = {}, expected[kV] = {};
        for (uint32_t begin = 0; begin < places.count; begin += part)
          for (uint32_t share = 0; share < shares; ++share)
            add_window<Codec, kV>(x + first, pool.channels, begin + share, shares,
                                  std::min(begin + part, places.count), places, sums);
        const Places depths = places_of(windows.axes[0], od), rows = places_of(windows.axes[1], oh),
                     columns = places_of(windows.axes[2], ow);
        for (int64_t z = depths.begin; z < depths.end; ++z)
          for (int64_t i = rows.begin; i < rows.end; ++i)
            for (int64_t j = columns.begin; j < columns.end; ++j)
              for (size_t v = 0; v < kV; ++v)
                expected[v] += value(static_cast<size_t>((z * h.x + i) * w.x + j) * channels + first + v);
        for (int v = 0; v < kV; ++v) ASSERT_EQ(sums[v], expected[v]) << od << ' ' << oh << ' ' << ow;
      }
}

TEST(PoolShares, WindowsInParts) {
  PoolDraw draw(20261117);
  for (int trial = 0; trial < 200 && !testing::Test::HasFatalFailure(); ++trial) {
    Pool pool = draw.pool(trial, 12);
    if (trial % 4 == 0)
      for (PoolAxis& a : pool.axes) a = {a.x, 1, a.x, a.x, 0};  // dense
    judge_windows<Floats, 1>(pool, draw);
    judge_windows<Floats, 4>(pool, draw);
    judge_windows<Shorts, 8>(pool, draw);
  }
}

}  // namespace
}  // namespace retrograd::kernels::cuda
