// SPDX-License-Identifier: Apache-2.0
// Products of rows, planned without a GPU: a folded product puts every weight of a y channel where the window
// has it and no two in one place; what is stored as a vector lies side by side and aligned.
#include "engines/cuda/dense/gather_way.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "engines/cuda/shapes.h"
#include "kernels/cuda/dense/gather_product.h"
#include "support/generator/draw.h"

namespace retrograd::test {
namespace {

using engines::cuda::columns_of;
using engines::cuda::folded_axes;
using engines::cuda::folded_covers_x;
using engines::cuda::places_of;
using engines::cuda::product_axes;
using engines::cuda::taps_of;
using kernels::cuda::Columns;
using problem::ConvPass;
using problem::ConvPassKind;
using problem::Window;

Window drawn_window(Draw& draw) {
  Window w;
  w.kernel = draw.number(1, 5);
  w.stride = draw.number(1, 6);
  w.dilation = draw.number(1, 3);
  w.pad_lo = draw.chance(50) ? 0 : draw.number(-1, 3);
  w.y = draw.number(1, 4);
  w.x = std::max<int64_t>(
      1, draw.chance(50) ? w.y * w.stride : position(w, w.y - 1, w.kernel - 1) + 1 + draw.number(-2, 3));
  return w;
}

ConvPass pass_of(const Window& w) {
  ConvPass pass;
  pass.batch = 1;
  pass.x_channels = pass.y_channels = 1;
  pass.axes = {Window{}, Window{}, w};
  return pass;
}

TEST(GatherWayTest, AFoldedProductHasOnePlaceForEachTap) {
  Draw draw(1);
  int folded = 0, covering = 0;
  for (int i = 0; i < 4000; ++i) {
    const Window w = drawn_window(draw);
    std::multiset<int64_t> places;
    for (int64_t y = 0; y < w.y; ++y)
      for (int64_t t = 0; t < w.kernel; ++t) places.insert(position(w, y, t));
    const bool shared =
        std::any_of(places.begin(), places.end(), [&](int64_t p) { return places.count(p) > 1; });
    const auto axes = folded_axes(pass_of(w));
    if (!axes) {
      // Windows that would meet if there were more of them are refused, too.
      EXPECT_TRUE(shared || w.stride == 1 || w.kernel > 1);
      continue;
    }
    ++folded;
    EXPECT_FALSE(shared);
    const auto& axis = (*axes)[2];
    for (int64_t y = 0; y < w.y; ++y) EXPECT_EQ(y * axis.result_step + axis.result_first, position(w, y, 0));
    bool covers = static_cast<int64_t>(places.size()) == w.x;
    for (const int64_t p : places) covers = covers && p >= 0 && p < w.x;
    if (folded_covers_x(pass_of(w))) {
      ++covering;
      EXPECT_TRUE(covers);
    }
  }
  EXPECT_GT(folded, 500);
  EXPECT_GT(covering, 50);
}

struct DrawnProduct {
  ConvPass pass;
  kernels::cuda::GatherProduct product{};
  std::vector<kernels::cuda::ProductAxes> residues;
};

// Any dense layout, sometimes with a gap, at an address that is aligned or not.
DrawnProduct drawn_product(Draw& draw) {
  DrawnProduct drawn;
  ConvPass& pass = drawn.pass;
  pass.kind = draw.chance(40) ? ConvPassKind::kForward : ConvPassKind::kGradInput;
  pass.batch = draw.number(1, 3);
  pass.groups = draw.number(1, 2);
  pass.x_channels = pass.groups * draw.pick<int64_t>({1, 2, 3, 4, 8, 12, 16});
  pass.y_channels = pass.groups * draw.pick<int64_t>({1, 4, 8, 12});
  for (Window& w : pass.axes) {
    w.kernel = draw.pick<int64_t>({1, 2, 4, 8});
    w.stride = draw.chance(60) ? w.kernel : 1;
    w.y = draw.number(1, 4);
    w.x = position(w, w.y - 1, w.kernel - 1) + 1;
  }
  const bool forward = pass.kind == ConvPassKind::kForward;
  problem::PassTensor& result = forward ? pass.y : pass.x;
  result.dtype = draw.pick({DType::kF32, DType::kF16, DType::kBF16});
  const auto size = [&](size_t axis) {
    if (axis == 0) return pass.batch;
    if (axis == 1) return forward ? pass.y_channels : pass.x_channels;
    return forward ? pass.axes[axis - 2].y : pass.axes[axis - 2].x;
  };
  int64_t stride = 1;
  const std::array<size_t, 5> planes{4, 3, 2, 1, 0}, last{1, 4, 3, 2, 0};
  for (const size_t axis : draw.chance(50) ? planes : last) {
    result.strides[axis] = stride;
    stride = stride * size(axis) + (draw.chance(5) ? 1 : 0);
  }
  drawn.residues = product_axes(pass);
  if (const auto folded = folded_axes(pass); folded && draw.chance(70)) {
    drawn.residues = {*folded};
    drawn.product.columns = draw.chance(50) ? Columns::kFoldedTapsFast : Columns::kFoldedChannelsFast;
  }
  drawn.product.conv = engines::cuda::shape_of(pass);
  drawn.product.forward = forward;
  auto* const address = reinterpret_cast<std::byte*>(1024 + (draw.chance(80) ? 0 : 4));
  (forward ? drawn.product.conv.y : drawn.product.conv.x).data = address;
  return drawn;
}

// Where result (place m of the residue, column) of group 0 lies, from its definition.
int64_t offset_of(const DrawnProduct& drawn, const kernels::cuda::ProductAxes& residue, int64_t m,
                  int64_t column) {
  const ConvPass& pass = drawn.pass;
  const auto& strides = pass.result().strides;
  int64_t channel = column, tap[3] = {};
  if (drawn.product.columns != Columns::kChannels) {
    const int64_t taps = taps_of(pass), channels = pass.x_channels_per_group();
    const bool taps_fast = drawn.product.columns == Columns::kFoldedTapsFast;
    int64_t t = taps_fast ? column % taps : column / channels;
    channel = taps_fast ? column / taps : column % channels;
    for (size_t a = 3; a-- > 0; t /= pass.axes[a].kernel) tap[a] = t % pass.axes[a].kernel;
  }
  int64_t offset = channel * strides[1];
  for (size_t a = 3; a-- > 0; m /= residue[a].results)
    offset += (m % residue[a].results * residue[a].result_step + residue[a].result_first +
               tap[a] * pass.axes[a].dilation) *
              strides[2 + a];
  return offset + m * strides[0];
}

TEST(GatherWayTest, RunsLieSideBySideAndAligned) {
  Draw draw(2);
  int vectors = 0;
  for (int i = 0; i < 3000; ++i) {
    const DrawnProduct drawn = drawn_product(draw);
    const auto run = gather_run(drawn.product, drawn.residues);
    if (run.length == 1) continue;
    ++vectors;
    const auto& result = drawn.product.forward ? drawn.product.conv.y : drawn.product.conv.x;
    const auto size = static_cast<int64_t>(size_of(result.dtype));
    ASSERT_TRUE(run.length * size == 16 || run.length * size == 8);
    const int64_t columns =
        columns_of(drawn.pass) * (drawn.product.columns == Columns::kChannels ? 1 : taps_of(drawn.pass));
    for (const auto& residue : drawn.residues) {
      const int64_t places = places_of(drawn.pass, residue);
      for (int64_t m = 0; m < places; ++m)
        for (int64_t c = 0; c < columns; ++c) {
          const int64_t fast = run.by_columns ? c : m, all = run.by_columns ? columns : places;
          const int64_t first = offset_of(drawn, residue, m, c);
          if (fast % run.length == 0) {
            ASSERT_LE(fast + run.length, all);
            ASSERT_EQ((reinterpret_cast<intptr_t>(result.data) + first * size) % (run.length * size), 0);
          } else {
            ASSERT_EQ(first, 1 + (run.by_columns ? offset_of(drawn, residue, m, c - 1)
                                                 : offset_of(drawn, residue, m - 1, c)));
          }
        }
    }
  }
  EXPECT_GT(vectors, 300);
}

}  // namespace
}  // namespace retrograd::test
