// SPDX-License-Identifier: Apache-2.0
// How a forward or grad_input pass is cut for dense_gather.cpp. Pure functions of the pass and the machine's
// vectors and caches, never of the threads.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engines/cpu/axis_phases.h"
#include "engines/cpu/boxes.h"
#include "engines/cpu/cache_room.h"
#include "engines/cpu/machine_vectors.h"
#include "problem/pass.h"

namespace retrograd::engines::cpu {

// Tiles of result channels that are multiplied with the same positions, one after the other.
inline constexpr int64_t kMostPanelsTogether = 64;
// Positions along W with the same live taps that are so few that a tile goes down a column rather.
inline constexpr int64_t kLongColumn = 6;

// One phase of each axis together. All phases of a pass read the same source around the same positions, so
// that a task copies its source once and computes every phase from it.
struct DensePhase {
  std::array<AxisPhase, 3> axes;
  int64_t taps = 0;             // of the three axes together; 0: the results are zeros
  int64_t taps_before = 0;      // of the phases before this one
  double live_lines = 0;        // pairs of places and taps of D and H that meet in the source
  std::vector<int64_t> w_cuts;  // positions along W where other taps begin to be live, 0 and the end included
};

struct DenseBlocking {
  std::vector<DensePhase> phases;   // those of W fastest
  size_t w_phases = 1;              // that follow each other with the same phases of D and H
  BoxGrid grid;                     // of the positions of the largest phase
  std::array<int64_t, 3> lowest{};  // offset of any tap
  std::array<int64_t, 3> extent{};  // of what a full box reads
  std::array<int64_t, 3> strip{};   // of a strip: the same, or all that is read where strips are shared
  // Taps that read outside the source are left out along this axis, so that the strip needs no padding.
  std::array<bool, 3> skips_dead_taps{};
  // Tiles go on where other taps begin to be live along W: the strip is padded there, unless none ever are.
  bool crosses_cuts = false;
  // Rows of a tile are images at one place, not neighbours along W: every dead tap can be left out.
  bool images_inside = false;
  // Strips have all places of their images and are loaded once, for all tasks.
  bool shares_strips = false;
  // So do the tasks, with one tile of result channels: each packs the weights that it alone reads.
  bool whole_images = false;
  // All groups of a box are one thread's: they have lines of memory in common.
  bool groups_inside = false;
  // The source is read where it lies.
  bool in_place = false;
  // Or strips keep the channels of a place side by side, as they lie in the source.
  bool by_place = false;
  int64_t most_taps = 0;  // of a phase
  int64_t all_taps = 0;   // of all phases
  int64_t channels = 0;   // of the result, in a group
  int64_t width = 0;      // of the tiles, the last ones of a group apart
  int64_t narrowest = 0;  // that a tile may be
  VectorShape vectors;
  CacheRoom room;
  int64_t m_block = 0;  // result channels in a task, a multiple of the width
  int64_t m_blocks = 0;
  int64_t m_together = 0;          // result channels of a tile of positions before the next one's turn comes
  int64_t channels_per_block = 0;  // source channels in a strip
  int64_t panel_floats = 0;        // packed weights of a group

  // Of the tile that begins with result channel m of a group.
  int64_t width_at(int64_t m) const;
  // Where packed weights of a group, of `k` source channels, have those of a tile and a phase.
  int64_t panel_start(size_t phase, int64_t m, int64_t k) const {
    return (m * all_taps + phases[phase].taps_before * width_at(m)) * k;
  }
  int64_t plane() const { return extent[0] * extent[1] * extent[2]; }
  int64_t strip_plane() const { return strip[0] * strip[1] * strip[2]; }
  int64_t tasks(int64_t groups) const { return groups * grid.count() * m_blocks; }
};

// Rows and planes that follow each other in both tensors, and that the kernel does not span, are one row:
// tiles need not end where short rows do.
problem::ConvPass joined_rows(problem::ConvPass pass);

// `narrowest`: of the tiles there may be. `registers`: for tile registers (cells.h), which have more
// rows and gain less by leaving taps out.
DenseBlocking plan_dense_gather(const problem::ConvPass& pass, const VectorShape& vectors,
                                const CacheRoom& room, int64_t narrowest = 0, bool registers = false);

// Taps [first, last) of an axis that read inside the source at position `j`.
struct TapRange {
  int64_t first = 0, last = 0;
  bool operator==(const TapRange&) const = default;
};
TapRange live_range(const AxisPhase& axis, int64_t j);

}  // namespace retrograd::engines::cpu
