// SPDX-License-Identifier: Apache-2.0
// The positions that one tile of dense_grad_weight.cpp adds up over.
#pragma once

#include <array>
#include <cstdint>

#include "engines/cpu/boxes.h"
#include "engines/cpu/dense/grad_weight_operands.h"
#include "problem/pass.h"

namespace retrograd::engines::cpu {

// Each entry is the first of `run` neighbours along W, which lie side by side in the rows and panel_step
// apart in the panel.
struct ListedPositions {
  const int64_t *rows = nullptr, *panel = nullptr;  // where they lie, from these on:
  const float *rows_from = nullptr, *panel_from = nullptr;
  int64_t count = 0, run = 1, panel_step = 0;
};

// Positions of one box that read inside x, tap by tap. Lists hold where they lie from the tap's own place on,
// so that one list serves all taps that are live at the same positions, and parts of one serve all where the
// box is a piece of one row: a kernel of many taps and few channels spends as long on lists as on products.
class GradWeightPositions {
 public:
  // `runs`: rows of positions are listed, not each.
  GradWeightPositions(const problem::ConvPass& pass, bool lanes_are_x, bool runs, const BoxGrid::Box& box,
                      const GradWeightLayout& rows, const GradWeightLayout& panel);

  ListedPositions at(const std::array<int64_t, 3>& tap);

 private:
  struct Live {
    std::array<int64_t, 3> begin{}, end{};
    bool operator==(const Live&) const = default;
  };
  Live live_at(const std::array<int64_t, 3>& tap) const;
  void list(const Live& live);

  const problem::ConvPass& pass_;
  bool lanes_are_x_, runs_;
  const BoxGrid::Box& box_;
  const GradWeightLayout &rows_, &panel_;
  // On the stack, not in the workspace: a caller who shares that by mistake gets wrong numbers, not a crash.
  int64_t row_list_[kPositionsPerBox], panel_list_[kPositionsPerBox];
  bool one_row_;
  Live listed_;
  int64_t count_ = -1;  // in the lists
};

}  // namespace retrograd::engines::cpu
