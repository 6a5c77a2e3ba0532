// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of planes through shared memory: the plans, and what blocks and threads do, run here
// one after the other against plain sums. Shared memory that nobody has staged is NaN.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/cuda/depthwise_windows/staged_item.h"

namespace retrograd::kernels::cuda::depthwise_staged_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr unsigned kDraws = 150;

struct Problem {
  Conv conv{};
  bool forward = true;
  std::vector<float> source, weights;
  int64_t results = 0;
  int phase = 0;
  std::string text;
};

int64_t places(const Conv& c, bool of_x) {
  int64_t count = 1;
  for (const Axis& a : c.axes) count *= of_x ? a.x : a.y;
  return count;
}

Problem draw(unsigned seed) {
  std::mt19937 engine(seed);
  const auto of = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  };
  Problem problem;
  Conv& c = problem.conv;
  problem.forward = of(0, 1) == 0;
  c.batch = of(1, 3), c.groups = of(1, 4);
  c.x_channels = c.y_channels = 1;
  (of(0, 1) == 0 ? c.x_channels : c.y_channels) = of(1, 4);
  c.axes[0] = {1, 1, 1, 1, 1, 0};
  problem.text = "seed " + std::to_string(seed) + (problem.forward ? " forward" : " grad_input") +
                 " n=" + std::to_string(c.batch) + " g=" + std::to_string(c.groups) +
                 " xs=" + std::to_string(c.x_channels) + " ys=" + std::to_string(c.y_channels);
  const bool is_deep = of(0, 2) == 0, is_wide = of(0, 5) == 0, is_tall = of(0, 5) == 0;
  for (int i = is_deep ? 0 : 1; i < 3; ++i) {
    Axis& a = c.axes[i];
    do {
      a.x = i == 0 ? of(1, 6) : (i == 2 ? is_wide : is_tall) ? of(60, 400) : of(1, 30);
      a.kernel = of(0, 9) == 0 ? of(5, 9) : of(1, 5);
      a.stride = of(0, 1) == 0 ? 1 : of(2, 5);
      a.dilation = of(0, 1) == 0 ? 1 : of(2, 7);
      a.pad = of(0, 2) == 0 ? of(-3, 9) : of(0, a.dilation * (a.kernel - 1));
      const int64_t behind = of(0, 2) == 0 ? of(-3, 9) : of(0, a.dilation * (a.kernel - 1));
      const int64_t room = a.x + a.pad + behind - a.dilation * (a.kernel - 1) - 1;
      a.y = room < 0 ? 0 : room / a.stride + 1;
    } while (a.y < 1);
    problem.text += " x=" + std::to_string(a.x) + " y=" + std::to_string(a.y) +
                    " k=" + std::to_string(a.kernel) + " s=" + std::to_string(a.stride) +
                    " d=" + std::to_string(a.dilation) + " p=" + std::to_string(a.pad);
  }
  c.x.dtype = c.y.dtype = c.w.dtype = DType::kF32;
  int64_t stride = 1;
  for (int i = 5; i-- > 2; stride *= c.axes[i - 2].kernel) c.w.strides[i] = stride;
  c.w.strides[1] = stride, c.w.strides[0] = stride * c.x_channels;
  const auto numbers = [&](int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = static_cast<float>(of(-4, 4));
    return values;
  };
  const int64_t planes = c.batch * c.groups;
  problem.source =
      numbers(planes * (problem.forward ? c.x_channels * places(c, true) : c.y_channels * places(c, false)));
  problem.results =
      planes * (problem.forward ? c.y_channels * places(c, false) : c.x_channels * places(c, true));
  problem.weights = numbers(c.groups * c.y_channels * c.x_channels * stride);
  problem.phase = static_cast<int>(of(0, 3));
  return problem;
}

