// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions along lines on a GPU: the plans, and what threads do for a segment, run here block
// by block and thread by thread against plain sums. Shared memory that nobody has staged is NaN.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/cuda/depthwise_windows/segments_item.h"

namespace retrograd::kernels::cuda::depthwise_segments_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr unsigned kDraws = 300;

struct alignas(16) Four {
  float values[4];
};

struct Problem {
  Conv conv{};
  std::vector<float> x, y, w;
  int x_phase = 0, y_phase = 0, wide = 8;
  std::string text;
};

Problem draw(unsigned seed) {
  std::mt19937 engine(seed);
  const auto of = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  };
  Problem problem;
  Conv& c = problem.conv;
  c.batch = of(1, 6), c.groups = of(1, 9);
  c.x_channels = c.y_channels = 1;
  c.axes[0] = c.axes[1] = {1, 1, 1, 1, 1, 0};
  Axis& a = c.axes[2];
  const bool is_long = of(0, 3) == 0;
  do {
    a.x = is_long ? of(500, 4000) : of(1, 130);
    a.kernel = of(0, 5) == 0 ? of(9, 64) : of(1, 8);
    a.stride = of(0, 1) == 0 ? 1 : of(2, 5);
    a.dilation = of(0, 1) == 0 ? 1 : of(0, 4) == 0 ? of(5, 100) : of(2, 8);
    a.pad = of(0, 2) == 0 ? of(-5, 9) : of(0, a.dilation * (a.kernel - 1));
    const int64_t behind = of(0, 2) == 0 ? of(-5, 9) : of(0, a.dilation * (a.kernel - 1));
    a.y = a.x + a.pad + behind < a.dilation * (a.kernel - 1) + 1
              ? 0
              : (a.x + a.pad + behind - a.dilation * (a.kernel - 1) - 1) / a.stride + 1;
  } while (a.y < 1);
  const auto numbers = [&](int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = static_cast<float>(of(-4, 4));
    return values;
  };
  problem.x = numbers(c.batch * c.groups * a.x);
  problem.y = numbers(c.batch * c.groups * a.y);
  problem.w = numbers(c.groups * a.kernel);
  problem.wide = of(0, 1) == 0 ? 4 : 8;
  problem.x_phase = static_cast<int>(of(0, problem.wide - 1));
  problem.y_phase = static_cast<int>(of(0, problem.wide - 1));
  problem.text =
      "seed " + std::to_string(seed) + " n=" + std::to_string(c.batch) + " c=" + std::to_string(c.groups) +
      " x=" + std::to_string(a.x) + " y=" + std::to_string(a.y) + " k=" + std::to_string(a.kernel) +
      " s=" + std::to_string(a.stride) + " d=" + std::to_string(a.dilation) + " p=" + std::to_string(a.pad);
  return problem;
}

// function(line, place of y, place of x, tap) of every product.
template <class Function>
void for_products(const Conv& c, Function&& function) {
  const Axis& a = c.axes[2];
  for (int64_t line = 0; line < c.batch * c.groups; ++line)
    for (int64_t o = 0; o < a.y; ++o)
      for (int64_t t = 0; t < a.kernel; ++t) {
        const int64_t q = o * a.stride - a.pad + t * a.dilation;
        if (q >= 0 && q < a.x) function(line, o, q, t);
      }
}

