// SPDX-License-Identifier: Apache-2.0
// The taps of a depthwise grad_weight pass as depthwise_dots() takes them.
#pragma once

#include <cstdint>
#include <vector>

#include "engines/cpu/depthwise/depthwise_axes.h"
#include "kernels/cpu/depthwise/depthwise_dots.h"
#include "problem/pass.h"

namespace retrograd::engines::cpu {

class DepthwiseDotTaps {
 public:
  // `columns` is the axis along W of gather_axes().
  DepthwiseDotTaps(const problem::ConvPass& pass, const GatherAxis& columns);

  // Adds rows [begin, end) of y × the taps of one depth: tap rows together where they are all live, else one
  // by one. dots.x is row `x_first` of x, dots.x_row the floats to the next; dots.y is the first row of y;
  // dots.start is the place that dots.x has. The sums are [tap along H][tap along W][lane].
  void add(const problem::Range& rows, int64_t x_first, int64_t lanes,
           kernels::cpu::DepthwiseDots dots) const;

 private:
  problem::Window rows_, columns_;
  std::vector<int64_t> begin_, end_;       // live positions along W, of each tap
  std::vector<problem::Range> live_rows_;  // along H
};

}  // namespace retrograd::engines::cpu