// From the definition, every tap of every place of y once: visit(index of x, of y, of w).
template <class Visit>
void visit_terms(const Conv& c, const Visit& visit) {
  const Axis(&a)[3] = c.axes;
  const int64_t xp = places(c, true), yp = places(c, false);
  int64_t taps = 1;
  for (const Axis& axis : a) taps *= axis.kernel;
  for (int64_t plane = 0; plane < c.batch * c.groups; ++plane)
    for (int64_t o = 0; o < c.y_channels; ++o)
      for (int64_t i = 0; i < c.x_channels; ++i)
        for (int64_t p = 0; p < yp; ++p)
          for (int64_t t = 0; t < taps; ++t) {
            const int64_t at[3] = {p / (a[1].y * a[2].y), p / a[2].y % a[1].y, p % a[2].y};
            const int64_t tap[3] = {t / (a[1].kernel * a[2].kernel), t / a[2].kernel % a[1].kernel,
                                    t % a[2].kernel};
            int64_t q = 0;
            bool inside = true;
            for (int k = 0; k < 3; ++k) {
              const int64_t place = at[k] * a[k].stride - a[k].pad + tap[k] * a[k].dilation;
              inside = inside && place >= 0 && place < a[k].x;
              q = q * a[k].x + place;
            }
            if (!inside) continue;
            visit(static_cast<size_t>((plane * c.x_channels + i) * xp + q),
                  static_cast<size_t>((plane * c.y_channels + o) * yp + p),
                  static_cast<size_t>(((plane % c.groups * c.y_channels + o) * c.x_channels + i) * taps + t));
          }
}

std::vector<float> by_definition(const Problem& problem) {
  std::vector<float> results(static_cast<size_t>(problem.results));
  visit_terms(problem.conv, [&](size_t x, size_t y, size_t w) {
    if (problem.forward)
      results[y] += problem.source[x] * problem.weights[w];
    else
      results[x] += problem.source[y] * problem.weights[w];
  });
  return results;
}

template <int kV, int kM>
void run_block(const Problem& problem, const StagedPlan& plan, uint32_t number, std::vector<float>& results,
               std::vector<int>& written) {
  constexpr int kWide = 4;
  const Staged& p = plan.staged;
  const StagedBlock b = staged_block(p, number);
  if (b.rows <= 0) return;
  std::vector<float> weights(static_cast<size_t>(staged_weights(p)), kNan);
  std::vector<float> tile(static_cast<size_t>(plan.shared / 4 - staged_weights(p)), kNan);
  for (int i = 0; i < staged_pieces(p, b); ++i) {
    const StagedPiece piece = staged_piece(p, b, kWide, problem.phase, i);
    if (piece.kind == StagedPiece::kNone) continue;
    for (int k = 0; k < kWide; ++k) {
      const int64_t from = piece.from + k;
      const bool inside = from >= 0 && from < static_cast<int64_t>(problem.source.size());
      if (piece.kind == StagedPiece::kWhole) {
        ASSERT_TRUE(inside);
        ASSERT_EQ((piece.from + problem.phase) % kWide, 0);
      }
      float& to = tile.at(static_cast<size_t>(piece.to + k));
      if (piece.kind == StagedPiece::kZeros)
        to = 0;
      else if (inside)
        to = problem.source[static_cast<size_t>(from)];
    }
  }
  bool finite = true;
  for (int i = 0; i < b.planes * p.sources * p.taps * kM; ++i) {
    const StagedWeight weight = staged_weight(p, b, i);
    weights.at(static_cast<size_t>(i)) =
        weight.live ? problem.weights.at(static_cast<size_t>(weight.from)) : 0.0f;
    finite = finite && std::isfinite(weights[static_cast<size_t>(i)]);
  }
  const auto load = [&](const float* address) {
    EXPECT_TRUE(address >= tile.data() && address < tile.data() + tile.size()) << problem.text;
    return *address;
  };
  for (uint32_t i = 0; i < p.items; ++i) {
    const StagedItem item = staged_item<kV>(p, b, i);
    if (!item.there) continue;
    float sums[kV][kM] = {};
    if (finite)
      gather_staged<kV, kM, false>(p, b, item, tile.data(), weights.data(), problem.phase, kWide - 1, load,
                                   sums);
    else
      gather_staged<kV, kM, true>(p, b, item, tile.data(), weights.data(), problem.phase, kWide - 1, load,
                                  sums);
    for (int v = 0; v < kV; ++v)
      for (int k = 0; k < p.results; ++k)
        if (item.row + v * p.spacing < b.rows) {
          const auto at = static_cast<size_t>(staged_result(p, b, item, v, k));
          results.at(at) = sums[v][k];
          ++written.at(at);
        }
  }
}

