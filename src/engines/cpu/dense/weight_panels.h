// SPDX-License-Identifier: Apache-2.0
// Weights of a forward or grad_input pass, packed for the tiles of dense_gather.cpp:
// panels[group][tile of result channels][phase][k][tap][width], zeros beyond the last channel.
#pragma once

#include "engines/cpu/dense/dense_blocking.h"
#include "engines/engine.h"
#include "kernels/cpu/dense/cell_pairs.h"

namespace retrograd::engines::cpu {

// What packed weights are.
struct PanelFacts {
  bool large = true;   // none is too small for its cell
  bool finite = true;  // all are; not looked at unless asked for
};

class WeightPanels {
 public:
  // Pass and cut must outlive this. `cells`: the pass is over cells of the type (cells.h), `partner`
  // is that of their numbers, or 0 where the weight has cells as they are; `rest`: the last source channel of
  // a group has none.
  WeightPanels(const problem::ConvPass& pass, const DenseBlocking& cut, int threads, bool cells = false,
               int64_t partner = 0, kernels::cpu::CellType type = {}, bool rest = false);

  size_t bytes() const {
    return cut_.whole_images ? 0 : panel_bytes_ + static_cast<size_t>(slots_) * slot_bytes_;
  }
  // Tasks of pack(), before those of the cut and in as many slots.
  int64_t tasks() const;
  PanelFacts pack(const Bindings& bindings, int64_t task, int64_t slot, float* panels, bool judge) const;
  // The part of pack() that one task needs where cut.whole_images: block[tile][phase][k][tap][width] of the
  // tiles of cut.width result channels and source channels [k, k + channels); `scratch` holds
  // scratch_floats().
  PanelFacts pack_block(const Bindings& bindings, int64_t group, int64_t m, int64_t k, int64_t channels,
                        float* block, float* scratch, bool judge) const;
  // Floats of a block, and of the scratch it takes to pack one.
  int64_t block_floats(int64_t channels) const;
  int64_t scratch_floats() const { return static_cast<int64_t>(slot_bytes_ / sizeof(float)); }
  // Of the tile at result channel m, source channels from k on.
  const float* at(const float* panels, int64_t group, size_t phase, int64_t m, int64_t k) const;

 private:
  // A tile of result channels.
  struct Tile {
    int64_t group, m, count, width;
  };
  Tile tile_at(int64_t group, int64_t m) const;
  // Source channels [k, k + channels), at most channels_; place(phase) is where those of a phase belong.
  template <class Place>
  void pack_channels(const Bindings& bindings, const Tile& tile, int64_t k, int64_t channels, float* scratch,
                     const Place& place) const;
  template <class Place>
  void copy_channels(const float* weights, const Tile& tile, int64_t k, int64_t channels,
                     const Place& place) const;
  bool packs_directly() const;
  bool loads_by_tap() const;
  void load(const std::byte* source, int64_t partner, int64_t step, int64_t rows, int64_t count, float* out,
            int64_t pitch) const;
  void load_channels(const std::byte* source, const Tile& tile, int64_t channels, float* scratch, float* rows,
                     int64_t partner) const;
  void load_taps(const std::byte* source, const Tile& tile, int64_t channels, bool rest, float* scratch,
                 float* rows) const;
  void look_at(const float* panel, int64_t count, bool judge, PanelFacts& facts) const;

  const problem::ConvPass& pass_;
  const DenseBlocking& cut_;
  bool cells_;
  int64_t partner_;
  kernels::cpu::CellType type_;
  bool rest_;
  int64_t taps_;          // all of the kernel's
  bool together_;         // numbers of a cell lie side by side, as do the cells of a tap
  int64_t channels_ = 1;  // source channels turned over at once
  int64_t piece_ = 1;     // and in a task
  int64_t slots_;
  size_t panel_bytes_, slot_bytes_ = 0;
};

}  // namespace retrograd::engines::cpu
