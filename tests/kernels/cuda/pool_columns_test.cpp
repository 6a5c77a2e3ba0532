// SPDX-License-Identifier: Apache-2.0
// pool_columns and pool_vectors on the CPU: the code of a block's threads, block by block, on drawn windows,
// layouts and addresses, against the formula.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/cuda/pooling/pool_columns_block.h"
#include "kernels/cuda/pooling/pool_vectors_walk.h"
#include "pool_draws.h"

namespace retrograd::kernels::cuda {
namespace {

// Each y to all places of its window.
std::vector<double> expected(const Pool& pool, const Sizes& x, const Sizes& y,
                             const std::vector<double>& from) {
  std::vector<double> sums(static_cast<size_t>(x.count()), 0.0);
  const Windows windows = windows_of(pool);
  size_t at = 0;
  for (int64_t n = 0; n < y.images; ++n)
    for (int d = 0; d < y.depth; ++d)
      for (int h = 0; h < y.height; ++h)
        for (int w = 0; w < y.width; ++w)
          for (int64_t c = 0; c < y.channels; ++c) {
            const int places[3] = {d, h, w};
            double divisor = static_cast<double>(pool.divisor_override);
            Places held[3];
            for (int i = 0; i < 3; ++i) held[i] = places_of(windows.axes[i], places[i]);
            if (pool.divisor_override == 0) {
              divisor = 1;
              for (int i = 0; i < 3; ++i) divisor *= count_of(windows.axes[i], places[i]);
            }
            const double value = from[at++] / divisor;
            for (int64_t i = held[0].begin; i < held[0].end; ++i)
              for (int64_t j = held[1].begin; j < held[1].end; ++j)
                for (int64_t k = held[2].begin; k < held[2].end; ++k)
                  sums[static_cast<size_t>((((n * x.depth + i) * x.height + j) * x.width + k) * x.channels +
                                           c)] += value;
          }
  return sums;
}

double forward_result(const Pool& pool, const Sizes& x, const std::vector<double>& values, int64_t image,
                      int d, int h, int w, int64_t channel) {
  const Windows windows = windows_of(pool);
  const Places depths = places_of(windows.axes[0], d), rows = places_of(windows.axes[1], h),
               columns = places_of(windows.axes[2], w);
  double sum = 0;
  for (int64_t z = depths.begin; z < depths.end; ++z)
    for (int64_t i = rows.begin; i < rows.end; ++i)
      for (int64_t j = columns.begin; j < columns.end; ++j)
        sum += values[static_cast<size_t>(
            (((image * x.depth + z) * x.height + i) * x.width + j) * x.channels + channel)];
  const int counted =
      count_of(windows.axes[0], d) * count_of(windows.axes[1], h) * count_of(windows.axes[2], w);
  return sum / static_cast<double>(pool.divisor_override != 0 ? pool.divisor_override : counted);
}

// Each result from the places of its window.
std::vector<double> expected_forward(const Pool& pool, const Sizes& x, const Sizes& y,
                                     const std::vector<double>& from) {
  std::vector<double> sums;
  for (int64_t image = 0; image < y.images; ++image)
    for (int d = 0; d < y.depth; ++d)
      for (int h = 0; h < y.height; ++h)
        for (int w = 0; w < y.width; ++w)
          for (int64_t c = 0; c < y.channels; ++c)
            sums.push_back(forward_result(pool, x, from, image, d, h, w, c));
  return sums;
}

template <class Codec, class Kind>
void run_block(const PoolColumns& p, uint32_t block, const typename Codec::Type* source,
               typename Codec::Type* result, unsigned char* memory) {
  using T = typename Codec::Type;
  constexpr uint32_t kThreads = 64;
  constexpr bool kForward = Kind::kForward;
  const ColumnsTile t = columns_tile<kForward>(p, block);
  T* const staged = reinterpret_cast<T*>(memory) + kStripMargin;
  auto* const sums = reinterpret_cast<float*>(memory + p.shared.sums_at);
  auto* const results = reinterpret_cast<T*>(memory + p.shared.results_at);
  const auto every = [](auto&& phase) {
    for (uint32_t i = 0; i < kThreads; ++i) phase(i);
  };
  every([&](uint32_t i) { stage(source_runs(p, t), i, kThreads, source, staged); });
  if constexpr (Kind::kIsStrip) {
    float* const table = sums + kStripMargin;
    if (!Kind::kPlain && p.divide)
      every([&](uint32_t i) { reciprocals<Codec, kForward>(p, t, i, kThreads, table); });
    every([&](uint32_t i) { walk<Codec, Kind>(p, t, i, kThreads, staged, table, results); });
  } else {
    every([&](uint32_t i) { add_down<Codec, kForward>(p, t, i, kThreads, staged, sums); });
    every([&](uint32_t i) { add_across<Codec, kForward>(p, t, i, kThreads, sums, results); });
  }
  every([&](uint32_t i) { flush_runs(result_runs(p, t), i, kThreads, results, result); });
}

template <class Codec>
void run_all(const PoolColumns& p, bool forward, const typename Codec::Type* source,
             typename Codec::Type* result) {
  std::vector<Line> memory(static_cast<size_t>(p.shared.bytes + 15) / 16 + 2);
  auto* const bytes = reinterpret_cast<unsigned char*>(memory.data());
  for (uint32_t block = 0; block < p.blocks; ++block) {
    std::memset(bytes, 0xff, memory.size() * sizeof(Line));  // NaN
    with_kind<sizeof(typename Codec::Type)>(window_key(p, forward), [&](auto kind) {
      run_block<Codec, decltype(kind)>(p, block, source, result, bytes + 16);
    });
    for (size_t i = 0; i < 16; ++i) ASSERT_EQ(bytes[i], 0xff);
    for (size_t i = 16 + static_cast<size_t>(p.shared.bytes); i < memory.size() * 16; ++i)
      ASSERT_EQ(bytes[i], 0xff);
  }
}

// cut: of pool_columns; none: pool_vectors.
template <class Codec>
void judge(Pool pool, bool last, bool forward, const ColumnsCut* cut, std::mt19937& random) {
  using T = typename Codec::Type;
  constexpr size_t kWide = 16 / sizeof(T);
  const auto& [d, h, w] = pool.axes;
  const int64_t images = last ? pool.batch : pool.batch * pool.channels, inner = last ? pool.channels : 1;
  const Sizes x{images, d.x, h.x, w.x, inner}, y{images, d.y, h.y, w.y, inner};
  const Sizes &from = forward ? x : y, &to = forward ? y : x;
  const size_t s_shift = cut != nullptr ? random() % kWide : 0,
               r_shift = cut != nullptr ? random() % kWide : 0;
  const auto lines = [](size_t elements) { return (elements * sizeof(T) + 15) / 16; };
  std::vector<Line> s_memory(lines(s_shift + static_cast<size_t>(from.count()))),
      r_memory(lines(r_shift + static_cast<size_t>(to.count())));
  T* const sources = reinterpret_cast<T*>(s_memory.data()) + s_shift;
  T* const results = reinterpret_cast<T*>(r_memory.data()) + r_shift;
  std::vector<double> values;
  for (int64_t i = 0; i < from.count(); ++i) {
    sources[i] = Codec::store(static_cast<float>(static_cast<int>(random() % 15) - 7) / (forward ? 4 : 2));
    values.push_back(Codec::load(sources[i]));
  }
  for (int64_t i = 0; i < to.count(); ++i) results[i] = static_cast<T>(77);
  pool.x.data = forward ? sources : results;
  pool.y.data = forward ? results : sources;
  if (cut != nullptr) {
    const PoolColumns p = columns_of(pool, last, forward, *cut);
    ASSERT_LE(p.shared.bytes, kColumnsBytes);
    run_all<Codec>(p, forward, sources, results);
  } else {
    const PoolVectors p = vectors_of(pool, forward);
    with_vectors_kind(p, [&](auto taps, auto reach) {
      constexpr int kTaps = decltype(taps)::value, kReach = decltype(reach)::value;
      for (uint32_t i = 0; i < p.threads + 3; ++i)
        forward ? walk_vectors<Codec, true, kTaps, kReach>(p, i, sources, results)
                : walk_vectors<Codec, false, kTaps, kReach>(p, i, sources, results);
    });
  }
  const std::vector<double> sums =
      forward ? expected_forward(pool, x, y, values) : expected(pool, x, y, values);
  const double bound = sizeof(T) == 2 ? 1.0 / 1024 : 1e-5;
  for (int64_t i = 0; i < to.count(); ++i)
    ASSERT_NEAR(Codec::load(results[i]), sums[static_cast<size_t>(i)], bound) << "place " << i;
  const auto* before = reinterpret_cast<const T*>(r_memory.data());
  for (size_t i = 0; i < r_shift; ++i) ASSERT_EQ(before[i], T{});
}

TEST(PoolVectors, EveryWalkIsTheFormula) {
  PoolDraw draw(6);
  int flat = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    Pool pool = draw.pool(trial, 8);
    const bool wide = pool.x.dtype == DType::kF32, forward = draw(0, 1) != 0;
    if (forward && pool.divisor_override != 0) pool.divisor_override += 8;  // 16 bits hold the quotients
    if (draw(0, 3) == 0) {
      pool.axes[0] = pool.axes[1] = {2, 2, 1, 1, 0};
      ++flat;
    }
    pool.channels = draw(1, 3) * (wide ? 4 : 8);
    ASSERT_GT(vectors_cut(walked_down(pool), forward).band, 0);
    wide ? judge<Floats>(pool, true, forward, nullptr, draw.random)
         : judge<Shorts>(pool, true, forward, nullptr, draw.random);
    ASSERT_FALSE(HasFatalFailure()) << "trial " << trial << (forward ? " forward" : " backward");
  }
  EXPECT_GT(flat, 100);
}

TEST(PoolColumns, EveryCutIsTheFormula) {
  PoolDraw draw(5);
  int tiled = 0, several = 0, deep = 0, run = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    Pool pool = draw.pool(trial, 15);
    const bool forward = draw(0, 1) != 0;
    if (forward && pool.divisor_override != 0) pool.divisor_override += 8;  // 16 bits hold the quotients
    if (trial % 4 < 2) draw.common_windows(pool);
    const bool last = draw(0, trial % 4 < 2 ? 3 : 1) == 1, wide = pool.x.dtype == DType::kF32;
    ColumnsCut cut = columns_cut(pool, last, forward);
    if (cut.planes == 0) continue;
    if (draw(0, 1) != 0) {  // one that the plan would not choose
      const int64_t width = forward ? pool.axes[2].y : pool.axes[2].x,
                    rows = forward ? pool.axes[1].y : pool.axes[1].x;
      cut.planes = pool.axes[0].kernel > 1 ? static_cast<int>(draw(1, 3)) : 1;
      cut.steps = static_cast<int>(draw(1, rows));
      cut.strips = static_cast<int>(draw(1, width * (last ? pool.channels : 1)));
      cut.band = static_cast<int>(draw(1, cut.steps));
      if (columns_of(pool, last, forward, cut).shared.bytes > kColumnsBytes) continue;
    }
    ++run;
    tiled += cut.steps < pool.axes[1].x ? 1 : 0;
    several += cut.planes > 1 ? 1 : 0;
    deep += pool.axes[0].kernel > 1 ? 1 : 0;
    wide ? judge<Floats>(pool, last, forward, &cut, draw.random)
         : judge<Shorts>(pool, last, forward, &cut, draw.random);
    ASSERT_FALSE(HasFatalFailure()) << "trial " << trial << (forward ? " forward" : " backward");
  }
  EXPECT_GT(run, 3500);
  EXPECT_GT(tiled, 200);
  EXPECT_GT(several, 200);
  EXPECT_GT(deep, 200);
}