void check(const Problem& problem, int& refused) {
  const StagedPlan plan = staged_plan(problem.conv, problem.forward);
  if (!plan.fits) {
    ++refused;
    return;
  }
  std::vector<float> results(static_cast<size_t>(problem.results), kNan);
  std::vector<int> written(results.size());
  for (uint32_t number = 0; number < plan.blocks; ++number) {
    if (plan.staged.results_at_once == 4)
      run_block<4, 4>(problem, plan, number, results, written);
    else if (plan.staged.results_at_once == 2)
      run_block<4, 2>(problem, plan, number, results, written);
    else if (plan.staged.slide == 8)
      run_block<8, 1>(problem, plan, number, results, written);
    else
      run_block<4, 1>(problem, plan, number, results, written);
  }
  const std::vector<float> expected = by_definition(problem);
  for (size_t i = 0; i < results.size(); ++i) {
    ASSERT_EQ(written[i], 1) << problem.text << " at " << i;
    if (std::isnan(expected[i]))
      ASSERT_TRUE(std::isnan(results[i])) << problem.text << " at " << i;
    else
      ASSERT_EQ(results[i], expected[i]) << problem.text << " at " << i;
  }
}

template <int kV>
void run_weight_block(const Problem& problem, const StagedWeightPlan& plan, uint32_t number,
                      const std::vector<float>& y, std::vector<float>& parts, std::vector<int>& written) {
  constexpr int kWide = 4, kLanes = 32;
  const StagedWeights& w = plan.work;
  const Staged& p = w.staged;
  const WeightBlock block = weight_block(w, number);
  const int64_t plane = places(problem.conv, false), image_pitch = plane * w.y_channels;
  std::vector<float> sums(static_cast<size_t>(w.tiles_a_block) * kTapRows * kTapColumns);
  for (uint32_t box = block.begin; box < block.end; ++box) {
    const StagedBlock b = weight_box(w, block, box);
    if (b.rows <= 0) continue;
    std::vector<float> tile(w.box_elements, kNan);
    for (int i = 0; i < staged_pieces(p, b); ++i) {
      const StagedPiece piece = staged_piece(p, b, kWide, problem.phase, i);
      if (piece.kind == StagedPiece::kNone) continue;
      for (int k = 0; k < kWide; ++k) {
        const int64_t from = piece.from + k;
        const bool inside = from >= 0 && from < static_cast<int64_t>(problem.source.size());
        float& to = tile.at(static_cast<size_t>(piece.to + k));
        if (piece.kind == StagedPiece::kZeros)
          to = 0;
        else if (inside)
          to = problem.source[static_cast<size_t>(from)];
      }
    }
    const auto load = [&](const float* address) {
      EXPECT_TRUE(address >= tile.data() && address < tile.data() + tile.size()) << problem.text;
      return *address;
    };
    const auto load_y = [&](const float* address) {
      EXPECT_TRUE(address >= y.data() && address < y.data() + y.size()) << problem.text;
      return *address;
    };
    const float* const of_box = y.data() + b.plane * image_pitch + block.y_channel * plane;
    for (int t = 0; t < w.tiles_a_block; ++t) {
      const TapBox taps = tap_box(w, block.first_tile + t);
      if (taps.rows <= 0) continue;
      float of_tile[kTapRows][kTapColumns] = {};
      for (uint32_t i = 0; i < p.items; ++i) {
        const StagedItem item = staged_item<kV>(p, b, i);
        float of_y[kV];
        load_weight_y<kV>(p, b, item, of_box, image_pitch, load_y, of_y);
        if (item.there)
          weigh_staged<kV>(p, b, item, taps, of_y, tile.data(), problem.phase, kWide - 1, load, of_tile);
      }
      for (int k = 0; k < kTapRows * kTapColumns; ++k)
        sums[static_cast<size_t>(t * kTapRows * kTapColumns + k)] +=
            of_tile[k / kTapColumns][k % kTapColumns];
    }
  }
  ASSERT_LE(plan.threads, kLanes * kWeightWarps);
  for (int t = 0; t < w.tiles_a_block; ++t) {
    const TapBox taps = tap_box(w, block.first_tile + t);
    for (int j = 0; j < taps.rows; ++j)
      for (int i = 0; i < taps.columns; ++i) {
        const auto at = static_cast<size_t>(block.part * static_cast<uint64_t>(w.weights)) +
                        static_cast<size_t>(staged_weight_number(w, block, taps, j, i));
        parts.at(at) = sums[static_cast<size_t>((t * kTapRows + j) * kTapColumns + i)];
        ++written.at(at);
      }
  }
}

