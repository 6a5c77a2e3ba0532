// SPDX-License-Identifier: Apache-2.0
// The tiles of a task of dense_gather.cpp that one panel of weights serves.
#pragma once

#include <array>

#include "engines/cpu/dense_blocking.h"
#include "engines/cpu/dense_task.h"
#include "kernels/cpu/bf16_tiles.h"
#include "kernels/cpu/tile_product.h"

namespace retrograd::engines::cpu {

// Weights of one phase, `width` result channels and some source channels: [k][tap][width], or rows of the
// caller's tensor that are `k_stride` floats apart, where the kernel has one tap.
struct DensePanel {
  const float* first;
  int64_t width;
  int64_t k_stride = 0;       // 0: packed
  bool of_cells = false;      // of pairs of BF16 (bf16_cells.h); numbers otherwise
  bool in_registers = false;  // cells for tile registers
};

// All tiles of one phase, one block of source channels and one `width` of result channels.
class DenseTiles {
 public:
  // All must outlive this.
  DenseTiles(const DenseBlocking& cut, const DensePhase& phase, const DenseTask& task,
             const DenseSource& source)
      : cut_(cut), phase_(phase), task_(task), source_(source) {}

  // sums[position · m_block + v], the same plus what is there with `accumulate`.
  void run(const DensePanel& panel, int64_t channels, bool accumulate, float* sums);

 private:
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
  void list_taps(const std::array<TapRange, 3>& ranges);

  const DenseBlocking& cut_;
  const DensePhase& phase_;
  const DenseTask& task_;
  const DenseSource& source_;
  DensePanel panel_{};
  kernels::cpu::TileProduct tile_;
  kernels::cpu::Bf16Tiles registers_;
  float* sums_ = nullptr;
  TapRange d_taps_, h_taps_;          // of the row that is multiplied
  std::array<TapRange, 3> listed_{};  // taps in the lists
  int64_t listed_count_ = -1;
};

}  // namespace retrograd::engines::cpu
