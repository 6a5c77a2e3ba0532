// SPDX-License-Identifier: Apache-2.0
// The source pixels that a box of results gathers, as lanes: [source channel][d][h][w][lane], clipped to the
// source. Rows are loaded in order of h, each just before the first row of results that reads it.
#pragma once

#include <array>

#include "engines/cpu/boxes.h"
#include "engines/cpu/depthwise/depthwise_axes.h"
#include "engines/cpu/depthwise/depthwise_planes.h"

namespace retrograd::engines::cpu {

class DepthwiseStrip {
 public:
  static constexpr int64_t kMostSources = 8;

  // What a box reads of the source, the same for every block of planes.
  using Ranges = std::array<problem::Range, 3>;
  static Ranges ranges_of(const std::array<GatherAxis, 3>& axes, const BoxGrid::Box& box);
  // `planes` has one entry a source channel; `memory` holds most_floats().
  DepthwiseStrip(const Ranges& ranges, const problem::Strides5& strides, const LanePlanes* planes,
                 int64_t sources, float* memory, float* buffer);
  // INT64_MAX when 64 bits do not hold it.
  static int64_t most_floats(const std::array<GatherAxis, 3>& axes, const BoxGrid& grid, int64_t sources,
                             int64_t lanes);

  const problem::Range& range(size_t axis) const { return ranges_[axis]; }
  int64_t row_floats() const { return row_floats_; }
  // At place range(2).begin.
  const float* row(int64_t source, int64_t d, int64_t h) const {
    const int64_t depth = source * ranges_[0].size() + d - ranges_[0].begin;
    return memory_ + (depth * ranges_[1].size() + h - ranges_[1].begin) * row_floats_;
  }
  // Rows of all depths below `end`.
  void load_up_to(int64_t end);

 private:
  const problem::Strides5& strides_;
  const LanePlanes* planes_;
  int64_t sources_;
  float* memory_;
  float* buffer_;
  const Ranges& ranges_;
  int64_t loaded_, at_least_, row_floats_;
};

}  // namespace retrograd::engines::cpu
