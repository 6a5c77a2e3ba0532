// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of channels-last tensors on a GPU: the plans, and what threads do for an item, run
// here block by block and thread by thread against plain sums. Shared memory that nobody has staged is NaN.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/cuda/depthwise_nhwc/depthwise_last_item.h"

namespace retrograd::kernels::cuda::depthwise_last_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr unsigned kDraws = 60;

struct Problem {
  Conv conv{};
  std::vector<float> x, y, w;
  int chunk = 16;
  std::string text;
};

Problem draw(unsigned seed) {
  std::mt19937 engine(seed);
  const auto of = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  };
  Problem problem;
  Conv& c = problem.conv;
  c.batch = of(1, 5), c.groups = of(0, 3) == 0 ? of(60, 140) : of(1, 40);
  c.x_channels = c.y_channels = 1;
  c.axes[0] = {1, 1, 1, 1, 1, 0};
  if (of(0, 4) == 0) c.axes[0].x = c.axes[0].y = of(2, 3);
  const int64_t stride = of(1, 2), largest = of(0, 2) * 2 + 3;
  for (Axis* a : {&c.axes[1], &c.axes[2]}) {
    do {
      a->x = of(0, 5) == 0 ? of(30, 70) : of(1, 20);
      a->kernel = of(0, 2) == 0 ? of(1, largest) : largest;
      a->stride = stride;
      a->dilation = stride == 1 && of(0, 2) == 0 ? of(2, 5) : 1;
      const int64_t reach = a->dilation * (a->kernel - 1);
      a->pad = of(0, 2) == 0 ? of(-3, 9) : of(0, reach);
      const int64_t room = a->x + a->pad + (of(0, 2) == 0 ? of(-3, 9) : of(0, reach)) - reach - 1;
      a->y = room < 0 ? 0 : room / stride + 1;
    } while (a->y < 1);
  }
  if (of(0, 6) == 0) {  // lines
    const int64_t rows = stride == 1 ? c.axes[1].x : 1;
    c.axes[1] = {rows, rows, 1, 1, 1, 0};
  }
  const auto numbers = [&](int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = static_cast<float>(of(-4, 4));
    return values;
  };
  const auto& [d, h, w] = c.axes;
  problem.x = numbers(c.batch * d.x * h.x * w.x * c.groups);
  problem.y = numbers(c.batch * d.y * h.y * w.y * c.groups);
  problem.w = numbers(c.groups * h.kernel * w.kernel);
  problem.chunk = c.groups % 4 == 0 && of(0, 1) == 0 ? 16 : c.groups % 2 == 0 && of(0, 1) == 0 ? 8 : 4;
  problem.text = "seed " + std::to_string(seed);
  return problem;
}

// The sums as the interface defines them.
struct Sums {
  std::vector<float> y, x, w;
};
Sums plain(const Problem& problem) {
  const Conv& c = problem.conv;
  const auto& [d, h, w] = c.axes;
  Sums sums{std::vector<float>(problem.y.size()), std::vector<float>(problem.x.size()),
            std::vector<float>(problem.w.size())};
  for (int64_t n = 0; n < c.batch * d.x; ++n)
    for (int64_t oh = 0; oh < h.y; ++oh)
      for (int64_t ow = 0; ow < w.y; ++ow)
        for (int64_t kh = 0; kh < h.kernel; ++kh)
          for (int64_t kw = 0; kw < w.kernel; ++kw) {
            const int64_t ih = oh * h.stride - h.pad + kh * h.dilation,
                          iw = ow * w.stride - w.pad + kw * w.dilation;
            if (ih < 0 || ih >= h.x || iw < 0 || iw >= w.x) continue;
            for (int64_t ch = 0; ch < c.groups; ++ch) {
              const auto of_y = static_cast<size_t>(((n * h.y + oh) * w.y + ow) * c.groups + ch);
              const auto of_x = static_cast<size_t>(((n * h.x + ih) * w.x + iw) * c.groups + ch);
              const auto of_w = static_cast<size_t>((ch * h.kernel + kh) * w.kernel + kw);
              sums.y[of_y] += problem.x[of_x] * problem.w[of_w];
              sums.x[of_x] += problem.y[of_y] * problem.w[of_w];
              sums.w[of_w] += problem.x[of_x] * problem.y[of_y];
            }
          }
  return sums;
}

// A block of the kernels; rows arrive as early as they may.
template <int kTaps, LastForm kForm>
class Block {
 public:
  static constexpr LastForm kWindows = kForm;
  static constexpr LastTile kTile = last_tile(kTaps, kForm, sizeof(float));
  static constexpr int kV = kTile.vector;

