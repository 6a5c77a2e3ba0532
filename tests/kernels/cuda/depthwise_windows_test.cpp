// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions with any window on a GPU: the plans, and what a thread does for an item, run here
// block by block and thread by thread against the sums of problem/pass.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/cuda/depthwise_windows/windows_item.h"
#include "kernels/cuda/depthwise_windows/windows_plan.h"

namespace retrograd::kernels::cuda::depthwise_windows_test {
namespace {

constexpr float kUnwritten = 12345.5f;
constexpr unsigned kDraws = 150;

struct Problem {
  Conv conv;
  std::vector<float> x, y, w;
  std::string text;
};

using Sizes = std::array<int64_t, 5>;
Sizes sizes_of(const Conv& c, bool is_x) {
  Sizes sizes{c.batch, c.groups * (is_x ? c.x_channels : c.y_channels), 0, 0, 0};
  for (size_t i = 0; i < 3; ++i) sizes[i + 2] = is_x ? c.axes[i].x : c.axes[i].y;
  return sizes;
}
Sizes weight_sizes(const Conv& c) {
  return {c.groups * c.y_channels, c.x_channels, c.axes[0].kernel, c.axes[1].kernel, c.axes[2].kernel};
}

// Dense in the order of `axes`, innermost last; `gap` elements behind each row.
int64_t lay_out(Tensor& tensor, const Sizes& sizes, const std::array<size_t, 5>& axes, int64_t gap) {
  int64_t stride = 1;
  for (size_t i = 5; i-- > 0;) {
    tensor.strides[axes[i]] = stride;
    stride = stride * sizes[axes[i]] + (i == 4 ? gap : 0);
  }
  return stride + gap;
}

class Draws {
 public:
  explicit Draws(unsigned seed) : engine_(seed) {}
  int64_t of(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine_); }
  std::vector<float> numbers(int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = static_cast<float>(of(-4, 4));
    return values;
  }

