// SPDX-License-Identifier: Apache-2.0
// Shapes that look for errors: small, odd, and near the sizes at which engines do something else.
#include <algorithm>

#include "support/generator/problem_generator.h"

namespace retrograd::test {
namespace {

// A size at which a vector, a tile or a block is full, one less or one more.
int64_t near_vectors(Draw& draw, int64_t most) {
  int64_t size = 1;
  do size = std::max<int64_t>(1, (int64_t{1} << draw.number(0, 6)) + draw.number(-1, 1));
  while (size > most);
  return size;
}

int64_t some_channels(Draw& draw, int64_t most) {
  return draw.chance(30) ? draw.number(1, std::min<int64_t>(most, 5)) : near_vectors(draw, most);
}

int rank(Draw& draw) { return draw.pick({1, 1, 2, 2, 2, 2, 3, 3}); }

void pad(Draw& draw, AxisSketch& axis, int64_t most) {
  axis.pad_lo = axis.pad_hi = draw.number(0, most);
  if (draw.chance(12)) axis.pad_hi = draw.number(0, most);
}

// Transposed convolutions have an output padding, below the stride as most interfaces want it, or not.
void maybe_transpose(Draw& draw, ProblemSketch& s, int percent = 30) {
  s.transposed = draw.chance(percent);
  if (!s.transposed) return;
  const bool beyond = draw.chance(8);
  for (AxisSketch& a : s.axes)
    a.extra_hi = draw.chance(40) ? draw.number(0, beyond ? a.stride + a.dilation : a.stride - 1) : 0;
  // Pairs of output padding exist in 2-D only.
  if (s.axes.size() == 2 && draw.chance(10))
    for (AxisSketch& a : s.axes) a.extra_lo = draw.number(0, a.stride - 1);
}

void small(Draw& draw, ProblemSketch& s) {
  s.batch = draw.chance(2) ? 0 : draw.number(1, 3);
  s.groups = draw.chance(70) ? 1 : draw.number(2, 3);
  s.inputs = draw.number(1, 4);
  s.outputs = draw.number(1, 4);
  for (int a = rank(draw); a > 0; --a) {
    AxisSketch& axis = s.axes.emplace_back();
    axis.size = draw.number(1, 7);
    axis.kernel = draw.number(1, 4);
    axis.stride = draw.number(1, 3);
    axis.dilation = draw.chance(60) ? 1 : draw.number(2, 3);
    pad(draw, axis, 3);
  }
  maybe_transpose(draw, s);
}

void channels(Draw& draw, ProblemSketch& s) {
  s.batch = draw.number(1, 4);
  s.inputs = near_vectors(draw, 65);
  s.outputs = near_vectors(draw, 65);
  for (int a = rank(draw); a > 0; --a) {
    AxisSketch& axis = s.axes.emplace_back();
    axis.size = draw.number(1, 6);
    axis.kernel = draw.pick({1, 1, 2, 3, 3});
    axis.stride = draw.pick({1, 1, 1, 2});
    pad(draw, axis, axis.kernel / 2);
  }
  maybe_transpose(draw, s);
}

void wide_rows(Draw& draw, ProblemSketch& s) {
  s.batch = draw.number(1, 2);
  s.groups = draw.chance(60) ? 1 : draw.number(2, 4);
  s.inputs = some_channels(draw, 9);
  s.outputs = some_channels(draw, 9);
  const int axes = rank(draw);
  for (int a = 0; a < axes; ++a) {
    AxisSketch& axis = s.axes.emplace_back();
    const bool last = a == axes - 1;
    axis.size = last ? draw.pick({15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 100, 127, 130}) : draw.number(1, 4);
    axis.kernel = draw.pick({1, 2, 3, 3, 5, 7, 10});
    axis.stride = draw.pick({1, 1, 1, 2, 3, 5});
    axis.dilation = draw.pick({1, 1, 1, 2});
    pad(draw, axis, axis.kernel / 2 + 1);
  }
  maybe_transpose(draw, s);
}

void tiny_plane(Draw& draw, ProblemSketch& s) {
  s.batch = draw.number(1, 9);
  s.inputs = draw.chance(50) ? draw.pick({63, 64, 65, 96, 128, 256, 512}) : draw.number(64, 512);
  s.outputs = draw.chance(50) ? draw.pick({63, 64, 65, 96, 128}) : draw.number(1, 128);
  if (draw.chance(50)) std::swap(s.inputs, s.outputs);
  for (int a = rank(draw); a > 0; --a) {
    AxisSketch& axis = s.axes.emplace_back();
    axis.size = draw.pick({1, 1, 1, 1, 2, 3});
    axis.kernel = draw.pick({3, 3, 3, 5, 2, 1});
    axis.pad_lo = axis.pad_hi = std::max<int64_t>(axis.kernel / 2, draw.number(0, 2));
    axis.stride = draw.pick({1, 1, 1, 2});
  }
  maybe_transpose(draw, s);
}

void large_kernel(Draw& draw, ProblemSketch& s) {
  s.batch = draw.number(1, 3);
  s.groups = draw.chance(60) ? 1 : draw.number(2, 20);
  s.inputs = s.groups > 1 ? draw.number(1, 3) : some_channels(draw, 17);
  s.outputs = s.groups > 1 ? draw.number(1, 3) : some_channels(draw, 17);
  for (int a = static_cast<int>(draw.number(1, 2)); a > 0; --a) {
    AxisSketch& axis = s.axes.emplace_back();
    axis.size = draw.number(1, 12);
    axis.kernel = draw.pick({5, 7, 9, 11, 13, 16, 21, 31});
    axis.stride = draw.pick({1, 1, 1, 2, 4});
    const int64_t fits = std::max<int64_t>(0, (axis.kernel - axis.size + 1) / 2);
    axis.pad_lo = axis.pad_hi = fits + draw.number(0, axis.kernel / 2);
  }
  maybe_transpose(draw, s);
}

void depthwise(Draw& draw, ProblemSketch& s) {
  s.batch = draw.number(1, 3);
  s.groups = near_vectors(draw, 65);
  s.inputs = s.outputs = 1;
  // A channel multiplier; its transposed form has it on the other side.
  if (draw.chance(35)) (draw.chance(80) ? s.outputs : s.inputs) = draw.pick({2, 3, 4, 8, 9});
  const int axes = rank(draw);
  for (int a = 0; a < axes; ++a) {
    AxisSketch& axis = s.axes.emplace_back();
    axis.size = a == axes - 1 ? near_vectors(draw, 65) : draw.number(1, 10);
    axis.kernel = draw.pick({1, 2, 3, 3, 3, 5, 7, 8, 11});
    axis.stride = draw.pick({1, 1, 1, 2, 3});
    axis.dilation = draw.pick({1, 1, 1, 2, 4});
    pad(draw, axis, draw.chance(50) ? axis.dilation * (axis.kernel - 1) / 2 : axis.kernel);
  }
  maybe_transpose(draw, s);
}

// One channel a group and rows that are not left out, as wide as vectors are.
void depthwise_rows(Draw& draw, ProblemSketch& s) {
  s.batch = draw.number(1, 3);
  s.groups = draw.number(3, 20);
  const int axes = draw.pick({1, 1, 1, 2, 2, 2, 3});
  for (int a = 0; a < axes; ++a) {
    AxisSketch& axis = s.axes.emplace_back();
    const bool last = a == axes - 1;
    axis.size = last ? draw.pick({5, 7, 8, 9, 14, 15, 16, 17, 28, 31, 32, 33, 56, 65}) : draw.number(2, 9);
    axis.kernel = draw.pick({1, 2, 3, 3, 3, 5, 7});
    axis.stride = last ? draw.pick({1, 1, 1, 1, 2}) : draw.pick({1, 1, 2});
    axis.dilation = draw.pick({1, 1, 1, 1, 2});
    pad(draw, axis, axis.kernel / 2 + 1);
  }
  maybe_transpose(draw, s);
}

void depthwise_last(Draw& draw, ProblemSketch& s) {
  depthwise_rows(draw, s);
  s.groups = draw.chance(50) ? draw.number(4, 70) : near_vectors(draw, 65);
  if (draw.chance(20)) s.outputs = draw.number(2, 3);
  for (LayoutSketch& layout : s.layouts) layout.order = LayoutSketch::Order::kChannelsLast;
}

// Channels and rows enough for tile registers.
void tiles(Draw& draw, ProblemSketch& s) {
  s.batch = draw.number(1, 4);
  s.groups = draw.chance(85) ? 1 : 2;
  s.inputs = draw.chance(50) ? draw.pick({16, 31, 32, 33, 64}) : draw.number(8, 70);
  s.outputs = draw.chance(50) ? draw.pick({16, 31, 32, 33, 64}) : draw.number(8, 70);
  const int axes = rank(draw);
  for (int a = 0; a < axes; ++a) {
    AxisSketch& axis = s.axes.emplace_back();
    axis.size = a == axes - 1 ? draw.number(4, 40) : draw.number(1, 5);
    axis.kernel = draw.pick({1, 1, 2, 3, 3});
    axis.stride = draw.pick({1, 1, 1, 2});
    pad(draw, axis, axis.kernel / 2);
  }
  if (draw.chance(60)) s.types.fill(DType::kBF16);
  maybe_transpose(draw, s);
}

void grouped(Draw& draw, ProblemSketch& s) {
  s.batch = draw.number(1, 2);
  s.groups = draw.number(2, 9);
  s.inputs = some_channels(draw, 33);
  s.outputs = some_channels(draw, 33);
  for (int a = rank(draw); a > 0; --a) {
    AxisSketch& axis = s.axes.emplace_back();
    axis.size = draw.number(1, 9);
    axis.kernel = draw.pick({1, 2, 3, 3, 4});
    axis.stride = draw.pick({1, 1, 2});
    axis.dilation = draw.pick({1, 1, 1, 2});
    pad(draw, axis, 2);
  }
  maybe_transpose(draw, s);
}

void patches(Draw& draw, ProblemSketch& s) {
  s.batch = draw.number(1, 3);
  s.inputs = draw.chance(50) ? draw.number(1, 4) : some_channels(draw, 33);
  s.outputs = some_channels(draw, 65);
  for (int a = rank(draw); a > 0; --a) {
    AxisSketch& axis = s.axes.emplace_back();
    axis.kernel = axis.stride = draw.pick({2, 2, 3, 4, 8, 14, 16});
    axis.size = axis.kernel * draw.number(1, 4) + (draw.chance(25) ? draw.number(0, axis.kernel - 1) : 0);
  }
  maybe_transpose(draw, s);
}

void stem(Draw& draw, ProblemSketch& s) {
  s.batch = draw.number(1, 2);
  s.inputs = draw.number(1, 4);
  s.outputs = draw.chance(60) ? near_vectors(draw, 65) : draw.number(8, 70);
  for (int a = rank(draw); a > 0; --a) {
    AxisSketch& axis = s.axes.emplace_back();
    axis.size = draw.number(3, 24);
    axis.kernel = draw.pick({3, 3, 5, 7, 7, 10, 11});
    axis.stride = draw.pick({1, 2, 2, 4, 5});
    pad(draw, axis, axis.kernel / 2);
  }
  maybe_transpose(draw, s, 15);
}

void pointwise(Draw& draw, ProblemSketch& s) {
  s.batch = draw.number(1, 2);
  s.groups = draw.chance(80) ? 1 : draw.number(2, 4);
  s.inputs = draw.chance(60) ? draw.number(8, 20) : some_channels(draw, 33);
  s.outputs = draw.chance(60) ? draw.number(8, 20) : some_channels(draw, 33);
  for (int a = rank(draw); a > 0; --a) {
    AxisSketch& axis = s.axes.emplace_back();
    axis.size = draw.chance(30) ? draw.number(1, 8) : draw.number(12, 24);
    axis.stride = draw.pick({1, 1, 1, 1, 1, 2});
    if (draw.chance(10)) pad(draw, axis, 1);
  }
  if (s.axes.size() == 1) s.axes[0].size = draw.number(200, 600);
  maybe_transpose(draw, s);
}

void dilated(Draw& draw, ProblemSketch& s) {
  s.batch = draw.number(1, 2);
  s.groups = draw.chance(70) ? 1 : draw.number(2, 17);
  s.inputs = some_channels(draw, s.groups > 1 ? 4 : 17);
  s.outputs = some_channels(draw, s.groups > 1 ? 4 : 17);
  for (int a = rank(draw); a > 0; --a) {
    AxisSketch& axis = s.axes.emplace_back();
    axis.size = draw.number(1, 20);
    axis.kernel = draw.pick({2, 3, 3, 4, 5, 11});
    axis.dilation = draw.number(2, 6);
    axis.stride = draw.pick({1, 1, 2, 3});
    pad(draw, axis, axis.dilation * (axis.kernel - 1));
  }
  maybe_transpose(draw, s);
}

// 3 x 3, mostly with Winograd allowed, channels and planes at which it is taken.
void winograd(Draw& draw, ProblemSketch& s) {
  s.batch = draw.number(1, 3);
  s.inputs = draw.number(8, 70);
  s.outputs = draw.number(8, 70);
  if (draw.chance(20)) s.axes.push_back({.size = draw.number(1, 3), .kernel = draw.number(1, 2)});
  for (int a = 0; a < 2; ++a) {
    AxisSketch& axis = s.axes.emplace_back();
    axis.size = draw.number(4, 20);
    axis.kernel = 3;
    pad(draw, axis, 2);
  }
  s.math_mode = draw.chance(80) ? 1 : 0;
  s.winograd = s.math_mode == 0 || draw.chance(90);
  s.transposed = draw.chance(20);
}

constexpr ShapeClass kShapes[] = {
    {"small", 20, small},
    {"channels", 11, channels},
    {"wide_rows", 8, wide_rows},
    {"tiny_plane", 8, tiny_plane, 3},
    {"large_kernel", 5, large_kernel},
    {"depthwise", 9, depthwise},
    {"depthwise_rows", 12, depthwise_rows, 2, 30},
    {"depthwise_last", 5, depthwise_last, 2, 30},
    {"grouped", 6, grouped},
    {"patches", 4, patches},
    {"stem", 4, stem},
    {"pointwise", 3, pointwise, 15, 35},
    {"dilated", 4, dilated},
    {"tiles", 3, tiles, 10, 40},
    {"winograd", 1, winograd, 40, 30},
};

}  // namespace

std::span<const ShapeClass> truth_shapes() { return kShapes; }

}  // namespace retrograd::test
