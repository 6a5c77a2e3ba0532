// SPDX-License-Identifier: Apache-2.0
// A box of the source as one zero-padded strip for each residue of the pixel by the step between positions.
// Within a strip, neighbours in position are neighbours in memory, and a tap is a constant offset.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engines/cpu/boxes.h"
#include "problem/pass.h"

namespace retrograd::engines::cpu {

struct StripAxis {
  int64_t lowest_offset = 0, highest_offset = 0;  // of the taps, in places of the source
  int64_t step = 1;                               // in the source, from one position to the next
  int64_t size = 0;                               // places of the source
};

// A channel is [residue][image][d][h][w], its pitch an odd number of cache lines: the same place of many
// channels spreads over all sets of a cache.
class ResidueStrips {
 public:
  ResidueStrips() = default;
  ResidueStrips(const std::array<StripAxis, 3>& axes, const Positions& box);

  const StripAxis& axis(size_t axis) const { return axes_[axis]; }
  const std::array<int64_t, 3>& extent() const { return extent_; }
  int64_t volume() const { return images_ * extent_[0] * extent_[1] * extent_[2]; }
  int64_t channel_pitch() const { return channel_pitch_; }
  // Where position 0 of a box reads through the tap with these offsets, within a channel.
  int64_t offset_of(const std::array<int64_t, 3>& offsets) const;

  // `channel` is the address of the first of `channels` channels, at image 0 and place (0, 0, 0).
  void load(const problem::PassTensor& tensor, OperandRounding rounding, const std::byte* channel,
            int64_t channels, const BoxGrid::Box& box, float* out) const;

 private:
  // Where the strip of a residue lies along one axis, in steps.
  struct Span {
    int64_t start = 0;   // of the strip, from the first place of the residue on
    int64_t within = 0;  // that place
    int64_t size = 0;    // places of the residue
  };
  Span span(size_t axis, int64_t first, int64_t residue) const;
  // All residues of W of one residue of D and H, where neighbours along W are neighbours in memory.
  void part_planes(const problem::PassTensor& tensor, OperandRounding rounding, const std::byte* channel,
                   const BoxGrid::Box& box, const Span& d, const Span& h, float* out) const;

  std::array<StripAxis, 3> axes_;
  int64_t images_ = 0;
  std::array<int64_t, 3> extent_{};
  int64_t channel_pitch_ = 0;
};

}  // namespace retrograd::engines::cpu