 private:
  std::mt19937 engine_;
};

Problem draw(unsigned seed) {
  Draws draws(seed);
  Problem problem{};
  Conv& c = problem.conv;
  c.batch = draws.of(1, 9);
  c.groups = draws.of(1, 4) == 1 ? draws.of(30, 70) : draws.of(1, 6);
  c.x_channels = c.y_channels = 1;
  if (draws.of(0, 2) == 0) (draws.of(0, 1) == 0 ? c.x_channels : c.y_channels) = draws.of(2, 4);
  const int64_t rank = draws.of(1, 3);
  for (int64_t i = 0; i < 3; ++i) {
    Axis& a = c.axes[i];
    a = {1, 1, 1, 1, 1, 0};
    if (i < 3 - rank) continue;
    while (true) {
      a.x = draws.of(1, 11);
      a.kernel = draws.of(0, 9) == 0 ? draws.of(8, 17) : draws.of(1, 7);
      a.stride = draws.of(0, 1) == 0 ? 1 : draws.of(1, 6);
      a.dilation = draws.of(0, 1) == 0 ? 1 : draws.of(1, 6);
      a.pad = draws.of(-3, 8);
      a.y = (a.x + a.pad + draws.of(-2, 8) - a.dilation * (a.kernel - 1) - 1) / a.stride + 1;
      if (a.y >= 1 && a.y <= 12) break;
    }
    problem.text += " x=" + std::to_string(a.x) + " y=" + std::to_string(a.y) +
                    " k=" + std::to_string(a.kernel) + " s=" + std::to_string(a.stride) +
                    " d=" + std::to_string(a.dilation) + " p=" + std::to_string(a.pad) + ";";
  }
  constexpr std::array<std::array<size_t, 5>, 4> kOrders{
      {{0, 1, 2, 3, 4}, {0, 2, 3, 4, 1}, {4, 1, 0, 3, 2}, {2, 3, 4, 1, 0}}};
  const auto& order = kOrders[static_cast<size_t>(std::min<int64_t>(draws.of(0, 5) / 2 + draws.of(0, 1), 3))];
  c.x.dtype = c.y.dtype = c.w.dtype = draws.of(0, 1) == 0 ? DType::kF32 : DType::kF16;
  const int64_t gap = draws.of(0, 2);
  problem.x = draws.numbers(lay_out(c.x, sizes_of(c, true), order, gap));
  problem.y = draws.numbers(lay_out(c.y, sizes_of(c, false), order, gap));
  problem.w = draws.numbers(lay_out(c.w, weight_sizes(c), kOrders[static_cast<size_t>(draws.of(0, 1))], gap));
  problem.text = "seed " + std::to_string(seed) + " n=" + std::to_string(c.batch) +
                 " g=" + std::to_string(c.groups) + " xc=" + std::to_string(c.x_channels) +
                 " yc=" + std::to_string(c.y_channels) + problem.text;
  return problem;
}

size_t offset(const Tensor& t, int64_t n, int64_t c, const std::array<int64_t, 3>& at) {
  return static_cast<size_t>(n * t.strides[0] + c * t.strides[1] + at[0] * t.strides[2] +
                             at[1] * t.strides[3] + at[2] * t.strides[4]);
}

// function(n, y channel, x channel, place of y, place of x, tap) of every product.
template <class Function>
void for_products(const Conv& c, Function&& function) {
  const auto each = [](const auto& limits, auto&& body) {
    std::array<int64_t, 3> i{};
    for (i[0] = 0; i[0] < limits[0]; ++i[0])
      for (i[1] = 0; i[1] < limits[1]; ++i[1])
        for (i[2] = 0; i[2] < limits[2]; ++i[2]) body(i);
  };
  const std::array<int64_t, 3> outputs{c.axes[0].y, c.axes[1].y, c.axes[2].y};
  const std::array<int64_t, 3> taps{c.axes[0].kernel, c.axes[1].kernel, c.axes[2].kernel};
  for (int64_t n = 0; n < c.batch; ++n)
    for (int64_t pair = 0; pair < c.groups * c.x_channels * c.y_channels; ++pair)
      each(outputs, [&](const auto& o) {
        each(taps, [&](const auto& t) {
          std::array<int64_t, 3> q{};
          for (size_t k = 0; k < 3; ++k) {
            const Axis& a = c.axes[k];
            q[k] = o[k] * a.stride - a.pad + t[k] * a.dilation;
            if (q[k] < 0 || q[k] >= a.x) return;
          }
          function(n, pair / c.x_channels, pair / c.y_channels, o, q, t);
        });
      });
}

void expect_same(const std::vector<float>& found, const std::vector<float>& expected,
                 const Problem& problem) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const bool same = std::isnan(expected[i]) ? std::isnan(found[i]) : found[i] == expected[i];
    ASSERT_TRUE(same) << problem.text << " at " << i << ": " << found[i] << ", expected " << expected[i];
  }
}
// Zero where there is an element, kUnwritten in the gaps.
std::vector<float> zeros(const Tensor& t, const Sizes& sizes, size_t count) {
  std::vector<float> values(count, kUnwritten);
  for (int64_t n = 0; n < sizes[0]; ++n)
    for (int64_t c = 0; c < sizes[1]; ++c)
      for (int64_t d = 0; d < sizes[2]; ++d)
        for (int64_t h = 0; h < sizes[3]; ++h)
          for (int64_t w = 0; w < sizes[4]; ++w) values[offset(t, n, c, {d, h, w})] = 0;
  return values;
}

struct Thread {
  int64_t block;
  int x, y;
};
template <class Function>
void for_threads(const DepthwiseWindows& p, int64_t blocks, Function&& function) {
  for (int64_t block = 0; block < blocks; ++block)
    for (int y = 0; y < p.rows; ++y)
      for (int x = 0; x < p.lanes; ++x) function(Thread{block, x, y});
}

template <int kPack>
void load(const float* address, float (&values)[kPack]) {
  std::copy_n(address, kPack, values);
}