// As stage_lines of segments.cuh does it.
template <int kWide>
void stage_span(const std::vector<float>& source, int phase, int64_t line, int length, int lowest, int span,
                int base, std::vector<float>& shared) {
  const auto total = static_cast<int64_t>(source.size());
  for (int number = 0; number < most_vectors(span, kWide); ++number) {
    const StagedVector v = staged_vector(kWide, phase, number, line, length, lowest, total);
    ASSERT_EQ((v.from + phase) & (kWide - 1), 0) << "not on a boundary";
    float values[kWide] = {};
    for (int i = 0; i < kWide && v.any; ++i) {
      const bool inside = v.place + i >= 0 && v.place + i < length;
      if (!v.whole && !inside) continue;
      ASSERT_TRUE(v.from + i >= 0 && v.from + i < total);
      values[i] = source[static_cast<size_t>(v.from + i)];
    }
    stage<kWide>(v, span, length, [&](int index, int i, bool inside) {
      float& to = shared.at(static_cast<size_t>(padded(base + index)));
      ASSERT_TRUE(std::isnan(to)) << "staged twice";
      to = inside ? values[i] : 0.0f;
    });
  }
}
void stage_lines(const Problem& problem, const std::vector<float>& source, int phase, int64_t first,
                 int lines, int length, int lowest, int span, std::vector<float>& shared) {
  for (int line = 0; line < lines; ++line)
    problem.wide == 8 ? stage_span<8>(source, phase, first + line, length, lowest, span, line * span, shared)
                      : stage_span<4>(source, phase, first + line, length, lowest, span, line * span, shared);
  for (int i = 0; i < lines * span; ++i)
    ASSERT_FALSE(std::isnan(shared[static_cast<size_t>(padded(i))])) << problem.text << " not staged: " << i;
}

std::vector<float> unstaged(int64_t floats) { return std::vector<float>(static_cast<size_t>(floats), kNan); }

template <ItemKind kKind>
void gather(const Problem& problem, const GatherSegments& plan, bool forward, std::vector<float>& result) {
  const Segments& p = plan.segments;
  const DepthwiseAxis& a = p.axis;
  for (int64_t block = 0; block < plan.blocks; ++block) {
    const int64_t first = block / p.pieces * p.in_block;
    const int lines = static_cast<int>(std::min<int64_t>(p.in_block, p.lines - first));
    const int begin = static_cast<int>(block % p.pieces) * p.piece,
              places = std::min(p.piece, a.results - begin);
    ASSERT_GT(places, 0);
    const int lowest = lowest_read(a, begin);
    std::vector<float> shared = unstaged(padded(p.in_block * p.span) + 1);
    stage_lines(problem, forward ? problem.x : problem.y, forward ? problem.x_phase : problem.y_phase, first,
                lines, a.source, lowest, p.span, shared);
    std::vector<Four> weights(static_cast<size_t>(lines * p.tap_pitch / 4));
    for (int line = 0; line < lines; ++line)
      for (int i = 0; i < a.kernel; ++i)
        weights[static_cast<size_t>(line * p.tap_pitch + i) / 4].values[i % 4] =
            problem.w.at(static_cast<size_t>((first + line) % p.channels * a.kernel + tap_at(a, i)));
    for (int line = 0; line < lines; ++line)
      for (int item = 0; item < p.items; ++item) {
        const int q = first_result(p, static_cast<uint32_t>(item)), limit = places - q;
        if (limit <= 0) continue;
        const Taps taps = taps_at(a, begin + q);
        float sums[kOfItem] = {};
        gather_item<kKind>(p, taps, line * p.span + taps.base - lowest, limit, shared.data(),
                           weights[static_cast<size_t>(line * p.tap_pitch) / 4].values, sums);
        for (int v = 0; v < kOfItem && v * p.spacing < limit; ++v) {
          float& to = result.at(static_cast<size_t>((first + line) * a.results + begin + q + v * p.spacing));
          ASSERT_TRUE(std::isnan(to)) << problem.text << " written twice";
          to = sums[v];
        }
      }
  }
}

TEST(DepthwiseSegmentsTest, GathersOnDrawnProblems) {
  for (unsigned seed = 1; seed <= kDraws; ++seed) {
    const Problem problem = draw(seed);
    const Conv& c = problem.conv;
    const Axis& a = c.axes[2];
    for (const bool forward : {true, false}) {
      const int64_t length = forward ? a.y : a.x;
      std::vector<float> expected(static_cast<size_t>(c.batch * c.groups * length));
      for_products(c, [&](int64_t line, int64_t o, int64_t q, int64_t t) {
        const float w = problem.w[static_cast<size_t>(line % c.groups * a.kernel + t)];
        if (forward)
          expected[static_cast<size_t>(line * a.y + o)] += problem.x[static_cast<size_t>(line * a.x + q)] * w;
        else
          expected[static_cast<size_t>(line * a.x + q)] += problem.y[static_cast<size_t>(line * a.y + o)] * w;
      });
      const GatherSegments plan = gather_segments(c, forward);
      ASSERT_LE(plan.shared, kSegmentShared);
      std::vector<float> result = unstaged(c.batch * c.groups * length);
      with_kind(plan.segments.kind,
                [&](auto kind) { gather<decltype(kind)::value>(problem, plan, forward, result); });
      ASSERT_EQ(result, expected) << problem.text << (forward ? " forward" : " grad_input");
      if (HasFatalFailure()) return;
    }
  }
}

