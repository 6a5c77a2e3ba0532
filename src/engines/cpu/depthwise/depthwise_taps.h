// SPDX-License-Identifier: Apache-2.0
// The taps of a depthwise gathering pass as depthwise_row() takes them: those of each phase along W side by
// side, weights with a vector of lanes a tap.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "engines/cpu/depthwise/depthwise_axes.h"
#include "engines/cpu/depthwise/depthwise_planes.h"
#include "kernels/cpu/depthwise/depthwise_rows.h"

namespace retrograd::engines::cpu {

class DepthwiseTaps {
 public:
  DepthwiseTaps(const problem::ConvPass& pass, const std::array<GatherAxis, 3>& axes);

  // Taps of a row of weights, of all phases along W.
  int64_t slots() const { return static_cast<int64_t>(taps_.size()); }
  // Packed vectors of one plane: [tap along D][tap along H][slot].
  int64_t vectors() const { return kernel_[0] * kernel_[1] * slots(); }
  // Vectors that pack() needs to reorder in.
  int64_t unordered_vectors() const { return kernel_[0] * kernel_[1] * kernel_[2]; }

  void pack(const LanePlanes& planes, const problem::Strides5& strides, float* unordered, float* buffer,
            float* packed) const;
  // Places `results` of rows `rows` of results at one depth, from `sources` channels; those that read the
  // same rows of taps together. row_at(channel, d, h, step, count) is row (d, h) of the source, and of the
  // `count` rows `step` apart from there on all are loaded. `row` says what is the same for all: source_row
  // and out_row from one row to the next. At most kMost rows of taps reach a result.
  template <int64_t kMost, class RowAt>
  void run(int64_t depth, const problem::Range& rows, const problem::Range& results, int64_t sources,
           const float* weights, int64_t lanes, kernels::cpu::DepthwiseRow row, const RowAt& row_at) const {
    const AxisPhase& pd = axes_[0].phase_of(depth);
    const int64_t place_d = depth / pd.step * pd.source_step, source_row = row.source_row;
    const int64_t out_row = row.out_row, out_bytes = out_row * static_cast<int64_t>(size_of(row.type));
    std::byte* const out = row.out;
    // On the stack, not in the workspace: a caller who shares that by mistake gets wrong numbers, not a
    // crash.
    const std::byte* listed_sources[kMost];
    const float* listed_weights[kMost];
    row.sources = listed_sources;
    row.weights = listed_weights;
    for (size_t i = 0; i < axes_[1].phases.size(); ++i) {
      const AxisPhase& ph = axes_[1].phases[i];
      const problem::Range &full = full_rows_[i], positions = positions_in(ph, rows.begin, rows.end);
      row.source_row = ph.source_step * source_row;
      row.out_row = ph.step * out_row;
      for (int64_t j = positions.begin; j < positions.end; j += row.out_rows) {
        const bool is_full = j >= full.begin && j < full.end;
        row.out_rows = is_full ? std::min(full.end, positions.end) - j : 1;
        row.rows = 0;
        for (int64_t source = 0; source < sources; ++source)
          for (const PhaseTap& td : pd.taps)
            for (const PhaseTap& th : ph.taps) {
              const int64_t d = place_d + td.offset, h = j * ph.source_step + th.offset;
              if (d < 0 || d >= pd.source_size || h < 0 || h >= ph.source_size) continue;
              listed_sources[row.rows] =
                  reinterpret_cast<const std::byte*>(row_at(source, d, h, ph.source_step, row.out_rows));
              listed_weights[row.rows++] = weights + (source * vectors() + row_of(td.tap, th.tap)) * lanes;
            }
        run_row(results, row, out + (ph.first + j * ph.step - rows.begin) * out_bytes);
      }
    }
  }

 private:
  // Results [begin, end) of the rows that `row` describes as far as they do not depend on W; `out` is the
  // first of them.
  void run_row(const problem::Range& results, kernels::cpu::DepthwiseRow row, std::byte* out) const;
  int64_t row_of(int64_t tap_d, int64_t tap_h) const { return (tap_d * kernel_[1] + tap_h) * slots(); }

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
  std::vector<problem::Range> full_rows_;  // of a phase along H: positions at which every tap is live
  bool in_order_ = true;                   // the taps are packed as the tensor has them
};

}  // namespace retrograd::engines::cpu