TEST(DepthwiseStagedTest, EveryWeightOnceAPartAndExact) {
  int refused = 0;
  for (unsigned seed = 0; seed < 2 * kDraws; ++seed) {
    const Problem problem = draw(seed);
    if (!problem.forward) continue;
    std::vector<float> y(static_cast<size_t>(problem.results));
    for (size_t i = 0; i < y.size(); ++i) y[i] = static_cast<float>((i * 7 + seed) % 5) - 2;
    const StagedWeightPlan plan = staged_weight_plan(problem.conv);
    if (!plan.fits) {
      ++refused;
      continue;
    }
    ASSERT_EQ(static_cast<size_t>(plan.work.weights), problem.weights.size()) << problem.text;
    std::vector<float> parts(static_cast<size_t>(plan.parts) * problem.weights.size(), kNan);
    std::vector<int> written(parts.size());
    for (uint32_t number = 0; number < plan.blocks; ++number)
      if (plan.work.staged.slide == 8)
        run_weight_block<8>(problem, plan, number, y, parts, written);
      else
        run_weight_block<4>(problem, plan, number, y, parts, written);
    std::vector<float> expected(problem.weights.size());
    visit_terms(problem.conv, [&](size_t of_x, size_t of_y, size_t of_w) {
      expected[of_w] += problem.source[of_x] * y[of_y];
    });
    for (size_t i = 0; i < expected.size(); ++i) {
      float sum = 0;
      for (size_t part = 0; part < static_cast<size_t>(plan.parts); ++part) {
        ASSERT_EQ(written[part * expected.size() + i], 1) << problem.text << " weight " << i;
        sum += parts[part * expected.size() + i];
      }
      ASSERT_EQ(sum, expected[i]) << problem.text << " weight " << i;
    }
  }
  EXPECT_LE(refused, 3);
}

TEST(DepthwiseStagedTest, TapsOfStridedWindowsShareRows) {
  Conv c{};
  c.batch = 4, c.groups = 264, c.x_channels = c.y_channels = 1;
  c.axes[0] = {1, 1, 1, 1, 1, 0};
  c.axes[1] = c.axes[2] = {154, 77, 5, 2, 1, 2};
  c.x.dtype = c.y.dtype = c.w.dtype = DType::kBF16;
  const StagedWeightPlan plan = staged_weight_plan(c);
  EXPECT_EQ(plan.work.rows_apart, 2);
  EXPECT_EQ(plan.work.tiles, 2);  // rows 0, 2, 4 and rows 1, 3
  EXPECT_EQ(tap_box(plan.work, 0).rows, 3);
  EXPECT_EQ(tap_box(plan.work, 1).rows, 2);
  EXPECT_EQ(tap_box(plan.work, 1).columns, 5);
}

TEST(DepthwiseStagedTest, EveryResultOnceAndExact) {
  int refused = 0;
  for (unsigned seed = 0; seed < kDraws; ++seed) {
    check(draw(seed), refused);
    if (HasFatalFailure()) return;
  }
  EXPECT_LE(refused, 3);
}

TEST(DepthwiseStagedTest, InfiniteWeightsMeetNoPadding) {
  int refused = 0;
  for (unsigned seed = 0; seed < kDraws; seed += 5) {
    Problem problem = draw(seed);
    problem.weights[seed % problem.weights.size()] = kInf;
    check(problem, refused);
    if (HasFatalFailure()) return;
  }
  EXPECT_LE(refused, 3);
}

TEST(DepthwiseStagedTest, DilatedPlanesAreReadOnce) {
  Conv c{};
  c.batch = 1, c.groups = 664, c.x_channels = c.y_channels = 1;
  c.axes[0] = {1, 1, 1, 1, 1, 0};
  c.axes[1] = c.axes[2] = {234, 234, 3, 1, 12, 12};
  c.x.dtype = c.y.dtype = c.w.dtype = DType::kF16;
  const StagedPlan plan = staged_plan(c, true);
  EXPECT_TRUE(plan.staged.split);
  EXPECT_EQ(plan.staged.classes, 12);
  EXPECT_EQ(plan.staged.rows, 20);  // a class: no row is staged twice
  EXPECT_EQ(plan.staged.columns, 234);
  EXPECT_LE(plan.shared, 40 << 10);
}

TEST(DepthwiseStagedTest, SmallPlanesShareABlock) {
  Conv c{};
  c.batch = 31, c.groups = 72, c.x_channels = c.y_channels = 1;
  c.axes[0] = {1, 1, 1, 1, 1, 0};
  c.axes[1] = {7, 7, 3, 1, 1, 1};
  c.axes[2] = {7, 4, 3, 2, 1, 1};
  c.x.dtype = c.y.dtype = c.w.dtype = DType::kF32;
  const StagedPlan plan = staged_plan(c, true);
  EXPECT_GT(plan.staged.planes, 1);
  EXPECT_EQ(plan.staged.rows, 7);
}

}  // namespace
}  // namespace retrograd::kernels::cuda::depthwise_staged_test
