// SPDX-License-Identifier: Apache-2.0
// The positions that one tile of dense_grad_weight.cpp adds up over.
#pragma once

#include <array>
#include <cstdint>

#include "engines/cpu/boxes.h"
#include "engines/cpu/dense/grad_weight_operands.h"
#include "problem/pass.h"

namespace retrograd::engines::cpu {

// Lists of `count` positions, which are taken `run` times, each time so much further on.
struct ListedPositions {
  const int64_t *rows = nullptr, *panel = nullptr;  // where they lie, from these on:
  const float *rows_from = nullptr, *panel_from = nullptr;
  int64_t count = 0, run = 1, rows_step = 0, panel_step = 0;
};

// Positions of one box that read inside x, tap by tap. Lists hold where they lie from the tap's own place on,
// so that one list serves all taps that are live at the same positions. A kernel of many taps and few
// channels spends as long on lists as on products (a third of the time, for 5 x 5 of 16 channels): one axis
// is not listed but stepped along, the first that has more than one position. Where that is H, the list is of
// a row, and all taps take a part of it.
class GradWeightPositions {
 public:
  // `runs`: W is stepped along, whose positions lie side by side in the rows.
  GradWeightPositions(const problem::ConvPass& pass, bool lanes_are_x, bool runs, const BoxGrid::Box& box,
                      const GradWeightLayout& rows, const GradWeightLayout& panel);

  ListedPositions at(const std::array<int64_t, 3>& tap);

 private:
  static constexpr int kImages = -1, kNone = 3;
  struct Live {
    int64_t images = 0;
    std::array<int64_t, 3> begin{}, end{};
    bool operator==(const Live&) const = default;
  };
  Live live_at(const std::array<int64_t, 3>& tap) const;
  int stepped_axis(const Live& live) const;
  void step_along(const Live& live, ListedPositions& listed) const;
  void list(const Live& live);

  const problem::ConvPass& pass_;
  bool lanes_are_x_, runs_;
  const BoxGrid::Box& box_;
  const GradWeightLayout &rows_, &panel_;
  // On the stack, not in the workspace: a caller who shares that by mistake gets wrong numbers, not a crash.
  int64_t row_list_[kPositionsPerBox], panel_list_[kPositionsPerBox];
  Live listed_;
  int stepped_ = kNone;
  int64_t count_ = -1;  // in the lists
};

}  // namespace retrograd::engines::cpu
