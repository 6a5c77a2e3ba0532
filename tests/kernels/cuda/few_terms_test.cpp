// SPDX-License-Identifier: Apache-2.0
// forward and grad_input with few terms on a GPU: the plan, and the terms that a thread gathers, run here
// place by place against the sums of problem/pass.h.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>
#include <utility>
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
  bool forward;
  std::vector<float> from, w;
  int64_t to_elements;
};

Problem draw(unsigned seed) {
  Draws draws(seed);
  Problem problem{};
  problem.forward = draws.of(0, 1) == 0;
  Conv& c = problem.conv;
  c.batch = draws.of(1, 4);
  c.groups = draws.of(1, 3);
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
  const int64_t added_up = draws.of(1, kFewTerms / taps);
  const int64_t results = draws.of(0, 2) == 0 ? draws.of(30, 80) : draws.of(1, 9);
  c.x_channels = problem.forward ? added_up : results;
  c.y_channels = problem.forward ? results : added_up;
  if (draws.of(0, 1) == 0) c.x.dtype = c.y.dtype = c.w.dtype = DType::kF16;  // vectors of 8 channels, not 4
  const auto& [d, h, w] = c.axes;
  const int64_t x = lay_out(c.x, {c.batch, c.groups * c.x_channels, d.x, h.x, w.x}, draws.of(0, 1) == 0);
  const int64_t y = lay_out(c.y, {c.batch, c.groups * c.y_channels, d.y, h.y, w.y}, draws.of(0, 1) == 0);
  problem.from = draws.numbers(problem.forward ? x : y);
  problem.to_elements = problem.forward ? y : x;
  problem.w = draws.numbers(lay_out(
      c.w, {c.groups * c.y_channels, c.x_channels, d.kernel, h.kernel, w.kernel}, draws.of(0, 1) == 0));
  return problem;
}

// y = x ⋆ w seen from either side, product by product.
std::vector<float> defined(const Problem& problem) {
  const Conv& c = problem.conv;
  const auto& [d, h, w] = c.axes;
  std::vector<float> to(static_cast<size_t>(problem.to_elements), 0.0f);
  const auto add = [&](int64_t x, int64_t y, int64_t weight) {
    const auto [result, source] = problem.forward ? std::pair(y, x) : std::pair(x, y);
    to[static_cast<size_t>(result)] +=
        problem.from[static_cast<size_t>(source)] * problem.w[static_cast<size_t>(weight)];
  };
  const int64_t outputs = d.y * h.y * w.y, taps = d.kernel * h.kernel * w.kernel;
  for (int64_t p = 0; p < outputs; ++p)
    for (int64_t t = 0; t < taps; ++t) {
      const std::array<int64_t, 3> o{p / w.y / h.y, p / w.y % h.y, p % w.y};
      const std::array<int64_t, 3> k{t / w.kernel / h.kernel, t / w.kernel % h.kernel, t % w.kernel};
      int64_t x = 0, y = 0, weight = 0;
      bool inside = true;
      for (size_t a = 0; a < 3; ++a) {
        const int64_t q = o[a] * c.axes[a].stride - c.axes[a].pad + k[a] * c.axes[a].dilation;
        inside = inside && q >= 0 && q < c.axes[a].x;
        x += q * c.x.strides[a + 2], y += o[a] * c.y.strides[a + 2], weight += k[a] * c.w.strides[a + 2];
      }
      if (!inside) continue;
      for (int64_t n = 0; n < c.batch; ++n)
        for (int64_t g = 0; g < c.groups; ++g)
          for (int64_t i = 0; i < c.x_channels; ++i)
            for (int64_t j = 0; j < c.y_channels; ++j)
              add(x + n * c.x.strides[0] + (g * c.x_channels + i) * c.x.strides[1],
                  y + n * c.y.strides[0] + (g * c.y_channels + j) * c.y.strides[1],
                  weight + (g * c.y_channels + j) * c.w.strides[0] + i * c.w.strides[1]);
    }
  return to;
}

