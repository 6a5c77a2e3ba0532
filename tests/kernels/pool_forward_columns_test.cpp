// SPDX-License-Identifier: Apache-2.0
// pool_forward_columns on the CPU: the code of a block's threads, block by block, on drawn windows, layouts
// and addresses, against the formula.
#include "kernels/cuda/pooling/pool_forward_columns.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "pool_draws.h"

namespace retrograd::kernels::cuda {
namespace {

double expected(const Pool& pool, const Sizes& x, const std::vector<double>& values, int64_t image, int d,
                int h, int w, int64_t channel) {
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

template <class Codec>
void run_all(const ForwardColumns& p, const typename Codec::Type* x, typename Codec::Type* y) {
  constexpr uint32_t kThreads = 64;
  std::vector<Line> memory(static_cast<size_t>(p.bytes + 15) / 16 + 2);
  for (uint32_t block = 0; block < p.blocks; ++block) {
    std::memset(memory.data(), 0xff, memory.size() * sizeof(Line));  // NaN
    float* const staged = memory[1].values + kStripMargin;
    auto* const results = reinterpret_cast<typename Codec::Type*>(memory[1].values + p.x_floats);
    const ForwardTile t = forward_tile(p, block);
    for (uint32_t i = 0; i < kThreads; ++i) stage_forward<Codec>(p, t, i, kThreads, x, staged);
    with_walk_kind(walk_key(p), [&](auto kind) {
      for (uint32_t i = 0; i < kThreads; ++i) add<Codec, decltype(kind)>(p, t, i, kThreads, staged, results);
    });
    for (uint32_t i = 0; i < kThreads; ++i) flush_lines(t.y, i, kThreads, results, y);
    const auto* bytes = reinterpret_cast<const unsigned char*>(memory.data());
    for (size_t i = 0; i < 16; ++i) ASSERT_EQ(bytes[i], 0xff);
    for (size_t i = 16 + static_cast<size_t>(p.bytes); i < memory.size() * 16; ++i) ASSERT_EQ(bytes[i], 0xff);
  }
}

template <class Codec>
void judge(Pool pool, bool last, const ForwardCut& cut, PoolDraw& draw) {
  using T = typename Codec::Type;
  constexpr int kWide = 16 / sizeof(T);
  const auto& [d, h, w] = pool.axes;
  const int64_t images = last ? pool.batch : pool.batch * pool.channels, inner = last ? pool.channels : 1;
  const Sizes x{images, d.x, h.x, w.x, inner}, y{images, d.y, h.y, w.y, inner};
  const auto x_shift = static_cast<size_t>(draw(0, kWide - 1)),
             y_shift = static_cast<size_t>(draw(0, kWide - 1));
  const auto lines = [](size_t elements) { return (elements * sizeof(T) + 15) / 16; };
  std::vector<Line> x_memory(lines(x_shift + static_cast<size_t>(x.count()))),
      y_memory(lines(y_shift + static_cast<size_t>(y.count())));
  T* const xs = reinterpret_cast<T*>(x_memory.data()) + x_shift;
  T* const ys = reinterpret_cast<T*>(y_memory.data()) + y_shift;
  std::vector<double> values;
  for (int64_t i = 0; i < x.count(); ++i) {
    xs[i] = Codec::store(static_cast<float>(draw(-7, 7)) / 4);
    values.push_back(Codec::load(xs[i]));
  }
  for (int64_t i = 0; i < y.count(); ++i) ys[i] = static_cast<T>(77);
  pool.x.data = xs;
  pool.y.data = ys;
  const ForwardColumns p = forward_columns_of(pool, last, cut);
  run_all<Codec>(p, xs, ys);
  const double bound = sizeof(T) == 2 ? 1.0 / 1024 : 1e-5;
  int64_t at = 0;
  for (int64_t image = 0; image < images; ++image)
    for (int z = 0; z < d.y; ++z)
      for (int i = 0; i < h.y; ++i)
        for (int j = 0; j < w.y; ++j)
          for (int64_t c = 0; c < inner; ++c, ++at)
            ASSERT_NEAR(Codec::load(ys[at]), expected(pool, x, values, image, z, i, j, c), bound)
                << "result " << at;
  const auto* before = reinterpret_cast<const T*>(y_memory.data());
  for (size_t i = 0; i < y_shift; ++i) ASSERT_EQ(before[i], T{});
}

TEST(PoolForwardColumns, EveryCutIsTheFormula) {
  PoolDraw draw(7);
  int run = 0;
  for (int trial = 0; trial < 1600; ++trial) {
    Pool pool = draw.pool(trial, 15);
    if (pool.divisor_override != 0) pool.divisor_override += 8;  // 16 bits hold the quotients
    if (trial % 4 < 2) draw.common_windows(pool);
    const bool last = draw(0, trial % 4 < 2 ? 3 : 1) == 1;
    ForwardCut cut = forward_cut(pool, last);
    if (cut.planes == 0) continue;
    if (draw(0, 1) != 0) {  // one that the plan would not choose
      cut.planes = 1;
      cut.rows = static_cast<int>(draw(1, pool.axes[1].y));
      cut.columns = static_cast<int>(draw(1, pool.axes[2].y * (last ? pool.channels : 1)));
      cut.band = static_cast<int>(draw(1, cut.rows));
    }
    ++run;
    pool.x.dtype == DType::kF32 ? judge<Floats>(pool, last, cut, draw) : judge<Shorts>(pool, last, cut, draw);
    ASSERT_FALSE(HasFatalFailure()) << "trial " << trial;
  }
  EXPECT_GT(run, 1500);
}

}  // namespace
}  // namespace retrograd::kernels::cuda
