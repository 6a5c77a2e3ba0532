// SPDX-License-Identifier: Apache-2.0
// grad_input with few terms on a GPU: the plan, and the terms that a thread gathers, run here place by place
// against the sums of problem/pass.h.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

#include "kernels/cuda/stems/few_terms_plan.h"

namespace retrograd::kernels::cuda::few_terms_test {
namespace {

constexpr unsigned kDraws = 300;

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

// Dense, planes or channels last.
int64_t lay_out(Tensor& tensor, const std::array<int64_t, 5>& sizes, bool last) {
  constexpr std::array<size_t, 5> kPlanes{4, 3, 2, 1, 0}, kLast{1, 4, 3, 2, 0};
  int64_t stride = 1;
  for (const size_t axis : last ? kLast : kPlanes) {
    tensor.strides[axis] = stride;
    stride *= sizes[axis];
  }
  return stride;
}

struct Problem {
  Conv conv;
  std::vector<float> y, w;
  int64_t x_elements;
};

Problem draw(unsigned seed) {
  Draws draws(seed);
  Problem problem{};
  Conv& c = problem.conv;
  c.batch = draws.of(1, 4);
  c.groups = draws.of(1, 3);
  c.x_channels = draws.of(0, 2) == 0 ? draws.of(30, 80) : draws.of(1, 9);
  int64_t taps = 1;
  for (Axis& a : c.axes) {
    a = {1, 1, 1, 1, 1, 0};
    if (draws.of(0, 3) == 0) continue;
    a.kernel = draws.of(1, std::min<int64_t>(4, kFewTerms / taps));
    a.stride = draws.of(1, 4), a.dilation = draws.of(1, 3), a.pad = draws.of(-2, 5);
    a.x = draws.of(1, 9);
    a.y = draws.of(1, 7);
    taps *= a.kernel;
  }
  c.y_channels = draws.of(1, kFewTerms / taps);
  const auto& [d, h, w] = c.axes;
  problem.x_elements = lay_out(c.x, {c.batch, c.groups * c.x_channels, d.x, h.x, w.x}, draws.of(0, 1) == 0);
  problem.y =
      draws.numbers(lay_out(c.y, {c.batch, c.groups * c.y_channels, d.y, h.y, w.y}, draws.of(0, 1) == 0));
  problem.w = draws.numbers(lay_out(
      c.w, {c.groups * c.y_channels, c.x_channels, d.kernel, h.kernel, w.kernel}, draws.of(0, 1) == 0));
  return problem;
}

float defined(const Problem& problem, int64_t n, int64_t group, int64_t i, const FewTermsPlace& q) {
  const Conv& c = problem.conv;
  const std::array<int64_t, 3> place{q.d, q.h, q.w};
  float sum = 0;
  std::array<int64_t, 3> o{}, t{};
  const auto inside = [&](size_t a) {
    return o[a] * c.axes[a].stride - c.axes[a].pad + t[a] * c.axes[a].dilation == place[a];
  };
  for (o[0] = 0; o[0] < c.axes[0].y; ++o[0])
    for (t[0] = 0; t[0] < c.axes[0].kernel; ++t[0])
      for (o[1] = 0; inside(0) && o[1] < c.axes[1].y; ++o[1])
        for (t[1] = 0; t[1] < c.axes[1].kernel; ++t[1])
          for (o[2] = 0; inside(1) && o[2] < c.axes[2].y; ++o[2])
            for (t[2] = 0; t[2] < c.axes[2].kernel; ++t[2]) {
              if (!inside(2)) continue;
              for (int64_t k = 0; k < c.y_channels; ++k) {
                const int64_t channel = group * c.y_channels + k;
                const auto at_y = n * c.y.strides[0] + channel * c.y.strides[1] + o[0] * c.y.strides[2] +
                                  o[1] * c.y.strides[3] + o[2] * c.y.strides[4];
                const auto at_w = channel * c.w.strides[0] + i * c.w.strides[1] + t[0] * c.w.strides[2] +
                                  t[1] * c.w.strides[3] + t[2] * c.w.strides[4];
                sum += problem.y[static_cast<size_t>(at_y)] * problem.w[static_cast<size_t>(at_w)];
              }
            }
  return sum;
}

TEST(FewTermsTest, EveryResultHasItsTerms) {
  for (unsigned seed = 0; seed < kDraws; ++seed) {
    const Problem problem = draw(seed);
    const Conv& c = problem.conv;
    const FewTermsPlan p = few_terms_plan(c);
    ASSERT_LE(p.terms, p.filled);
    ASSERT_LE(p.filled, kFewTerms);
    ASSERT_GE(p.splits * p.of_split, p.x_channels);
    ASSERT_LT((p.splits - 1) * p.of_split, p.x_channels);
    ASSERT_EQ(p.of_split % kFewTermsChunk, 0);
    ASSERT_GE(p.blocks * kFewTermsPlaces, int64_t{p.places});
    ASSERT_LE(p.shared, (48 << 10) - kFewTermsPlaces * 8);
    std::vector<int> written(static_cast<size_t>(problem.x_elements), 0);
    for (uint32_t number = 0; number < p.places; ++number) {
      const FewTermsPlace at = few_terms_place(p, number);
      for (int64_t group = 0; group < c.groups; ++group) {
        std::vector<float> values(kFewTerms, 0.0f);
        uint32_t put = 0;
        const uint32_t live = few_terms_of(p, c.y, at, [&](int term, int64_t offset) {
          put |= 1u << term;
          values[static_cast<size_t>(term)] =
              problem.y[static_cast<size_t>(group * c.y_channels * c.y.strides[1] + offset)];
        });
        ASSERT_EQ(live, put);
        for (int64_t i = 0; i < c.x_channels; ++i) {
          float sum = 0;
          for (int term = 0; term < p.terms; ++term)
            sum += values[static_cast<size_t>(term)] *
                   problem.w[static_cast<size_t>(group * c.y_channels * c.w.strides[0] + i * c.w.strides[1] +
                                                 few_terms_weight(p, c.w, term))];
          ASSERT_EQ(sum, defined(problem, at.n, group, i, at)) << "seed " << seed;
          ++written[static_cast<size_t>(few_terms_offset(c.x, at) +
                                        (group * c.x_channels + i) * c.x.strides[1])];
        }
      }
    }
    for (const int times : written) ASSERT_EQ(times, 1) << "seed " << seed;
  }
}

TEST(FewTermsTest, ChannelsAreSplitWherePlacesAreFew) {
  Conv c{};
  c.batch = 1, c.groups = 1, c.x_channels = 256, c.y_channels = 7;
  c.axes[0] = c.axes[1] = {1, 1, 1, 1, 1, 0};
  c.axes[2] = {1000, 1000, 1, 1, 1, 0};
  lay_out(c.x, {1, 256, 1, 1, 1000}, false);
  lay_out(c.y, {1, 7, 1, 1, 1000}, false);
  EXPECT_EQ(few_terms_plan(c).splits, 8);
  c.axes[2] = {1000000, 1000000, 1, 1, 1, 0};
  EXPECT_EQ(few_terms_plan(c).splits, 1);
  EXPECT_EQ(few_terms_plan(c).filled, 8);
  EXPECT_FALSE(few_terms_plan(c).channels_fast);
}

}  // namespace
}  // namespace retrograd::kernels::cuda::few_terms_test
