// SPDX-License-Identifier: Apache-2.0
// The lists of grad_weight_positions.h.
#include "engines/cpu/dense/grad_weight_positions.h"

#include <algorithm>

namespace retrograd::engines::cpu {

GradWeightPositions::GradWeightPositions(const problem::ConvPass& pass, bool lanes_are_x, bool runs,
                                         const BoxGrid::Box& box, const GradWeightLayout& rows,
                                         const GradWeightLayout& panel)
    : pass_(pass),
      lanes_are_x_(lanes_are_x),
      runs_(runs),
      box_(box),
      rows_(rows),
      panel_(panel),
      one_row_(!runs && box.size[0] * box.size[1] * box.size[2] == 1) {}

GradWeightPositions::Live GradWeightPositions::live_at(const std::array<int64_t, 3>& tap) const {
  Live live;
  for (size_t axis = 0; axis < 3; ++axis) {
    const auto inside = live_outputs(pass_.axes[axis], tap[axis]);
    const int64_t first = box_.first[axis + 1];
    live.begin[axis] = std::max(inside.begin, first);
    live.end[axis] = std::max(std::min(inside.end, first + box_.size[axis + 1]), live.begin[axis]);
  }
  return live;
}

ListedPositions GradWeightPositions::at(const std::array<int64_t, 3>& tap) {
  const Live live = live_at(tap);
  ListedPositions listed;
  for (size_t axis = 0; axis < 3; ++axis)
    if (live.begin[axis] == live.end[axis]) return listed;
  Live wanted = live;
  if (one_row_) {
    wanted.begin[2] = box_.first[3];
    wanted.end[2] = box_.first[3] + box_.size[3];
  }
  if (count_ < 0 || wanted != listed_) list(wanted);
  const GradWeightLayout& x = lanes_are_x_ ? panel_ : rows_;
  int64_t from = 0;
  for (size_t axis = 0; axis < 3; ++axis) {
    const problem::Window& w = pass_.axes[axis];
    from += (tap[axis] * w.dilation - w.pad_lo - x.start[axis]) * x.axis[axis];
  }
  const int64_t skipped = live.begin[2] - wanted.begin[2];
  listed.rows = row_list_ + skipped;
  listed.panel = panel_list_ + skipped;
  listed.rows_from = rows_.first + (lanes_are_x_ ? 0 : from);
  listed.panel_from = panel_.first + (lanes_are_x_ ? from : 0);
  listed.count = one_row_ ? live.end[2] - live.begin[2] : count_;
  if (runs_) {
    listed.run = live.end[2] - live.begin[2];
    listed.panel_step = panel_.axis[2] * (lanes_are_x_ ? pass_.axes[2].stride : 1);
  }
  return listed;
}

// x from the tap's place at position 0 on, y from position 0 on.
void GradWeightPositions::list(const Live& live) {
  listed_ = live;
  count_ = 0;
  const GradWeightLayout& x = lanes_are_x_ ? panel_ : rows_;
  const GradWeightLayout& y = lanes_are_x_ ? rows_ : panel_;
  int64_t* x_out = lanes_are_x_ ? panel_list_ : row_list_;
  int64_t* y_out = lanes_are_x_ ? row_list_ : panel_list_;
  std::array<int64_t, 3> x_step;
  for (size_t axis = 0; axis < 3; ++axis) x_step[axis] = pass_.axes[axis].stride * x.axis[axis];
  const int64_t w_end = runs_ ? live.begin[2] + 1 : live.end[2];
  for (int64_t n = 0; n < box_.size[0]; ++n)
    for (int64_t d = live.begin[0]; d < live.end[0]; ++d)
      for (int64_t h = live.begin[1]; h < live.end[1]; ++h) {
        const int64_t x_at = n * x.image + d * x_step[0] + h * x_step[1];
        const int64_t y_at = n * y.image + (d - y.start[0]) * y.axis[0] + (h - y.start[1]) * y.axis[1] -
                             y.start[2] * y.axis[2];
        for (int64_t w = live.begin[2]; w < w_end; ++w, ++count_) {
          x_out[count_] = x_at + w * x_step[2];
          y_out[count_] = y_at + w * y.axis[2];
        }
      }
}

}  // namespace retrograd::engines::cpu
