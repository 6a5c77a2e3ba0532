// SPDX-License-Identifier: Apache-2.0
// Rows of patches hold what the window says, and nothing where it says nothing.
#include "kernels/cuda/layout/patch_columns.h"

#include <gtest/gtest.h>

#include "support/generator/draw.h"

namespace retrograd::kernels::cuda::patches {
namespace {

using test::Draw;

Conv drawn_conv(Draw& draw) {
  Conv conv{};
  conv.batch = draw.number(1, 2);
  conv.groups = draw.number(1, 2);
  conv.x_channels = draw.number(1, 5);
  for (Axis& a : conv.axes)
    a = {.x = draw.number(1, 5),
         .y = draw.number(1, 4),
         .kernel = draw.number(1, 3),
         .stride = draw.number(1, 3),
         .dilation = draw.number(1, 3),
         .pad = draw.number(-2, 4)};
  for (int64_t& stride : conv.x.strides) stride = draw.number(-40, 40);
  return conv;
}

TEST(PatchColumnsTest, LieWhereTheWindowSays) {
  Draw draw(5);
  for (int i = 0; i < 300; ++i) {
    const Conv conv = drawn_conv(draw);
    const RowType type = draw.pick({RowType::kF16, RowType::kF32});
    const Patches p = patches_of(conv, type);
    const Axis(&a)[3] = conv.axes;
    const int64_t taps = a[0].kernel * a[1].kernel * a[2].kernel, chunk = chunk_elements(type);
    ASSERT_EQ(p.places, conv.batch * a[0].y * a[1].y * a[2].y);
    ASSERT_EQ(p.columns, conv.x_channels * taps);
    ASSERT_GE(p.chunks * chunk, p.columns);
    ASSERT_LT(p.chunks * chunk, p.columns + chunk);
    ASSERT_EQ(p.row, conv.groups * p.chunks * chunk);
    for (uint32_t place = 0; place < p.places; ++place) {
      const Place from(p, place);
      int64_t output[3], rest = place;
      for (int b = 2; b >= 0; --b) {
        output[b] = rest % a[b].y;
        rest /= a[b].y;
      }
      const int64_t group = place % conv.groups;
      for (int column = 0; column < p.chunks * chunk; ++column) {
        const Column c = column_of(p, group, column);
        int64_t tap = column % taps, offset = rest * conv.x.strides[0] +
                                              (group * conv.x_channels + column / taps) * conv.x.strides[1];
        bool inside = column < p.columns;
        for (int b = 2; b >= 0; --b) {
          const int64_t at = output[b] * a[b].stride - a[b].pad + tap % a[b].kernel * a[b].dilation;
          tap /= a[b].kernel;
          inside = inside && at >= 0 && at < a[b].x;
          offset += at * conv.x.strides[2 + b];
        }
        ASSERT_EQ(from.reaches(p, c), inside);
        if (inside) {
          ASSERT_EQ(from.at + c.offset, offset);
        }
      }
    }
  }
}

}  // namespace
}  // namespace retrograd::kernels::cuda::patches