  Block(const Problem& problem, const LastPlan& plan, int channel_block)
      : problem_(problem),
        p_(plan),
        first_channel_(channel_block * plan.lanes * kV),
        memory_(static_cast<size_t>(plan.shared) / sizeof(float), kNan) {}

  void gather(uint32_t item, const std::vector<float>& source, std::vector<float>& result,
              std::vector<int>& written) {
    const LastPlace at = last_place(p_, item);
    const LastOperand from{p_.h.source, p_.w.source, at.source_h, at.source_w, at.image};
    int slot = 0;
    const auto start = [&](int step) { stage_source(step, from, source); };
    for (int step = 0; step < at.steps; ++step) {
      start_ahead(step, at.steps, start);
      for (int i = 0; i < p_.threads(); ++i) {
        const LastThread thread = last_thread(p_, i);
        const int channel = first_channel_ + thread.lane * kV;
        if (channel >= p_.channels) continue;
        float w[kTaps * kTaps][kV] = {}, sums[kTile.rows][kTile.columns][kV] = {};
        for (int kh = 0; kh < p_.h.kernel; ++kh)
          for (int kw = 0; kw < p_.w.kernel; ++kw)
            w[kh * kTaps + kw][0] = problem_.w[static_cast<size_t>(
                (channel * p_.h.kernel + (p_.turned ? p_.h.kernel - 1 - kh : kh)) * p_.w.kernel +
                (p_.turned ? p_.w.kernel - 1 - kw : kw))];
        gather_tile<kTaps, kForm, int{sizeof(float)}>(p_, first_byte(p_, p_.source, thread, sizeof(float)),
                                                      slot, loader(), w, sums);
        each_result<kTile.rows, kTile.columns>(p_, at, thread, step, channel,
                                               [&](uint32_t element, int a, int b) {
                                                 result.at(element) = sums[a][b][0];
                                                 ++written.at(element);
                                               });
      }
      slot = next_slot(p_.source, slot, kTile.down);
    }
  }

  void weight(uint32_t item, std::vector<float>& result) {
    const LastPlace at = last_place(p_, item);
    const LastOperand from_x{p_.h.source, p_.w.source, at.source_h, at.source_w, at.image};
    const LastOperand from_y{p_.h.result, p_.w.result, at.result_h, at.result_w, at.image};
    const int results_at = p_.source.ring * p_.source.row_bytes;
    int x_slot = 0, y_slot = 0;
    const auto start = [&](int step) {
      stage_source(step, from_x, problem_.x);
      const int first = step * kTile.rows;
      stage<kTile.rows>(p_.results, from_y, first, first % p_.results.ring, results_at, problem_.y);
    };
    for (int step = 0; step < at.steps; ++step) {
      start_ahead(step, at.steps, start);
      for (int i = 0; i < p_.threads(); ++i) {
        const LastThread thread = last_thread(p_, i);
        const int channel = first_channel_ + thread.lane * kV;
        if (channel >= p_.channels) continue;
        float sums[kTaps * kTaps][kV] = {};
        weight_tile<kTaps, kForm, int{sizeof(float)}>(
            p_, first_byte(p_, p_.source, thread, sizeof(float)), x_slot,
            results_at + first_byte(p_, p_.results, thread, sizeof(float)), y_slot, loader(), sums);
        for (int kh = 0; kh < p_.h.kernel; ++kh)
          for (int kw = 0; kw < p_.w.kernel; ++kw)
            result.at(static_cast<size_t>((channel * p_.h.kernel + kh) * p_.w.kernel + kw)) +=
                sums[kh * kTaps + kw][0];
      }
      x_slot = next_slot(p_.source, x_slot, kTile.down);
      y_slot = next_slot(p_.results, y_slot, kTile.rows);
    }
  }

 private:
  template <class Start>
  static void start_ahead(int step, int steps, Start&& start) {
    for (int i = step == 0 ? 0 : step + kLastAhead; i <= step + kLastAhead && i < steps; ++i) start(i);
  }
  auto loader() const {
    return [this](int byte, float(&values)[kV]) { values[0] = memory_.at(static_cast<size_t>(byte) / 4); };
  }
  void stage_source(int step, const LastOperand& from, const std::vector<float>& source) {
    if (step == 0) return stage<kTile.source_rows>(p_.source, from, 0, 0, 0, source);
    const int first = kTile.source_rows + (step - 1) * kTile.down;
    stage<kTile.down>(p_.source, from, first, first % p_.source.ring, 0, source);
  }
  template <int kRows>
  void stage(const LastRows& rows, const LastOperand& from, int first, int slot, int base,
             const std::vector<float>& tensor) {
    for (int i = 0; i < p_.threads(); ++i) {
      const LastChunks chunks =
          last_chunks(p_, i, p_.threads(), problem_.chunk, sizeof(float), first_channel_);
      stage_rows<kRows>(p_, rows, from, chunks, first, slot, [&](int byte, uint32_t element, bool live) {
        for (int c = 0; c < problem_.chunk / 4; ++c)
          memory_.at(static_cast<size_t>((base + byte) / 4 + c)) =
              live ? tensor.at(element + static_cast<size_t>(c)) : 0.0f;
      });
    }
  }