template <int kPack>
void gather(const GatherWindows& plan, const std::vector<float>& source, const std::vector<float>& weights,
            std::vector<float>& result) {
  const DepthwiseWindows& p = plan.windows;
  for_threads(p, plan.blocks, [&](const Thread& t) {
    const bool inside = p.channels_inside;
    const int64_t tile = inside ? t.block % p.channel_tiles : t.block / p.item_blocks;
    const int64_t block = inside ? t.block / p.channel_tiles : t.block % p.item_blocks;
    const int64_t channel = tile * (inside ? p.lanes : p.rows) * kPack + int64_t{inside ? t.x : t.y} * kPack;
    if (channel >= p.channels) return;
    const auto weight = [&](int tap, float(&values)[kPack]) {
      ASSERT_EQ(tap % p.tap_pitch, 0);
      const auto number = static_cast<uint32_t>(tap / p.tap_pitch);
      ASSERT_LT(number, static_cast<uint32_t>(p.taps * p.sources));
      const auto taps = static_cast<uint32_t>(p.taps);
      for (int k = 0; k < kPack; ++k) {
        auto of_group = static_cast<uint32_t>(channel + k);
        const uint32_t group = p.by_source.split(of_group);
        values[k] =
            weights[static_cast<size_t>(p.kernels.offset(group, of_group, number / taps, number % taps))];
      }
    };
    const int64_t from =
        int64_t{p.by_source.quotient(static_cast<uint32_t>(channel))} * p.sources * p.source_channel;
    const int64_t at_once = inside ? p.rows : p.lanes;
    for (int64_t item = block * at_once + (inside ? t.y : t.x); item < p.items;
         item += p.item_blocks * at_once) {
      const WindowPlace at = place_of(p, static_cast<uint32_t>(item));
      const auto emit = [&](int place, const float(&sums)[kSlide][kPack]) {
        for (int v = 0; v < kSlide; ++v)
          for (int k = 0; k < kPack && at.slide + v * p.spacing < p.slide.results; ++k) {
            float& to = result[static_cast<size_t>((channel + k) * p.result_channel + result_offset(p, at) +
                                                   int64_t{place - at.begin} * p.run.result_pitch +
                                                   int64_t{v} * p.spacing * p.slide.result_pitch)];
            ASSERT_EQ(to, kUnwritten) << "written twice";
            to = sums[v][k];
          }
      };
      gather_run<kPack>(p, at, source.data() + from, load<kPack>, weight, emit);
    }
  });
}

template <int kS, int kI, int kPack>
void weigh(const Conv& c, const WeightWindows& w, const Problem& problem, std::vector<float>& result) {
  const DepthwiseWindows& p = w.windows;
  for_threads(p, w.blocks, [&](const Thread& t) {
    auto tap_tile = static_cast<uint32_t>(t.block);
    uint32_t channel_tile = w.by_tap_tiles.split(tap_tile);
    const uint32_t part = w.by_channel_tiles.split(channel_tile);
    ASSERT_LT(part, w.parts);
    const TileTaps taps = tile_taps(w, tap_tile);
    const bool inside = p.channels_inside;
    const int64_t channel =
        int64_t{channel_tile} * (inside ? p.lanes : p.rows) * kPack + int64_t{inside ? t.x : t.y} * kPack;
    if (channel >= p.channels) return;
    float sums[kS][kI][kPack] = {};
    const auto pair = static_cast<uint32_t>(channel);
    const float* x = problem.x.data() + int64_t{p.by_source.quotient(pair)} * p.source_channel;
    const float* y = problem.y.data() + int64_t{p.by_result.quotient(pair)} * p.result_channel;
    const uint32_t begin = part * w.items_a_part, end = std::min(p.items, begin + w.items_a_part);
    for (uint32_t item = begin + static_cast<uint32_t>(inside ? t.y : t.x); item < end;
         item += static_cast<uint32_t>(inside ? p.rows : p.lanes))
      weigh_run<kS, kI, kPack>(p, taps, place_of(p, item), x, y, load<kPack>, sums);
    for (int s = 0; s < taps.slide_count; ++s)
      for (int i = 0; i < taps.inner_count; ++i)
        for (int k = 0; k < kPack; ++k) {
          const int64_t tap = tap_number(p, taps, s, i), kw = c.axes[2].kernel, kh = c.axes[1].kernel;
          const int64_t o = (channel + k) / c.x_channels, in = (channel + k) % c.x_channels;
          result[offset(c.w, o, in, {tap / kw / kh, tap / kw % kh, tap % kw})] += sums[s][i][k];
        }
  });
}

