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
inline constexpr int64_t kTapsAtOnce = 512;

// Weights of one phase, `width` result channels and some source channels: [k][tap][width], or rows of the
// caller's tensor that are `k_stride` floats apart, where the phase has one tap. That may be 0: a weight that
// is the same for all source channels.
struct DensePanel {
  const float* first;
  int64_t width;
  int64_t k_stride = 0;       // from one source channel to the next
  bool one_tap = false;       // not packed: the weights of the phase's only live tap, where they lie
  bool of_cells = false;      // of pairs of numbers (cells.h); numbers otherwise
  bool in_registers = false;  // cells for tile registers
};

// All tiles of one phase, one block of source channels and one `width` of result channels.
class DenseTiles {
 public:
  // All must outlive this.
  DenseTiles(const DenseBlocking& cut, const DensePhase& phase, const DenseTask& task,
             const DenseSource& source, kernels::cpu::CellType type)
      : cut_(cut),
        phase_(phase),
        task_(task),
        source_(source),
        whole_{0, phase.axes[2].count},
        registers_(type) {}

  // sums[position · sum_stride + v], beginning with what is there with `accumulate`, else with start[v], or
  // with zeros where that is null.
  void run(const DensePanel& panel, int64_t channels, bool accumulate, const float* start, float* sums);

 private:
  // Where tiles end along W.
  std::span<const int64_t> cuts() const {
    if (cut_.crosses_cuts && !task_.masked) return whole_;
    return phase_.w_cuts;
  }
  int64_t count(size_t axis) const;
  int64_t place(size_t axis, int64_t j) const;
  TapRange taps(size_t axis, int64_t j) const;
  TapRange taps_of_w(int64_t j, int64_t count) const;
  bool two_rows_fit(int64_t y) const;
  void run_two_rows(const float* upper, const float* lower, int64_t position);
  int64_t rows_alike(int64_t y) const;
  void run_area(const float* at, int64_t height, int64_t position);
  void run_images(int64_t x, int64_t stop, const float* at, int64_t position);
  // Results in a line: where the first reads and stands among the sums, and how far it is to the next.
  struct Line {
    const float* at;
    int64_t step;
    int64_t position, position_step;
    int64_t count;
    bool along_w;  // neighbours: taps that none of a tile reads through are left out, padded or not
  };
  void run_line(int64_t x, Line line);
  void begin_rows(int64_t rows) const;
  int64_t channels_in_list(int64_t taps) const;
  // The live taps from number `from` on, as many as a list holds, of as many source channels as it has room
  // for; how many are live.
  int64_t list_taps(const std::array<TapRange, 3>& ranges, int64_t from);
  void multiply();

  const DenseBlocking& cut_;
  const DensePhase& phase_;
  const DenseTask& task_;
  const DenseSource& source_;
  std::array<int64_t, 2> whole_;
  DensePanel panel_{};
  kernels::cpu::TileProduct tile_;
  kernels::cpu::CellTiles registers_;
  float* sums_ = nullptr;
  int64_t channels_ = 0;  // of the source
  bool accumulate_ = false;
  TapRange d_taps_, h_taps_;  // of the row that is multiplied
  // Offsets of the live taps, in the source and in the panel. They are on the stack, not in the workspace: a
  // caller who shares that by mistake gets wrong numbers, not a crash.
  std::array<TapRange, 3> listed_{};
  int64_t listed_from_ = -1;  // -1: nothing is listed
  int64_t live_ = 0;
  int64_t offsets_[kTapsAtOnce];
  int64_t b_offsets_[kTapsAtOnce];
};

}  // namespace retrograd::engines::cpu
