// SPDX-License-Identifier: Apache-2.0
// pool_columns on the CPU: the code of a block's threads, block by block, on drawn windows, layouts and
// addresses, against the formula.
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

template <class Codec, class Kind>
void run_block(const PoolColumns& p, uint32_t block, const typename Codec::Type* y, typename Codec::Type* x,
               float* memory) {
  constexpr uint32_t kThreads = 64;
  const PoolColumnsTile t = columns_tile(p, block);
  auto* const results = reinterpret_cast<typename Codec::Type*>(memory + p.y_floats);
  float* const staged = memory + kStripMargin;
  for (uint32_t i = 0; i < kThreads; ++i) stage<Codec>(p, t, i, kThreads, y, staged);
  for (uint32_t i = 0; i < kThreads && p.divide; ++i) divide(p, t, i, kThreads, staged);
  for (uint32_t i = 0; i < kThreads; ++i) walk<Codec, Kind>(p, t, i, kThreads, staged, results);
  for (uint32_t i = 0; i < kThreads; ++i) flush(p, t, i, kThreads, results, x);
}

template <class Codec>
void run_all(const PoolColumns& p, const typename Codec::Type* y, typename Codec::Type* x) {
  std::vector<Line> memory(static_cast<size_t>(p.bytes + 15) / 16 + 2);
  for (uint32_t block = 0; block < p.blocks; ++block) {
    std::memset(memory.data(), 0xff, memory.size() * sizeof(Line));  // NaN
    float* const floats = memory[1].values;
    with_walk_kind(walk_key(p), [&](auto kind) { run_block<Codec, decltype(kind)>(p, block, y, x, floats); });
    const auto* bytes = reinterpret_cast<const unsigned char*>(memory.data());
    for (size_t i = 0; i < 16; ++i) ASSERT_EQ(bytes[i], 0xff);
    for (size_t i = 16 + static_cast<size_t>(p.bytes); i < memory.size() * 16; ++i) ASSERT_EQ(bytes[i], 0xff);
  }
}

template <class Codec>
void judge(Pool pool, bool last, const ColumnsCut* cut, std::mt19937& random) {
  using T = typename Codec::Type;
  constexpr size_t kWide = 16 / sizeof(T);
  const auto& [d, h, w] = pool.axes;
  const int64_t images = last ? pool.batch : pool.batch * pool.channels, inner = last ? pool.channels : 1;
  const Sizes x{images, d.x, h.x, w.x, inner}, y{images, d.y, h.y, w.y, inner};
  const size_t x_shift = cut != nullptr ? random() % kWide : 0,
               y_shift = cut != nullptr ? random() % kWide : 0;
  const auto lines = [](size_t elements) { return (elements * sizeof(T) + 15) / 16; };
  std::vector<Line> x_memory(lines(x_shift + static_cast<size_t>(x.count()))),
      y_memory(lines(y_shift + static_cast<size_t>(y.count())));
  T* const xs = reinterpret_cast<T*>(x_memory.data()) + x_shift;
  T* const ys = reinterpret_cast<T*>(y_memory.data()) + y_shift;
  std::vector<double> values;
  for (int64_t i = 0; i < y.count(); ++i) {
    ys[i] = Codec::store(static_cast<float>(static_cast<int>(random() % 15) - 7) / 2);
    values.push_back(Codec::load(ys[i]));
  }
  for (int64_t i = 0; i < x.count(); ++i) xs[i] = static_cast<T>(77);
  pool.x.data = xs;
  pool.y.data = ys;
  if (cut != nullptr) {
    const PoolColumns p = columns_of(pool, last, *cut);
    ASSERT_LE(p.bytes, kColumnsBytes);
    run_all<Codec>(p, ys, xs);
  } else {
    const PoolVectors p = vectors_of(pool);
    with_vectors_kind(p, [&](auto reach, auto exact, auto deep) {
      for (uint32_t i = 0; i < p.threads + 3; ++i)
        walk_vectors<Codec, decltype(reach)::value, decltype(exact)::value, decltype(deep)::value>(p, i, ys,
                                                                                                   xs);
    });
  }
  const std::vector<double> sums = expected(pool, x, y, values);
  const double bound = sizeof(T) == 2 ? 1.0 / 1024 : 1e-5;
  for (int64_t i = 0; i < x.count(); ++i)
    ASSERT_NEAR(Codec::load(xs[i]), sums[static_cast<size_t>(i)], bound) << "place " << i;
  const auto* before = reinterpret_cast<const T*>(x_memory.data());
  for (size_t i = 0; i < x_shift; ++i) ASSERT_EQ(before[i], T{});
}

TEST(PoolVectors, EveryWalkIsTheFormula) {
  PoolDraw draw(6);
  for (int trial = 0; trial < 500; ++trial) {
    Pool pool = draw.pool(trial, 8);
    const bool wide = pool.x.dtype == DType::kF32;
    pool.channels = draw(1, 3) * (wide ? 4 : 8);
    ASSERT_GT(vectors_cut(pool).band, 0);
    wide ? judge<Floats>(pool, true, nullptr, draw.random) : judge<Shorts>(pool, true, nullptr, draw.random);
    ASSERT_FALSE(HasFatalFailure()) << "trial " << trial;
  }
}

TEST(PoolColumns, EveryCutIsTheFormula) {
  PoolDraw draw(5);
  int tiled = 0, several = 0, deep = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    Pool pool = draw.pool(trial, 15);
    if (trial % 4 < 2) draw.common_windows(pool);
    const bool last = draw(0, trial % 4 < 2 ? 3 : 1) == 1, wide = pool.x.dtype == DType::kF32;
    ColumnsCut cut = columns_cut(pool, last);
    if (cut.planes == 0) continue;
    if (draw(0, 1) != 0) {  // one that the plan would not choose
      const int64_t line = pool.axes[2].x * (last ? pool.channels : 1);
      cut.planes = 1;
      cut.rows = static_cast<int>(draw(1, pool.axes[1].x));
      cut.columns = static_cast<int>(draw(1, line));
      cut.band = static_cast<int>(draw(1, cut.rows));
    }
    tiled += cut.columns < pool.axes[2].x ? 1 : 0;
    several += cut.planes > 1 ? 1 : 0;
    deep += pool.axes[0].kernel > 1 ? 1 : 0;
    wide ? judge<Floats>(pool, last, &cut, draw.random) : judge<Shorts>(pool, last, &cut, draw.random);
    ASSERT_FALSE(HasFatalFailure()) << "trial " << trial;
  }
  EXPECT_GT(tiled, 100);
  EXPECT_GT(several, 100);
  EXPECT_GT(deep, 100);
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
    return columns_cut(pool, false);
  };
  // Small planes go several to a block, large ones in bands of whole lines.
  EXPECT_GT(cut(65536, 7, 3, 1, 1, DType::kF16).planes, 16);
  const ColumnsCut large = cut(112, 510, 7, 2, 3, DType::kF16);
  EXPECT_EQ(large.planes, 1);
  EXPECT_EQ(large.columns, 510);
  EXPECT_GE(large.rows, 8);
  // Too many windows at a place; lines that are too long, which tiles cut.
  EXPECT_EQ(cut(1, 100, 40, 2, 0, DType::kF32).planes, 0);
  EXPECT_LT(cut(1, 20000, 3, 1, 1, DType::kF32).columns, 2000);
}

}  // namespace
}  // namespace retrograd::kernels::cuda