template <ItemKind kKind, int kTaps>
void weigh(const Problem& problem, const WeightSegments& w, std::vector<float>& result) {
  const Segments& p = w.segments;
  const DepthwiseAxis& a = p.axis;
  ASSERT_LE(w.workers * w.strips * p.in_block, w.threads);
  ASSERT_LE(w.threads, kSegmentThreads);
  for (int64_t block = 0; block < w.blocks; ++block) {
    const int first = static_cast<int>(block % w.channel_tiles) * p.in_block;
    const int64_t part = block / w.channel_tiles;
    const int lines = std::min(p.in_block, p.channels - first);
    const int64_t all = int64_t{p.lines} / p.channels * p.pieces, last = std::min(all, (part + 1) * w.rounds);
    ASSERT_LT(part * w.rounds, all);
    for (int64_t round = part * w.rounds; round < last; ++round) {
      const int64_t line0 = round / p.pieces * p.channels + first;
      const int begin = static_cast<int>(round % p.pieces) * p.piece;
      const int places = std::min(p.piece, a.results - begin);
      std::vector<float> of_x = unstaged(padded(p.in_block * p.span) + 1);
      std::vector<float> of_y = unstaged(padded(p.in_block * w.y_span) + 1);
      stage_lines(problem, problem.x, problem.x_phase, line0, lines, a.source, begin * a.stride - a.pad,
                  p.span, of_x);
      stage_lines(problem, problem.y, problem.y_phase, line0, lines, a.results, begin, w.y_span, of_y);
      for (int thread = 0; thread < w.threads; ++thread) {
        const int worker = thread % w.workers, line = thread / w.workers % p.in_block;
        const int tap = thread / (w.workers * p.in_block) * kTaps, taps = std::min(kTaps, a.kernel - tap);
        if (line >= lines || taps <= 0) continue;
        float sums[kTaps] = {};
        for (int item = worker; item < p.items; item += w.workers) {
          const int q = first_result(p, static_cast<uint32_t>(item)), limit = places - q;
          if (limit > 0)
            weigh_item<kKind, kTaps>(p, tap, taps, line * p.span + q * a.stride, line * w.y_span + q, limit,
                                     of_x.data(), of_y.data(), sums);
        }
        for (int t = 0; t < taps; ++t)
          result.at(static_cast<size_t>((first + line) * a.kernel + tap + t)) += sums[t];
      }
    }
  }
}

TEST(DepthwiseSegmentsTest, WeighsDrawnProblems) {
  for (unsigned seed = 1; seed <= kDraws; ++seed) {
    const Problem problem = draw(seed);
    const Conv& c = problem.conv;
    const Axis& a = c.axes[2];
    std::vector<float> expected(problem.w.size()), result(problem.w.size());
    for_products(c, [&](int64_t line, int64_t o, int64_t q, int64_t t) {
      expected[static_cast<size_t>(line % c.groups * a.kernel + t)] +=
          problem.x[static_cast<size_t>(line * a.x + q)] * problem.y[static_cast<size_t>(line * a.y + o)];
    });
    const WeightSegments plan = weight_segments(c);
    ASSERT_LE(plan.shared, kSegmentShared);
    with_kind(plan.segments.kind, [&](auto kind) {
      constexpr ItemKind kKind = decltype(kind)::value;
      plan.strip_taps == 4 ? weigh<kKind, 4>(problem, plan, result) : weigh<kKind, 8>(problem, plan, result);
    });
    ASSERT_EQ(result, expected) << problem.text;
    if (HasFatalFailure()) return;
  }
}

