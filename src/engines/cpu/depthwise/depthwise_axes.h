// SPDX-License-Identifier: Apache-2.0
// An axis of a gathering pass with all its phases together, by the places of its result.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engines/cpu/axis_phases.h"
#include "problem/pass.h"

namespace retrograd::engines::cpu {

// Planes as lanes do not care which axis is called W, but tiles run along it: one that is not a single place.
inline problem::ConvPass with_long_rows(const problem::ConvPass& pass) {
  return with_long_rows(
      pass, 2, [](const problem::ConvPass&, const problem::Window& w) { return w.x > w.y ? w.x : w.y; });
}

struct GatherAxis {
  std::vector<AxisPhase> phases;  // of residues 0, 1, …
  int64_t results = 0;            // places

  int64_t step() const { return phases.front().step; }
  const AxisPhase& phase_of(int64_t place) const { return phases[static_cast<size_t>(place % step())]; }
  // A bound on the size of sources() of any `results` neighbours.
  int64_t most_sources(int64_t results) const;
  // The source places between the first and the last that results [begin, end) gather.
  problem::Range sources(int64_t begin, int64_t end) const;
};
std::array<GatherAxis, 3> gather_axes(const problem::ConvPass& pass);

// Positions of a phase whose results lie in [begin, end).
problem::Range positions_in(const AxisPhase& phase, int64_t begin, int64_t end);
// Positions of a phase at which a tap reads inside the source.
problem::Range live_positions(const AxisPhase& phase, const PhaseTap& tap);

}  // namespace retrograd::engines::cpu
