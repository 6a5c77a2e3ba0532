// SPDX-License-Identifier: Apache-2.0
// One-dimensional depthwise passes with vectors along the rows: what their two engines share.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engines/cpu/axis_phases.h"
#include "engines/cpu/machine_vectors.h"
#include "engines/engine.h"
#include "problem/pass.h"

namespace retrograd::engines::cpu {

// Why a pass is not one of rows, or nothing.
std::optional<Reason> unfit_for_lines(const problem::ConvPass& pass, const Machine& machine);

// Positions of a row, cut into chunks, and the places of the source that a chunk reads.
class LineChunks {
 public:
  // A phase that unfit_for_lines() has nothing against: positions and places advance together.
  LineChunks(const AxisPhase& phase, const VectorShape& vectors);

  int64_t count() const;
  problem::Range at(int64_t chunk) const;
  int64_t most_positions() const { return positions_; }
  // Of the taps in their order, from the lowest.
  const std::vector<int64_t>& offsets() const { return offsets_; }

  // The source of a chunk with zeros where there is none, and behind the last, where kernels read on. `row`
  // is place 0; `out` holds source_floats().
  int64_t source_floats() const;
  void load_source(const problem::PassTensor& tensor, OperandRounding rounding, const std::byte* row,
                   int64_t chunk, float* out) const;
  // The same as if all of the source were ones (kernels/cpu/layout/masked_rows.h).
  void load_valid(int64_t chunk, float* out) const;

 private:
  // load(first place, places, out) puts down the places of a chunk that are inside the source.
  template <class Load>
  void load_chunk(int64_t chunk, float* out, const Load& load) const;

  int64_t total_ = 0, size_ = 0;
  int64_t behind_ = 0;              // floats that kernels, which work on whole vectors, read on
  int64_t lowest_ = 0, reach_ = 0;  // offsets
  int64_t positions_ = 0;
  std::vector<int64_t> offsets_;
};

}  // namespace retrograd::engines::cpu
