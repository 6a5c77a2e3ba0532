// SPDX-License-Identifier: Apache-2.0
// Shapes as networks have them: ranks 2 : 1 : 3 as 65 : 20 : 15, mostly channels that are multiples of 8,
// kernels of 1 and 3, stride 1, no dilation; one axis in six differs from the others.
#include <algorithm>

#include "support/generator/problem_generator.h"

namespace retrograd::test {
namespace {

struct Weighted {
  int64_t value;
  int64_t weight;
};

int network_rank(Draw& draw) {
  constexpr Weighted kRanks[] = {{2, 65}, {1, 20}, {3, 15}};
  return static_cast<int>(draw.weighted(kRanks).value);
}

int64_t network_channels(Draw& draw, int64_t low, int64_t high) {
  const int64_t drawn = draw.log_number(low, high);
  return draw.chance(7) ? drawn : std::max<int64_t>(8, (drawn + 4) / 8 * 8);
}

int64_t network_kernel(Draw& draw) {
  constexpr Weighted kKernels[] = {{1, 30}, {3, 45}, {5, 8}, {7, 6}, {2, 4}, {4, 3}, {0, 4}};
  const int64_t kernel = draw.weighted(kKernels).value;
  return kernel > 0 ? kernel : draw.number(9, 31);
}

int64_t network_stride(Draw& draw) {
  constexpr Weighted kStrides[] = {{1, 70}, {2, 25}, {3, 3}, {4, 2}};
  return draw.weighted(kStrides).value;
}

int64_t largest_plane(int rank) { return rank == 1 ? 16384 : rank == 2 ? 512 : 64; }

AxisSketch network_axis(Draw& draw, int rank) {
  AxisSketch axis;
  axis.size = draw.log_number(1, largest_plane(rank));
  axis.kernel = network_kernel(draw);
  axis.stride = network_stride(draw);
  axis.dilation = draw.chance(88) ? 1 : draw.pick({2, 2, 3, 4, 6, 12});
  // Mostly "same"; the kernel must fit.
  const int64_t reach = axis.dilation * (axis.kernel - 1);
  const int64_t fits = std::max<int64_t>(0, (reach - axis.size + 2) / 2);
  axis.pad_lo = axis.pad_hi = std::max(fits, draw.chance(80) ? reach / 2 : 0);
  return axis;
}

// One axis in six has another size, or, where the shape does not hang on its window, another window.
void equal_axes(Draw& draw, ProblemSketch& s, int rank, const AxisSketch& axis) {
  s.axes.assign(static_cast<size_t>(rank), axis);
  const bool fixed_window = s.transposed || axis.kernel == axis.stride;
  for (AxisSketch& one : s.axes) {
    if (rank == 1 || draw.number(1, 6) != 1) continue;
    const AxisSketch other = network_axis(draw, rank);
    if (fixed_window || draw.chance(50)) {
      one.size = std::max(other.size, axis.dilation * (axis.kernel - 1) + 1);
    } else {
      one = other;
    }
  }
}

void dense(Draw& draw, ProblemSketch& s) {
  const int rank = network_rank(draw);
  s.inputs = network_channels(draw, 8, 1024);
  s.outputs = draw.chance(50) ? s.inputs : network_channels(draw, 8, 1024);
  equal_axes(draw, s, rank, network_axis(draw, rank));
}

void depthwise_layer(Draw& draw, ProblemSketch& s) {
  const int rank = network_rank(draw);
  s.groups = network_channels(draw, 8, 1024);
  s.outputs = draw.chance(90) ? 1 : draw.number(2, 4);
  AxisSketch axis = network_axis(draw, rank);
  if (axis.kernel == 1) {  // nobody has depthwise kernels of one tap
    axis.kernel = 3;
    axis.pad_lo = axis.pad_hi = axis.dilation;
  }
  equal_axes(draw, s, rank, axis);
}

void grouped_layer(Draw& draw, ProblemSketch& s) {
  const int rank = network_rank(draw);
  s.inputs = draw.chance(80) ? draw.log_number(1, 14) * 8 : draw.number(4, 112);
  s.outputs = draw.chance(80) ? s.inputs : draw.number(4, 112);
  s.groups = draw.log_number(2, 64);
  equal_axes(draw, s, rank, network_axis(draw, rank));
}

void stem_or_patches(Draw& draw, ProblemSketch& s) {
  const int rank = network_rank(draw);
  AxisSketch axis;
  s.inputs = draw.number(1, 4);
  if (draw.chance(50)) {
    s.outputs = network_channels(draw, 16, 128);
    axis.kernel = draw.pick({3, 5, 6, 7, 7, 8, 9, 11});
    axis.stride = draw.pick({1, 2, 2, 2, 4});
    axis.pad_lo = axis.pad_hi = axis.kernel / 2;
    axis.size = draw.log_number(28, largest_plane(rank));
  } else {
    s.outputs = network_channels(draw, 64, 1024);
    if (draw.chance(25)) s.inputs = network_channels(draw, 32, 256);
    axis.kernel = axis.stride = draw.pick({2, 4, 8, 14, 16, 16});
    axis.size = axis.kernel * draw.log_number(1, std::max<int64_t>(1, largest_plane(rank) / axis.kernel));
  }
  equal_axes(draw, s, rank, axis);
}

void transposed(Draw& draw, ProblemSketch& s) {
  const int rank = network_rank(draw);
  s.transposed = true;
  s.inputs = network_channels(draw, 8, 512);
  s.outputs = draw.chance(50) ? std::max<int64_t>(1, s.inputs / 2) : network_channels(draw, 8, 512);
  AxisSketch axis;
  axis.size = draw.log_number(1, largest_plane(rank) / 2);
  axis.stride = draw.pick({1, 2, 2, 2, 2, 4});
  axis.kernel = draw.pick({axis.stride, 2 * axis.stride, int64_t{3}, int64_t{5}});
  axis.pad_lo = axis.pad_hi = std::max<int64_t>(0, axis.kernel - axis.stride) / 2;
  axis.extra_hi = axis.kernel % 2 != 0 && axis.stride > 1 ? axis.stride - 1 : 0;
  equal_axes(draw, s, rank, axis);
}

void tiny(Draw& draw, ProblemSketch& s) {
  const int rank = network_rank(draw);
  s.inputs = network_channels(draw, 1, 64);
  s.outputs = network_channels(draw, 1, 64);
  AxisSketch axis = network_axis(draw, rank);
  axis.size = draw.number(1, 8);
  axis.kernel = draw.pick({1, 2, 3, 3});
  axis.dilation = 1;
  axis.pad_lo = axis.pad_hi = axis.kernel / 2;
  equal_axes(draw, s, rank, axis);
}

constexpr ShapeClass kNetworkShapes[] = {
    {"dense", 45, dense, 1, 50},           {"depthwise", 20, depthwise_layer, 1, 50},
    {"grouped", 12, grouped_layer, 1, 50}, {"stem_or_patches", 10, stem_or_patches, 1, 50},
    {"transposed", 8, transposed, 1, 50},  {"tiny", 5, tiny, 1, 50},
};

}  // namespace

std::span<const ShapeClass> network_shapes() { return kNetworkShapes; }

}  // namespace retrograd::test
