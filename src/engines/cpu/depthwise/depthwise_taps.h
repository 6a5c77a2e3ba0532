// SPDX-License-Identifier: Apache-2.0
// The taps of a depthwise gathering pass as depthwise_row() takes them: those of each phase along W side by
// side, weights with a vector of lanes a tap.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engines/cpu/depthwise/depthwise_axes.h"
#include "engines/cpu/depthwise/depthwise_planes.h"
#include "kernels/cpu/depthwise/depthwise_rows.h"

namespace retrograd::engines::cpu {

// Rows of taps, and of the source, that a row of results reads. On the stack, not in the workspace: a caller
// who shares that by mistake gets wrong numbers, not a crash.
template <int64_t kMost>
struct TapRows {
  const float* sources[kMost];
  const float* weights[kMost];
};

class DepthwiseTaps {
 public:
  DepthwiseTaps(const problem::ConvPass& pass, const std::array<GatherAxis, 3>& axes);

  // Taps of a row of weights, of all phases along W.
  int64_t slots() const { return static_cast<int64_t>(taps_.size()); }
  // Packed vectors of one plane: [tap along D][tap along H][slot].
  int64_t vectors() const { return kernel_[0] * kernel_[1] * slots(); }
  int64_t row_of(int64_t tap_d, int64_t tap_h) const { return (tap_d * kernel_[1] + tap_h) * slots(); }
  // Vectors that pack() needs to reorder in.
  int64_t unordered_vectors() const { return kernel_[0] * kernel_[1] * kernel_[2]; }
  // Positions of a phase along H at which every tap is live.
  const problem::Range& full_rows(size_t phase) const { return full_rows_[phase]; }

  void pack(const LanePlanes& planes, const problem::Strides5& strides, float* unordered, float* buffer,
            float* packed) const;
  // Results [begin, end) of the rows that `row` describes as far as they do not depend on W; `out` is the
  // first of them.
  void run(const problem::Range& results, kernels::cpu::DepthwiseRow row, float* out) const;

 private:
  // A phase along W.
  struct Phase {
    int64_t first_slot = 0;
    problem::Range full;  // positions at which every tap is live
  };

  const std::array<GatherAxis, 3>& axes_;
  std::array<int64_t, 3> kernel_{};
  std::vector<kernels::cpu::DepthwiseTap> taps_;
  std::vector<int64_t> tap_numbers_;
  std::vector<Phase> phases_;
  std::vector<problem::Range> full_rows_;
  bool in_order_ = true;  // the taps are packed as the tensor has them
};

}  // namespace retrograd::engines::cpu
