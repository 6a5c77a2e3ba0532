// SPDX-License-Identifier: Apache-2.0
// Where the tasks of dense_gather.cpp read: in the caller's tensor, or in a strip copied from it.
#pragma once

#include "engines/cpu/dense/cells.h"
#include "engines/cpu/dense/dense_blocking.h"
#include "engines/cpu/dense/dense_task.h"
#include "engines/cpu/gather_sides.h"
#include "engines/cpu/rows.h"
#include "engines/engine.h"
#include "kernels/cpu/dense/cell_pairs.h"

namespace retrograd::engines::cpu {

class DenseSources {
 public:
  // Pass and cut must outlive this; the pass is that of `cells`, which may be cells (cells.h) or numbers.
  DenseSources(const problem::ConvPass& pass, const DenseBlocking& cut, const CellPass& cells);

  bool in_place() const { return cut_.in_place; }
  // Of a task's strip, of the same turned over, and of the strips that all tasks share.
  size_t strip_bytes() const { return strip_bytes_; }
  size_t turned_bytes() const { return turned_bytes_; }
  size_t shared_bytes() const { return shared_bytes_; }

  // Source channels [first, first + channels) of the task; `shared` is where share() put its strips.
  DenseSource at(const Bindings& bindings, DenseTask& task, int64_t first, int64_t channels,
                 float* shared) const;

  // Strips for all tasks, [group][images of a box][block of channels], are loaded in pieces.
  int64_t shared_pieces() const;
  // Which task's source piece `index` is of, and the loading of it.
  int64_t task_of(int64_t index) const;
  void share(const Bindings& bindings, DenseTask& task, int64_t index, float* shared) const;

 private:
  int64_t blocks() const;
  int64_t pieces() const;  // of a block
  DenseSource find(const Bindings& bindings, const DenseTask& task, int64_t first) const;
  // Whether all cells that a task reads where they lie are large enough.
  bool are_large(const DenseTask& task, const DenseSource& source, int64_t channels) const;
  // Into a strip of `of_strip` channels.
  DenseSource load(const Bindings& bindings, DenseTask& task, int64_t first, int64_t channels,
                   int64_t of_strip) const;
  // The same with channels side by side.
  DenseSource load_places(const Bindings& bindings, DenseTask& task, int64_t first, int64_t channels) const;
  DenseSource placed(const float* strip, int64_t images, int64_t channels) const;
  float* shared_strip(const DenseTask& task, int64_t first, float* shared) const;
  DenseSource in_strip(const float* strip, int64_t channels) const;
  DenseSource turned(const float* strip, int64_t images, int64_t channels) const;
  bool turns() const { return !cut_.by_place && (tiles_ || cut_.images_inside); }
  int64_t shared_floats() const;
  const float* whole_planes(const Bindings& bindings, const DenseTask& task, int64_t first) const;
  // Where a tensor has source channel `first` of the task's group, in elements from the image on.
  int64_t channel_at(const DenseTask& task, int64_t first) const;
  // Whether the last of these cells has one number only.
  bool has_rest(int64_t first, int64_t channels) const {
    return rest_ && first + channels == source_channels(pass_);
  }
  bool load_strip_of_cells(const std::byte* from, StripShape shape, bool rest, float* out) const;

  const problem::ConvPass& pass_;
  const DenseBlocking& cut_;
  int64_t partner_;
  bool together_, tiles_;
  bool rest_;    // the last source channel of a group has no partner
  bool judges_;  // cells that are copied or read in place must be looked at: one of FP16 is never too small
  kernels::cpu::CellType type_;
  int64_t piece_;  // source channels that are loaded at once
  size_t strip_bytes_ = 0, turned_bytes_ = 0, shared_bytes_ = 0;
};

}  // namespace retrograd::engines::cpu
