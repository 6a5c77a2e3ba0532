// SPDX-License-Identifier: Apache-2.0
// The live terms of a result, against all terms of the convolution tried one after another.
#include "kernels/cuda/terms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace retrograd::kernels::cuda::terms_test {
namespace {

using Pairs = std::vector<std::pair<int64_t, int64_t>>;  // offsets into both factors

Conv draw_conv(std::mt19937& random) {
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  Conv p{};
  p.batch = draw(1, 2), p.groups = draw(1, 2);
  p.x_channels = draw(1, 2) == 1 ? draw(1, 3) : draw(8, 9);
  p.y_channels = draw(1, 2) == 1 ? draw(1, 3) : draw(8, 9);
  int64_t x_sizes[5] = {p.batch, p.groups * p.x_channels}, y_sizes[5] = {p.batch, p.groups * p.y_channels},
          w_sizes[5] = {p.groups * p.y_channels, p.x_channels};
  for (int i = 0; i < 3; ++i) {
    Axis& a = p.axes[i];
    a = {draw(1, 6), draw(1, 5), draw(1, i == 0 ? 2 : 4), draw(1, 4), draw(1, 4), draw(-1, 4)};
    if (draw(1, 4) > 1)
      a.y = std::max<int64_t>(1, (a.x + 2 * a.pad - a.dilation * (a.kernel - 1) - 1) / a.stride + 1);
    x_sizes[2 + i] = a.x, y_sizes[2 + i] = a.y, w_sizes[2 + i] = a.kernel;
  }
  const auto lay_out = [](Tensor& t, const int64_t(&sizes)[5]) {
    int64_t stride = 1;
    for (int axis : {1, 4, 0, 3, 2}) t.strides[axis] = stride, stride *= sizes[axis];
  };
  lay_out(p.x, x_sizes), lay_out(p.y, y_sizes), lay_out(p.w, w_sizes);
  return p;
}

int64_t position(const Axis& a, int64_t output, int64_t tap) {
  return output * a.stride - a.pad + tap * a.dilation;
}

// function(x, y, w) of every term there is.
template <class Function>
void each_term(const Conv& p, Function&& function) {
  const auto& [ad, ah, aw] = p.axes;
  for (int64_t n = 0; n < p.batch; ++n)
    for (int64_t o = 0; o < p.groups * p.y_channels; ++o)
      for (int64_t c = 0; c < p.x_channels; ++c)
        for (int64_t i = 0; i < ad.y * ah.y * aw.y; ++i)
          for (int64_t t = 0; t < ad.kernel * ah.kernel * aw.kernel; ++t) {
            const Index5 y{n, o, i / aw.y / ah.y, i / aw.y % ah.y, i % aw.y};
            const Index5 w{o, c, t / aw.kernel / ah.kernel, t / aw.kernel % ah.kernel, t % aw.kernel};
            const Index5 x{n, o / p.y_channels * p.x_channels + c, position(ad, y.d, w.d),
                           position(ah, y.h, w.h), position(aw, y.w, w.w)};
            if (x.d >= 0 && x.d < ad.x && x.h >= 0 && x.h < ah.x && x.w >= 0 && x.w < aw.x) function(x, y, w);
          }
}

// As sum_of_terms goes over them, in pieces of three terms.
Pairs walked(const Terms& of_result, int64_t begin, int64_t end, int64_t step) {
  constexpr int kPiece = 3;
  const Terms terms = joined(of_result);
  Pairs pairs;
  for (int64_t first = begin; first < begin + step * kPiece && first < end; first += kPiece) {
    TermWalk walk(terms, first, step * kPiece);
    for (int64_t i = first; i < end; i += step * kPiece, walk.next()) {
      TermWalk each = walk.each();
      for (int j = 0; j < kPiece && i + j < end; ++j, each.next()) {
        pairs.emplace_back(each.a, each.b);
        if (j < walk.run()) {
          EXPECT_EQ(each.a, walk.a + j * terms.a_step[3]);
          EXPECT_EQ(each.b, walk.b + j * terms.b_step[3]);
        }
      }
    }
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

bool is_same(const Index5& a, const Index5& b) {
  return a.n == b.n && a.c == b.c && a.d == b.d && a.h == b.h && a.w == b.w;
}

TEST(TermsTest, EachResultHasItsLiveTermsOnce) {
  std::mt19937 random(5);
  const auto draw = [&](int64_t end) { return std::uniform_int_distribution<int64_t>(0, end - 1)(random); };
  int64_t found = 0;
  for (int round = 0; round < 400; ++round) {
    const Conv p = draw_conv(random);
    const auto& [d, h, w] = p.axes;
    const Index5 of_y{draw(p.batch), draw(p.groups * p.y_channels), draw(d.y), draw(h.y), draw(w.y)};
    const Index5 of_x{draw(p.batch), draw(p.groups * p.x_channels), draw(d.x), draw(h.x), draw(w.x)};
    const Index5 of_w{draw(p.groups * p.y_channels), draw(p.x_channels), draw(d.kernel), draw(h.kernel),
                      draw(w.kernel)};
    Pairs expected[3];
    each_term(p, [&](const Index5& x, const Index5& y, const Index5& tap) {
      const int64_t at_x = offset_of(p.x, x), at_y = offset_of(p.y, y), at_w = offset_of(p.w, tap);
      if (is_same(y, of_y)) expected[0].emplace_back(at_x, at_w);
      if (is_same(x, of_x)) expected[1].emplace_back(at_y, at_w);
      if (is_same(tap, of_w)) expected[2].emplace_back(at_x, at_y);
    });
    const Terms terms[3] = {terms_of(p, Result::kForward, of_y), terms_of(p, Result::kGradInput, of_x),
                            terms_of(p, Result::kGradWeight, of_w)};
    for (int i = 0; i < 3; ++i) {
      std::sort(expected[i].begin(), expected[i].end());
      ASSERT_EQ(terms[i].all(), static_cast<int64_t>(expected[i].size())) << round << ' ' << i;
      for (int64_t step : {1, 2, 8, 32})
        ASSERT_EQ(walked(terms[i], 0, terms[i].all(), step), expected[i]) << round << ' ' << i << ' ' << step;
      found += terms[i].all();
    }
  }
  EXPECT_GT(found, 2500);
}

// A walk over a grid with lines and planes that are not there, cut anywhere.
TEST(TermsTest, PartsOfAGridHoldTheTermsOfTheirPlaces) {
  std::mt19937 random(6);
  for (int round = 0; round < 200; ++round) {
    const Conv p = draw_conv(random);
    const Index5 at{0, 0, round % p.axes[0].kernel, round % p.axes[1].kernel, round % p.axes[2].kernel};
    const Terms terms = terms_of(p, Result::kGradWeight, at);
    const int64_t back = round % 2;
    const PlaceGrid grid{{-back, 0, 0}, {p.axes[0].y + back, p.axes[1].y + 1, p.axes[2].y + 2}};
    const int64_t taps[3] = {at.d, at.h, at.w};
    const int64_t all = p.batch * grid.count[0] * grid.count[1] * grid.count[2];
    int64_t live = 0;
    for (int64_t place = 0; place < all; ++place) {
      ASSERT_EQ(terms_before(terms, grid, place), live) << round << ' ' << place;
      int64_t rest = place;
      bool inside = true;
      for (int i = 2; i >= 0; --i) {
        const int64_t output = grid.first[i] + rest % grid.count[i], x = position(p.axes[i], output, taps[i]);
        inside = inside && output >= 0 && output < p.axes[i].y && x >= 0 && x < p.axes[i].x;
        rest /= grid.count[i];
      }
      live += inside;
    }
    EXPECT_EQ(terms_before(terms, grid, all), terms.all());
    EXPECT_EQ(live, terms.all());
    Pairs whole = walked(terms, 0, live, 4), parts = walked(terms, 0, live / 3, 4);
    const Pairs rest = walked(terms, live / 3, live, 4);
    parts.insert(parts.end(), rest.begin(), rest.end());
    std::sort(parts.begin(), parts.end());
    EXPECT_EQ(parts, whole);
  }
}

// A warp is used as a whole: by lanes of one sum, or by many sums.
TEST(TermsTest, LanesOfASumAreThoseThatOthersLeave) {
  EXPECT_EQ(lanes_of_sum(1, 2304), 32);
  EXPECT_EQ(lanes_of_sum(9, 2304), 16);
  EXPECT_EQ(lanes_of_sum(32, 2304), 1);
  EXPECT_EQ(lanes_of_sum(1, 9), 2);
  EXPECT_EQ(lanes_of_sum(16, 400), 2);
  EXPECT_EQ(lanes_of_sum(32, 100, 132), 1);
  EXPECT_EQ(lanes_of_sum(1, int64_t{1} << 40), 32);
}

}  // namespace
}  // namespace retrograd::kernels::cuda::terms_test
