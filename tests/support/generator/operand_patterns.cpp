// SPDX-License-Identifier: Apache-2.0
// Types and layouts of a problem's operands.
#include <algorithm>
#include <numeric>

#include "support/generator/problem_generator.h"

namespace retrograd::test {
namespace {

using problem::Operand;
using Mode = GeneratorOptions::Mode;
using Order = LayoutSketch::Order;

constexpr int kMostAxes = 5;
constexpr unsigned kAllAxes = (1U << kMostAxes) - 1;

// What is drawn for one tensor. Broadcast and overlapping elements exist where nothing is written.
enum class Pattern : unsigned char {
  kRowMajor,
  kChannelsLast,
  kPermuted,  // with gaps
  kPitch,     // row-major, each row longer than what is used of it
  kReversed,
  kBroadcast,
  kOverlapping,
  kMixed,  // anything of the above at once
};
struct WeightedPattern {
  Pattern pattern;
  int64_t weight;
};
constexpr WeightedPattern kRead[] = {
    {Pattern::kRowMajor, 20}, {Pattern::kChannelsLast, 15}, {Pattern::kPermuted, 15},
    {Pattern::kPitch, 10},    {Pattern::kReversed, 8},      {Pattern::kBroadcast, 18},
    {Pattern::kMixed, 10},    {Pattern::kOverlapping, 4},
};
constexpr WeightedPattern kWritten[] = {
    {Pattern::kRowMajor, 35}, {Pattern::kChannelsLast, 20}, {Pattern::kPermuted, 20},
    {Pattern::kPitch, 15},    {Pattern::kReversed, 10},
};

unsigned bit(int64_t axis) { return 1U << static_cast<unsigned>(axis); }

void shuffle_axes(Draw& draw, LayoutSketch& layout) {
  layout.order = Order::kGiven;
  for (int64_t i = kMostAxes - 1; i > 0; --i)
    std::swap(layout.fastest_first[static_cast<size_t>(i)],
              layout.fastest_first[static_cast<size_t>(draw.number(0, i))]);
}

void leave_gaps(Draw& draw, LayoutSketch& layout) {
  layout.step = draw.pick({1, 1, 2, 3});
  for (int64_t& gap : layout.gaps) gap = draw.chance(35) ? draw.number(1, 5) : 0;
}

LayoutSketch draw_layout(Draw& draw, bool is_read, int rank) {
  LayoutSketch layout;
  const int last = rank - 1;
  const auto axis = [&] { return draw.number(0, last); };
  switch (is_read ? draw.weighted(kRead).pattern : draw.weighted(kWritten).pattern) {
    case Pattern::kRowMajor:
      break;
    case Pattern::kChannelsLast:
      layout.order = Order::kChannelsLast;
      break;
    case Pattern::kPermuted:
      shuffle_axes(draw, layout);
      leave_gaps(draw, layout);
      break;
    case Pattern::kPitch:
      if (draw.chance(40)) layout.order = Order::kChannelsLast;
      layout.gaps[static_cast<size_t>(draw.chance(60) ? last : axis())] = draw.number(1, 9);
      break;
    case Pattern::kReversed:
      if (draw.chance(40)) layout.order = Order::kChannelsLast;
      layout.reversed = bit(axis()) | (draw.chance(40) ? bit(axis()) : 0);
      break;
    case Pattern::kBroadcast:
      if (draw.chance(40)) layout.order = Order::kChannelsLast;
      layout.broadcast = draw.chance(10) ? kAllAxes : bit(axis()) | (draw.chance(25) ? bit(axis()) : 0);
      break;
    case Pattern::kOverlapping:
      layout.overlapping = bit(axis()) | (draw.chance(25) ? bit(axis()) : 0);
      break;
    case Pattern::kMixed:
      shuffle_axes(draw, layout);
      leave_gaps(draw, layout);
      layout.reversed = static_cast<unsigned>(draw.number(0, kAllAxes));
      layout.broadcast = draw.chance(60) ? bit(axis()) : 0;
      layout.overlapping = draw.chance(20) ? bit(axis()) : 0;
      break;
  }
  if (draw.chance(10)) {
    layout.lone_strides = true;
    layout.lone_stride = draw.pick({0, 1, 7, -3, 1000});
  }
  return layout;
}

DType some_type(Draw& draw) { return draw.pick({DType::kF32, DType::kF16, DType::kBF16}); }

void mix_results(Draw& draw, ProblemSketch& s, int percent) {
  for (Operand operand : {Operand::kGradInput, Operand::kGradWeight, Operand::kGradBias})
    if (draw.chance(percent)) s.type(operand) = some_type(draw);
}

void draw_8bit_types(Draw& draw, ProblemSketch& s) {
  const DType type = draw.pick({DType::kHiF8, DType::kE4M3});
  s.types.fill(type);
  s.type(Operand::kGradBias) = some_type(draw);
  if (draw.chance(50)) s.type(Operand::kGradInput) = some_type(draw);
  // E4M3 has no grad_weight of its own.
  if (type == DType::kE4M3 || draw.chance(50)) s.type(Operand::kGradWeight) = some_type(draw);
}

void draw_truth_types(Draw& draw, ProblemSketch& s) {
  const int64_t sort = draw.number(1, 100);
  if (sort <= 45) return;  // f32
  s.types.fill(some_type(draw));
  if (s.kind == ProblemKind::kAvgPool || sort <= 75) return;
  if (s.kind == ProblemKind::kConv && sort <= 87) return draw_8bit_types(draw, s);
  if (s.kind == ProblemKind::kConv)
    for (Operand operand : {Operand::kGradOutput, Operand::kWeight})
      if (draw.chance(40)) s.type(operand) = some_type(draw);
  mix_results(draw, s, 40);
}

// A bias has the type of the products or f32; conv_tbc's is the inputs'. Any output type is legal for types
// of 16 bits and more.
void draw_forward_types(Draw& draw, ProblemSketch& s) {
  const DType input = s.type(Operand::kInput), weight = s.type(Operand::kWeight);
  const bool mixed = s.kind == ProblemKind::kConv && (input != weight || draw.chance(30));
  s.type(Operand::kBias) = mixed ? DType::kF32 : input;
  s.type(Operand::kOutput) = s.kind != ProblemKind::kAvgPool && draw.chance(20) ? some_type(draw) : input;
}

}  // namespace

void draw_types(Draw& draw, Mode mode, ProblemSketch& s) {
  if (mode == Mode::kNetwork) {
    s.types.fill(some_type(draw));
    return;
  }
  if (s.math_mode != 0 || s.winograd) return;  // a class about f32
  if (s.types == ProblemSketch{}.types) draw_truth_types(draw, s);
  if (s.forward) draw_forward_types(draw, s);
  if (s.kind == ProblemKind::kAvgPool) return;
  if (draw.chance(30)) s.math_mode = draw.number(1, 3);
  if (s.math_mode == 2 && s.type(Operand::kInput) == DType::kBF16) s.math_mode = 0;  // not legal
  if (s.kind == ProblemKind::kConv && draw.chance(30)) s.mask = static_cast<unsigned>(draw.number(1, 7));
}

void draw_layouts(Draw& draw, Mode mode, ProblemSketch& s) {
  const int rank = s.kind == ProblemKind::kConvTbc ? 3
                   : s.without_batch               ? static_cast<int>(s.axes.size()) + 1
                                                   : static_cast<int>(s.axes.size()) + 2;
  if (mode == Mode::kNetwork || draw.chance(25)) {
    for (LayoutSketch& layout : s.layouts) layout.order = Order::kChannelsLast;
    return;
  }
  for (int i = 0; i < problem::kOperandCount; ++i) {
    const auto operand = static_cast<Operand>(i);
    if (operand > Operand::kGradBias && !s.forward) break;
    const bool is_read = operand <= Operand::kWeight || operand == Operand::kBias;
    const bool is_bias = operand == Operand::kGradBias || operand == Operand::kBias;
    s.layout(operand) = draw_layout(draw, is_read, is_bias ? 1 : rank);
  }
}

}  // namespace retrograd::test