  const Problem& problem_;
  const LastPlan& p_;
  int first_channel_;
  std::vector<float> memory_;
};

template <class Function>
void with_block(const Problem& problem, const LastPlan& p, Function&& function) {
  const auto with_taps = [&](auto taps) {
    constexpr int kTaps = decltype(taps)::value;
    for (int c = 0; c < p.channel_blocks; ++c) {
      if (p.form == LastForm::kDense) function(Block<kTaps, LastForm::kDense>(problem, p, c));
      if (p.form == LastForm::kStrided) function(Block<kTaps, LastForm::kStrided>(problem, p, c));
      if (p.form == LastForm::kSpread) function(Block<kTaps, LastForm::kSpread>(problem, p, c));
    }
  };
  p.tile.taps == 3   ? with_taps(std::integral_constant<int, 3>{})
  : p.tile.taps == 5 ? with_taps(std::integral_constant<int, 5>{})
                     : with_taps(std::integral_constant<int, 7>{});
}

void expect_plain_sums(int64_t room) {
  for (unsigned seed = 0; seed < kDraws; ++seed) {
    const Problem problem = draw(seed);
    SCOPED_TRACE(problem.text);
    ASSERT_TRUE(has_last_form(problem.conv));
    const Sums expected = plain(problem);
    for (const bool forward : {true, false}) {
      const LastPlan p = last_plan(problem.conv, forward ? LastPass::kForward : LastPass::kGradInput, room);
      std::vector<float> result((forward ? problem.y : problem.x).size(), kNan);
      std::vector<int> written(result.size());
      with_block(problem, p, [&](auto block) {
        for (uint32_t item = 0; item < p.items; ++item)
          block.gather(item, forward ? problem.x : problem.y, result, written);
      });
      ASSERT_EQ(result, forward ? expected.y : expected.x) << forward;
      ASSERT_TRUE(std::all_of(written.begin(), written.end(), [](int times) { return times == 1; }));
    }
    const LastPlan p = last_plan(problem.conv, LastPass::kGradWeight, room);
    std::vector<float> result(problem.w.size());
    with_block(problem, p, [&](auto block) {
      if constexpr (decltype(block)::kWindows != LastForm::kSpread)
        for (uint32_t item = 0; item < p.items; ++item) block.weight(item, result);
    });
    ASSERT_EQ(result, expected.w);
  }
}

TEST(DepthwiseLast, ThreadsMakeThePlainSums) { expect_plain_sums(227 << 10); }
TEST(DepthwiseLast, FewThreadsMakeThePlainSums) { expect_plain_sums(16 << 10); }

// What a launch may ask of a GPU, whatever the shape and the type.
TEST(DepthwiseLast, BlocksFitAMultiprocessor) {
  for (const int most_shared : {99 << 10, 163 << 10, 227 << 10})
    for (const DType dtype : {DType::kF32, DType::kF16})
      for (const int64_t channels : {1, 2, 8, 24, 64, 100, 1024})
        for (const int64_t size : {1, 4, 7, 8, 14, 33, 321})
          for (const int64_t kernel : {1, 3, 5, 7})
            for (const int64_t stride : {1, 2})
              for (const LastPass pass : {LastPass::kForward, LastPass::kGradInput, LastPass::kGradWeight}) {
                Conv c{};
                c.batch = 64, c.groups = channels, c.x_channels = c.y_channels = 1;
                c.axes[0] = {1, 1, 1, 1, 1, 0};
                c.axes[1] = c.axes[2] = {size, (size - 1) / stride + 1, kernel, stride, 1, kernel / 2};
                c.x.dtype = c.y.dtype = dtype;
                const LastPlan p = last_plan(c, pass, most_shared);
                EXPECT_LE(p.shared, most_shared) << channels << " " << size << " " << kernel;
                EXPECT_LE(p.threads(), kLastThreads);
                EXPECT_GE(p.threads(), p.place_bytes / static_cast<int>(size_of(dtype)));
                EXPECT_EQ(p.place_bytes % 16, 0);
                EXPECT_LT(p.channel_blocks, 65536);
                EXPECT_GE(p.channel_blocks * p.lanes * p.tile.vector, channels);
              }
}

}  // namespace
}  // namespace retrograd::kernels::cuda::depthwise_last_test
