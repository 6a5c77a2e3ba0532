// SPDX-License-Identifier: Apache-2.0
// Columns and places of few_places: every product of the formula, and none beyond the edge.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include "kernels/cuda/dense_weight/few_places.h"

namespace retrograd::kernels::cuda {
namespace {

using Term = std::tuple<int64_t, int64_t, int64_t, int64_t>;  // column, place of y, channel and place of x

Conv conv_of(int64_t batch, int64_t x_channels, const std::array<Axis, 3>& axes) {
  Conv conv{};
  conv.batch = batch;
  conv.groups = 1;
  conv.x_channels = x_channels;
  conv.y_channels = 1;
  std::copy(axes.begin(), axes.end(), conv.axes);
  return conv;
}

std::set<Term> by_definition(const Conv& conv, bool channels_inside) {
  const auto& [d, h, w] = conv.axes;
  const int64_t taps = d.kernel * h.kernel * w.kernel, places = conv.batch * d.y * h.y * w.y;
  std::set<Term> terms;
  for (int64_t tap = 0; tap < taps; ++tap)
    for (int64_t place = 0; place < places; ++place) {
      const int64_t of_tap[3] = {tap / (h.kernel * w.kernel), tap / w.kernel % h.kernel, tap % w.kernel};
      const int64_t outputs[3] = {place / (h.y * w.y) % d.y, place / w.y % h.y, place % w.y};
      int64_t x = place / (d.y * h.y * w.y);
      bool inside = true;
      for (int i = 0; i < 3; ++i) {
        const Axis& a = conv.axes[i];
        const int64_t position = outputs[i] * a.stride - a.pad + of_tap[i] * a.dilation;
        inside = inside && position >= 0 && position < a.x;
        x = x * a.x + position;
      }
      for (int64_t c = 0; inside && c < conv.x_channels; ++c)
        terms.emplace(channels_inside ? tap * conv.x_channels + c : c * taps + tap, place, c, x);
    }
  return terms;
}

std::set<Term> as_counted(const FewPlaces& p) {
  std::set<Term> terms;
  for (int number = 0; number < p.columns; ++number)
    for (int i = 0; i < p.places; ++i) {
      const FewColumn column = column_of(p, number);
      const FewPlace place = place_of(p, i);
      int64_t position[3];
      if (!meets(p, place, column, position)) continue;
      int64_t x = place.image;
      for (int a = 0; a < 3; ++a) x = x * p.conv.axes[a].x + position[a];
      terms.emplace(number, i, column.channel, x);
    }
  return terms;
}

TEST(FewPlaces, AreTheTermsOfTheFormula) {
  const Axis none{1, 1, 1, 1, 1, 0};
  const std::vector<std::pair<Conv, bool>> padded = {
      {conv_of(2, 5, {none, {8, 1, 7, 2, 1, 0}, {8, 1, 7, 2, 1, 0}}), false},
      {conv_of(1, 3, {none, {3, 3, 3, 1, 1, 1}, {4, 2, 3, 2, 1, 1}}), true},
      {conv_of(1, 2, {Axis{3, 1, 3, 1, 1, 0}, {9, 2, 2, 3, 1, -2}, {4, 4, 1, 1, 1, 0}}), false},
      {conv_of(1, 2, {none, {2, 3, 1, 1, 1, 0}, {5, 1, 3, 1, 2, 0}}), true},
  };
  for (const auto& [conv, is_padded] : padded)
    for (const bool channels_inside : {false, true}) {
      const FewPlaces few = few_places_of(conv, channels_inside);
      EXPECT_EQ(few.padded, is_padded);
      EXPECT_EQ(as_counted(few), by_definition(conv, channels_inside));
    }
}

}  // namespace
}  // namespace retrograd::kernels::cuda