// Runs of up to three places, which plans have for larger problems only.
void make_runs(DepthwiseWindows& p) {
  if (p.run_length > 1) return;
  p.run_length = std::min(3, p.run.results);
  p.items = p.items / static_cast<uint32_t>(p.run.results) *
            static_cast<uint32_t>((p.run.results + p.run_length - 1) / p.run_length);
}

std::vector<int> packs_of(const Conv& conv) {
  return can_pack(conv) ? std::vector<int>{1, 2} : std::vector<int>{1};
}

TEST(DepthwiseWindowsTest, GathersOnDrawnProblems) {
  for (unsigned seed = 1; seed <= kDraws; ++seed) {
    Problem problem = draw(seed);
    const Conv& c = problem.conv;
    // A product that is not there would make a NaN of it.
    if (seed % 3 == 0) problem.w[offset(c.w, 0, 0, {0, 0, 0})] = std::numeric_limits<float>::infinity();
    for (const bool forward : {true, false}) {
      const Tensor& target = forward ? c.y : c.x;
      const std::vector<float>& source = forward ? problem.x : problem.y;
      std::vector<float> expected =
          zeros(target, sizes_of(c, !forward), (forward ? problem.y : problem.x).size());
      for_products(c, [&](int64_t n, int64_t yc, int64_t xc, const auto& o, const auto& q, const auto& t) {
        const float weight = problem.w[offset(c.w, yc, xc % c.x_channels, t)];
        if (forward)
          expected[offset(c.y, n, yc, o)] += problem.x[offset(c.x, n, xc, q)] * weight;
        else
          expected[offset(c.x, n, xc, q)] += problem.y[offset(c.y, n, yc, o)] * weight;
      });
      for (const int pack : packs_of(c)) {
        GatherWindows plan = gather_windows(c, forward, pack);
        if (seed % 2 == 0) make_runs(plan.windows);
        ASSERT_LE(plan.windows.lanes * plan.windows.rows, kWindowsThreads);
        std::vector<float> result(expected.size(), kUnwritten);
        plan.windows.pack == 2 ? gather<2>(plan, source, problem.w, result)
                               : gather<1>(plan, source, problem.w, result);
        expect_same(result, expected, problem);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(DepthwiseWindowsTest, WeighsDrawnProblems) {
  for (unsigned seed = 1; seed <= kDraws; ++seed) {
    const Problem problem = draw(seed);
    const Conv& c = problem.conv;
    std::vector<float> expected = zeros(c.w, weight_sizes(c), problem.w.size());
    for_products(c, [&](int64_t n, int64_t yc, int64_t xc, const auto& o, const auto& q, const auto& t) {
      expected[offset(c.w, yc, xc % c.x_channels, t)] +=
          problem.x[offset(c.x, n, xc, q)] * problem.y[offset(c.y, n, yc, o)];
    });
    for (const int pack : packs_of(c)) {
      WeightWindows plan = weight_windows(c, pack);
      if (seed % 2 == 0) make_runs(plan.windows);
      std::vector<float> result = zeros(c.w, weight_sizes(c), problem.w.size());
      const auto run = [&](auto width) {
        constexpr int kPack = decltype(width)::value;
        if (plan.tile == TapTile::k3x3) return weigh<3, 3, kPack>(c, plan, problem, result);
        if (plan.tile == TapTile::k4x4) return weigh<4, 4, kPack>(c, plan, problem, result);
        if (plan.tile == TapTile::k1x4) return weigh<1, 4, kPack>(c, plan, problem, result);
        weigh<1, 8, kPack>(c, plan, problem, result);
      };
      plan.windows.pack == 2 ? run(std::integral_constant<int, 2>{}) : run(std::integral_constant<int, 1>{});
      expect_same(result, expected, problem);
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace retrograd::kernels::cuda::depthwise_windows_test