TEST(PoolColumns, TilesOfNetworks) {
  const auto cut = [](int64_t planes, int64_t x, int64_t kernel, int64_t stride, int64_t pad, DType type) {
    Pool pool{};
    pool.batch = 1;
    pool.channels = planes;
    const PoolAxis a{x, (x + 2 * pad - kernel) / stride + 1, kernel, stride, pad};
    pool.axes[0] = {1, 1, 1, 1, 0};
    pool.axes[1] = pool.axes[2] = a;
    pool.count_include_pad = true;
    pool.x.dtype = pool.y.dtype = type;
    return columns_cut(pool, false, false);
  };
  // Small planes go several to a block, large ones in bands of whole lines.
  EXPECT_GT(cut(65536, 7, 3, 1, 1, DType::kF16).planes, 16);
  const ColumnsCut large = cut(112, 510, 7, 2, 3, DType::kF16);
  EXPECT_EQ(large.planes, 1);
  EXPECT_GE(large.strips, 510 / 6);
  EXPECT_GE(large.steps, 4);
  // Lines that fit are not cut: each end of a run is written by elements.
  EXPECT_GE(cut(456, 204, 7, 7, 0, DType::kF16).strips, 204 / 21);
  // Lines that are too long are cut.
  EXPECT_LT(cut(1, 20000, 3, 1, 1, DType::kF32).strips, 2000 / 7);
}

}  // namespace
}  // namespace retrograd::kernels::cuda