TEST(FewTermsTest, EveryResultHasItsTerms) {
  std::set<int> vectors;
  for (unsigned seed = 0; seed < kDraws; ++seed) {
    const Problem problem = draw(seed);
    const Conv& c = problem.conv;
    const FewTermsPlan p = few_terms_plan(c, problem.forward);
    const FewTermsOperands o = few_terms_operands(c, problem.forward);
    const int places = few_terms_each(p.filled) * kFewTermsThreads;
    vectors.insert(p.vector);
    ASSERT_LE(p.terms, p.filled);
    ASSERT_LE(p.filled, kFewTerms);
    ASSERT_GE(p.splits * p.of_split, p.to_channels);
    ASSERT_LT((p.splits - 1) * p.of_split, p.to_channels);
    ASSERT_EQ(p.of_split % kFewTermsChunk, 0);
    ASSERT_GE(p.blocks * places, int64_t{p.places});
    ASSERT_LE(p.shared, (48 << 10) - places * 8 - kFewTermsChunk * 4);
    const std::vector<float> expected = defined(problem);
    std::vector<int> written(expected.size(), 0);
    for (uint32_t number = 0; number < p.places; ++number) {
      const FewTermsPlace at = few_terms_place(p, number);
      for (int64_t group = 0; group < c.groups; ++group) {
        std::vector<float> values(kFewTerms, 0.0f);
        uint64_t put = 0;
        const auto gather = [&](int vector) {
          return [&, vector](int term, int64_t offset) {
            for (int j = 0; j < vector; ++j) {
              put |= uint64_t{1} << (term + j);
              values[static_cast<size_t>(term + j)] =
                  problem.from[static_cast<size_t>(group * p.from_channels * o.from.strides[1] + offset + j)];
            }
          };
        };
        const uint64_t live = p.vector == 1   ? few_terms_of<uint64_t, 1>(p, o.from, at, gather(1))
                              : p.vector == 4 ? few_terms_of<uint64_t, 4>(p, o.from, at, gather(4))
                                              : few_terms_of<uint64_t, 8>(p, o.from, at, gather(8));
        ASSERT_EQ(live, put);
        for (int64_t i = 0; i < p.to_channels; ++i) {
          float sum = 0;
          for (int term = 0; term < p.terms; ++term)
            sum += values[static_cast<size_t>(term)] *
                   problem.w[static_cast<size_t>(group * o.w_group + i * o.w.strides[1] +
                                                 few_terms_weight(p, o.w, term))];
          const auto result =
              static_cast<size_t>(few_terms_offset(o.to, at) + (group * p.to_channels + i) * o.to.strides[1]);
          ASSERT_EQ(sum, expected[result]) << "seed " << seed;
          ++written[result];
        }
      }
    }
    for (const int times : written) ASSERT_EQ(times, 1) << "seed " << seed;
  }
  EXPECT_EQ(vectors, (std::set<int>{1, 4, 8}));
}

TEST(FewTermsTest, ChannelsSideBySideAreReadInVectors) {
  Conv c{};
  c.batch = 2, c.groups = 3, c.x_channels = 8, c.y_channels = 20;
  c.axes[0] = c.axes[1] = {1, 1, 1, 1, 1, 0};
  c.axes[2] = {100, 100, 3, 1, 1, 1};
  c.x.dtype = c.y.dtype = c.w.dtype = DType::kF16;
  lay_out(c.x, {2, 24, 1, 1, 100}, true);
  lay_out(c.y, {2, 60, 1, 1, 100}, true);
  EXPECT_EQ(few_terms_plan(c, true).vector, 8);
  EXPECT_EQ(few_terms_plan(c, false).vector, 1);  // 20 channels are no whole vectors
  c.x.strides[0] += 1;
  EXPECT_EQ(few_terms_plan(c, true).vector, 1);
}

TEST(FewTermsTest, ChannelsAreSplitWherePlacesAreFew) {
  Conv c{};
  c.batch = 1, c.groups = 1, c.x_channels = 256, c.y_channels = 7;
  c.axes[0] = c.axes[1] = {1, 1, 1, 1, 1, 0};
  c.axes[2] = {1000, 1000, 1, 1, 1, 0};
  lay_out(c.x, {1, 256, 1, 1, 1000}, false);
  lay_out(c.y, {1, 7, 1, 1, 1000}, false);
  EXPECT_EQ(few_terms_plan(c, false).splits, 8);
  c.axes[2] = {1000000, 1000000, 1, 1, 1, 0};
  EXPECT_EQ(few_terms_plan(c, false).splits, 1);
  EXPECT_EQ(few_terms_plan(c, false).filled, 8);
  EXPECT_FALSE(few_terms_plan(c, false).channels_fast);
}

}  // namespace
}  // namespace retrograd::kernels::cuda::few_terms_test