Conv lines_of(int64_t batch, int64_t channels, const Axis& axis) {
  Conv c{};
  c.batch = batch, c.groups = channels, c.x_channels = c.y_channels = 1;
  c.axes[0] = c.axes[1] = {1, 1, 1, 1, 1, 0};
  c.axes[2] = axis;
  return c;
}

TEST(DepthwiseSegmentsTest, CutsLongLinesIntoPieces) {
  const Segments p = gather_segments(lines_of(27, 72, {8760, 8758, 3, 1, 1, 0}), false).segments;
  EXPECT_EQ(p.pieces, 5);
  EXPECT_EQ(p.piece, 1752);
  EXPECT_EQ(p.span, 1760);
  EXPECT_EQ(p.kind, ItemKind::kUnit);
  EXPECT_EQ(lowest_read(p.axis, 0), -2);
}

TEST(DepthwiseSegmentsTest, TakesSeveralShortLines) {
  const Conv conv = lines_of(252, 984, {31, 16, 5, 2, 1, 2});
  const Segments p = gather_segments(conv, false).segments;
  EXPECT_EQ(p.pieces, 1);
  EXPECT_EQ(p.in_block, 61);
  EXPECT_EQ(p.spacing, 2);
  EXPECT_EQ(p.shift, 1);
  EXPECT_EQ(p.kind, ItemKind::kSlide);
  EXPECT_EQ(p.items, 4);
  const WeightSegments w = weight_segments(conv);
  EXPECT_EQ(w.segments.kind, ItemKind::kApart);
  EXPECT_GT(w.segments.in_block, 50);
  EXPECT_GT(w.blocks, 500);
}

TEST(DepthwiseSegmentsTest, KeepsSumsShort) {
  for (const int64_t kernel : {3, 31, 64})
    for (const int64_t channels : {1, 72, 5000}) {
      const WeightSegments w =
          weight_segments(lines_of(400, channels, {1569, 1569, kernel, 1, 1, kernel / 2}));
      EXPECT_LE(int64_t{w.rounds} * kOfItem * ((w.segments.items + w.workers - 1) / w.workers), 256);
      EXPECT_GE(w.parts * w.rounds, 400 * w.segments.pieces);
      EXPECT_LT((w.parts - 1) * w.rounds, 400 * w.segments.pieces);
    }
}

// The longest reach, of every stride: shared memory holds it.
TEST(DepthwiseSegmentsTest, FitsSharedMemory) {
  for (const int64_t kernel : {2, 3, 9, 64})
    for (const int64_t stride : {1, 2, 3, 16})
      for (const int64_t dilation : {int64_t{1}, 8192 / (kernel - 1)})
        for (const int64_t y : {3, 700, 4100, 100000}) {
          const int64_t reach = (kernel - 1) * dilation;
          const Conv conv = lines_of(2, 33, {(y - 1) * stride + reach + 1, y, kernel, stride, dilation, 0});
          EXPECT_LE(gather_segments(conv, true).shared, kSegmentShared);
          EXPECT_LE(gather_segments(conv, false).shared, kSegmentShared);
          EXPECT_LE(weight_segments(conv).shared, kSegmentShared);
        }
}

TEST(DepthwiseSegmentsTest, NeverReadsOutsideTheTensor) {
  const StagedVector first = staged_vector(8, 3, 0, 0, 10, -1, 20);  // on the boundary before element −3
  EXPECT_EQ(first.from, -3);
  EXPECT_EQ(first.index, -2);
  EXPECT_TRUE(first.any);
  EXPECT_FALSE(first.whole);
  const StagedVector last = staged_vector(8, 3, 1, 1, 10, 0, 20);
  EXPECT_EQ(last.from, 13);
  EXPECT_EQ(last.index, 3);
  EXPECT_FALSE(last.whole);  // 13 to 20 and one more
}

}  // namespace
}  // namespace retrograd::kernels::cuda::depthwise_segments_test
