// SPDX-License-Identifier: Apache-2.0
// Weights of a forward or grad_input pass, packed for the tiles of dense_gather.cpp:
// panels[group][phase][m / width][k][tap][width], zeros beyond the last channel.
#pragma once

#include "engines/cpu/dense_blocking.h"
#include "engines/engine.h"
#include "runtime/thread_pool.h"

namespace retrograd::engines::cpu {

// Whether the taps of one pair of channels are one row of the weight's memory.
bool taps_follow_each_other(const problem::ConvPass& pass);

class WeightPanels {
 public:
  // Both must outlive this. `partner`: of the cells that the pass is over (bf16_cells.h), or 0.
  WeightPanels(const problem::ConvPass& pass, const DenseBlocking& cut, int64_t partner = 0);

  size_t bytes() const { return panel_bytes_ + static_cast<size_t>(slots_) * slot_bytes_; }
  // False when `judge` is set and a weight is not finite, or one is too small for its cell.
  bool pack(const Bindings& bindings, float* panels, runtime::ThreadPool& pool, bool judge) const;
  // Of result channels from m and source channels from k on.
  const float* at(const float* panels, int64_t group, size_t phase, int64_t m, int64_t k) const;

 private:
  void pack_tile(const Bindings& bindings, int64_t group, int64_t m_first, float* panels,
                 float* scratch) const;
  // A row of numbers, or of cells.
  void load(const std::byte* source, int64_t stride, int64_t count, float* out) const;
  void load_channels(const std::byte* source, int64_t m_count, int64_t channels, float* scratch,
                     float* rows) const;
  bool are_sound(const float* panel, int64_t count, bool judge) const;
  void load_taps(const std::byte* source, int64_t m_count, int64_t channels, float* scratch,
                 float* rows) const;

  const problem::ConvPass& pass_;
  const DenseBlocking& cut_;
  int64_t partner_;
  int64_t taps_;      // all of the kernel's
  int64_t channels_;  // source channels turned over at once
  int64_t slots_;
  size_t panel_bytes_, slot_bytes_;
};

}  // namespace retrograd::engines::cpu
