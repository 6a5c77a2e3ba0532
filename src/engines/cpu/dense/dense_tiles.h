// SPDX-License-Identifier: Apache-2.0
// The tiles of a task of dense_gather.cpp that one panel of weights serves.
#pragma once

#include <array>
#include <span>

#include "engines/cpu/dense/dense_blocking.h"
#include "engines/cpu/dense/dense_task.h"
#include "kernels/cpu/dense/cell_tiles.h"
#include "kernels/cpu/dense/tile_product.h"

namespace retrograd::engines::cpu {

// Kernels with more live taps are added up in several turns.
inline constexpr int64_t kTapsAtOnce = 2048;

// Weights of one phase, `width` result channels and some source channels: [k][tap][width], or rows of the
// caller's tensor that are `k_stride` floats apart, where the phase has one tap. That may be 0: a weight that
// is the same for all source channels.
struct DensePanel {
  const float* first;
  int64_t width;
  int64_t columns;  // of the width, that have a result channel
  float* sums;      // of position 0; they begin with start[v], or with zeros where that is null
  const float* start;
  float* results = nullptr;     // where the last sums go instead, or
  uint16_t* rounded = nullptr;  // as BF16; both null: nowhere else
  int64_t k_stride = 0;         // from one source channel to the next
  bool one_tap = false;         // not packed: the weights of the phase's only live tap, where they lie
  bool of_cells = false;        // of pairs of numbers (cells.h); numbers otherwise
  bool in_registers = false;    // cells for tile registers
};

// All tiles of one phase, one block of source channels and the result channels of some panels.
class DenseTiles {
 public:
  // All must outlive this, but `sums` and `results`: how far it is from place to place among those.
  DenseTiles(const DenseBlocking& cut, const DensePhase& phase, const DenseTask& task,
             const DenseSource& source, const SumPlaces& sums, const SumPlaces& results,
             kernels::cpu::CellType type);

  // The sums of every panel; the widest is the first. For each tile of positions all
  // panels are gone through. With `accumulate` sums begin with what is there.
  void run(std::span<const DensePanel> panels, int64_t channels, bool accumulate);

 private:
  // Where tiles end along W.
  std::span<const int64_t> cuts() const {
    if (cut_.crosses_cuts && !task_.masked) return whole_;
    return phase_.w_cuts;
  }
  int64_t count(size_t axis) const;
  // A position: floats in the source and in the sums, elements of the results.
  struct Place {
    int64_t source = 0, sum = 0, result = 0;
    friend Place operator+(const Place& a, const Place& b) {
      return {a.source + b.source, a.sum + b.sum, a.result + b.result};
    }
    friend Place operator*(int64_t count, const Place& step) {
      return {count * step.source, count * step.sum, count * step.result};
    }
  };
  TapRange taps(size_t axis, int64_t j) const;
  TapRange taps_of_w(int64_t j, int64_t count) const;
  bool two_rows_fit(int64_t y) const;
  void run_two_rows(const Place& upper);
  int64_t rows_alike(int64_t y) const;
  void run_area(const Place& first, int64_t height);
  void run_images(int64_t x, int64_t stop, const Place& first);
  // `count` results in a line, of which the first is at these places. A Place in memory would be waited for.
  // `along_w`: neighbours, of which taps that none of a tile reads through are left out, padded or not.
  void run_line(int64_t x, int64_t source, int64_t sum, int64_t result, const Place& line_step, int64_t count,
                bool along_w);
  void select(const DensePanel& panel, int64_t sum, int64_t result);
  void multiply(const DensePanel& panel, const std::array<TapRange, 3>& ranges);
  void begin_rows(const DensePanel& panel) const;
  int64_t channels_in_list(const DensePanel& panel, int64_t taps) const;
  // The live taps from number `from` on, as many as a list holds, of as many source channels as it has room
  // for; how many are live.
  int64_t list_taps(const DensePanel& panel, const std::array<TapRange, 3>& ranges, int64_t from);

  const DenseBlocking& cut_;
  const DensePhase& phase_;
  const DenseTask& task_;
  const DenseSource& source_;
  std::array<int64_t, 2> whole_;
  Place first_, image_;  // of the box, and from one image to the next
  std::array<Place, 3> axis_;
  std::span<const DensePanel> panels_;
  // Of the tile: its sums and its results.
  float *sums_ = nullptr, *results_ = nullptr;
  uint16_t* rounded_ = nullptr;
  int64_t sum_step_ = 0, result_step_ = 0;
  kernels::cpu::TileProduct tile_;
  kernels::cpu::CellTiles registers_;
  int64_t channels_ = 0;  // of the source
  bool accumulate_ = false;
  TapRange d_taps_, h_taps_;  // of the row that is multiplied
  // Offsets of the live taps, in the source and in the panel. They are on the stack, not in the workspace: a
  // caller who shares that by mistake gets wrong numbers, not a crash.
  std::array<TapRange, 3> listed_{};
  int64_t listed_from_ = -1;  // -1: nothing is listed
  int64_t listed_width_ = 0;
  int64_t live_ = 0;
  int64_t offsets_[kTapsAtOnce];
  int64_t b_offsets_[kTapsAtOnce];
};

}  // namespace retrograd::engines::cpu
