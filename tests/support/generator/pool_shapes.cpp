// SPDX-License-Identifier: Apache-2.0
// Shapes of average pooling, odd ones and those of networks. Channels are the sketch's groups.
#include <algorithm>

#include "support/generator/problem_generator.h"

namespace retrograd::test {
namespace {

void attributes(Draw& draw, ProblemSketch& s) {
  s.ceil_mode = draw.chance(50);
  s.count_include_pad = draw.chance(50);
  s.divisor = draw.chance(25) ? draw.number(1, 9) : 0;
  s.uncorrected_ceil_sizes = s.ceil_mode && draw.chance(30);
  s.without_batch = draw.chance(10);
  if (s.without_batch) s.batch = 1;
}

AxisSketch window(Draw& draw, int64_t size, int64_t largest_kernel) {
  AxisSketch axis;
  axis.size = size;
  axis.kernel = draw.number(1, largest_kernel);
  axis.stride = draw.chance(30) ? axis.kernel : draw.number(1, 4);
  axis.pad_lo = axis.pad_hi = draw.number(0, axis.kernel / 2);
  return axis;
}

void small_pool(Draw& draw, ProblemSketch& s) {
  s.batch = draw.number(1, 3);
  s.groups = draw.number(1, 4);
  for (int64_t a = draw.number(1, 3); a > 0; --a) s.axes.push_back(window(draw, draw.number(1, 8), 4));
  attributes(draw, s);
}

void wide_pool_rows(Draw& draw, ProblemSketch& s) {
  s.batch = draw.number(1, 2);
  s.groups = draw.number(1, 3);
  for (int64_t a = draw.number(0, 2); a > 0; --a) s.axes.push_back(window(draw, draw.number(1, 5), 3));
  s.axes.push_back(window(draw, draw.pick({15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 129}), 7));
  attributes(draw, s);
}

void many_channels(Draw& draw, ProblemSketch& s) {
  s.batch = draw.number(1, 2);
  s.groups = draw.pick({7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 130});
  for (int64_t a = draw.number(1, 3); a > 0; --a) s.axes.push_back(window(draw, draw.number(1, 7), 3));
  attributes(draw, s);
}

// One window over everything, or nearly.
void whole_plane(Draw& draw, ProblemSketch& s) {
  s.batch = draw.number(1, 3);
  s.groups = draw.number(1, 40);
  for (int64_t a = draw.number(1, 3); a > 0; --a) {
    AxisSketch& axis = s.axes.emplace_back();
    axis.size = draw.number(1, 12);
    axis.kernel = std::max<int64_t>(1, axis.size + draw.pick({0, 0, 0, -1, 1}));
    axis.pad_lo = axis.pad_hi = draw.chance(30) ? axis.kernel / 2 : axis.kernel > axis.size ? 1 : 0;
    axis.stride = draw.chance(50) ? axis.kernel : draw.number(1, 3);
  }
  attributes(draw, s);
}

void of_networks(Draw& draw, ProblemSketch& s) {
  const int64_t rank = draw.pick({1, 2, 2, 2, 2, 3});
  s.groups = std::max<int64_t>(8, draw.log_number(8, 2048) / 8 * 8);
  AxisSketch axis;
  axis.size = draw.log_number(2, rank == 1 ? 8192 : rank == 2 ? 256 : 64);
  axis.kernel = draw.chance(20) ? axis.size : std::min(axis.size, draw.pick<int64_t>({2, 2, 2, 3, 3, 4, 7}));
  axis.stride = axis.kernel == 3 ? draw.pick({1, 2, 2}) : draw.chance(70) ? axis.kernel : int64_t{2};
  axis.pad_lo = axis.pad_hi = axis.kernel == 3 ? draw.number(0, 1) : 0;
  s.axes.assign(static_cast<size_t>(rank), axis);
  s.ceil_mode = draw.chance(25);
  s.count_include_pad = draw.chance(70);
  s.divisor = draw.chance(5) ? draw.number(1, 9) : 0;
}

constexpr ShapeClass kTruth[] = {
    {"pool_small", 40, small_pool},
    {"pool_wide_rows", 25, wide_pool_rows},
    {"pool_channels", 20, many_channels},
    {"pool_whole_plane", 15, whole_plane},
};
constexpr ShapeClass kNetwork[] = {{"pool", 1, of_networks, 1, 50}};

}  // namespace

std::span<const ShapeClass> truth_pools() { return kTruth; }
std::span<const ShapeClass> network_pools() { return kNetwork; }

}  // namespace retrograd::test
