// SPDX-License-Identifier: Apache-2.0
// The lists of grad_weight_positions.h.
#include "engines/cpu/dense/grad_weight_positions.h"

#include <algorithm>

namespace retrograd::engines::cpu {

// Lists that are shorter have the multipliers wait where one ends and is begun again.
constexpr int64_t kShortestList = 8;

GradWeightPositions::GradWeightPositions(const problem::ConvPass& pass, bool lanes_are_x, bool runs,
                                         const BoxGrid::Box& box, const GradWeightLayout& rows,
                                         const GradWeightLayout& panel)
    : pass_(pass), lanes_are_x_(lanes_are_x), runs_(runs), box_(box), rows_(rows), panel_(panel) {}

GradWeightPositions::Live GradWeightPositions::live_at(const std::array<int64_t, 3>& tap) const {
  Live live{.images = box_.size[0]};
  for (size_t axis = 0; axis < 3; ++axis) {
    const auto inside = live_outputs(pass_.axes[axis], tap[axis]);
    const int64_t first = box_.first[axis + 1];
    live.begin[axis] = std::max(inside.begin, first);
    live.end[axis] = std::max(std::min(inside.end, first + box_.size[axis + 1]), live.begin[axis]);
  }
  return live;
}

// The axis that is not listed: kImages, an axis of space, or kNone.
int GradWeightPositions::stepped_axis(const Live& live) const {
  if (runs_) return 2;
  const auto size = [&](size_t axis) { return live.end[axis] - live.begin[axis]; };
  const int64_t row = size(2), plane = size(1) * row, image = size(0) * plane;
  const int axis = live.images > 1 ? kImages : box_.size[1] > 1 ? 0 : 1;
  return (axis == kImages ? image : axis == 0 ? plane : row) >= kShortestList ? axis : kNone;
}

ListedPositions GradWeightPositions::at(const std::array<int64_t, 3>& tap) {
  const Live live = live_at(tap);
  ListedPositions listed;
  for (size_t axis = 0; axis < 3; ++axis)
    if (live.begin[axis] == live.end[axis]) return listed;
  const int stepped = stepped_axis(live);
  Live wanted = live;
  if (stepped == kImages) wanted.images = 1;
  if (stepped >= 0 && stepped < kNone) {
    const auto axis = static_cast<size_t>(stepped);
    wanted.end[axis] = live.begin[axis] + 1;
  }
  const bool parts = stepped == 1;  // of the list of a whole row
  if (parts) {
    wanted.begin[1] = box_.first[2];
    wanted.end[1] = box_.first[2] + 1;
    wanted.begin[2] = box_.first[3];
    wanted.end[2] = box_.first[3] + box_.size[3];
  }
  if (count_ < 0 || stepped != stepped_ || wanted != listed_) {
    stepped_ = stepped;
    list(wanted);
  }
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
  listed.count = parts ? live.end[2] - live.begin[2] : count_;
  step_along(live, listed);
  if (parts) {
    listed.rows_from += (live.begin[1] - wanted.begin[1]) * listed.rows_step;
    listed.panel_from += (live.begin[1] - wanted.begin[1]) * listed.panel_step;
  }
  return listed;
}

void GradWeightPositions::step_along(const Live& live, ListedPositions& listed) const {
  if (stepped_ == kNone) return;
  if (stepped_ == kImages) {
    listed.run = live.images;
    listed.rows_step = rows_.image;
    listed.panel_step = panel_.image;
    return;
  }
  const auto axis = static_cast<size_t>(stepped_);
  listed.run = live.end[axis] - live.begin[axis];
  listed.rows_step = rows_.axis[axis] * (lanes_are_x_ ? 1 : pass_.axes[axis].stride);
  listed.panel_step = panel_.axis[axis] * (lanes_are_x_ ? pass_.axes[axis].stride : 1);
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
  for (int64_t n = 0; n < live.images; ++n)
    for (int64_t d = live.begin[0]; d < live.end[0]; ++d)
      for (int64_t h = live.begin[1]; h < live.end[1]; ++h) {
        const int64_t x_at = n * x.image + d * x_step[0] + h * x_step[1];
        const int64_t y_at = n * y.image + (d - y.start[0]) * y.axis[0] + (h - y.start[1]) * y.axis[1] -
                             y.start[2] * y.axis[2];
        for (int64_t w = live.begin[2]; w < live.end[2]; ++w, ++count_) {
          x_out[count_] = x_at + w * x_step[2];
          y_out[count_] = y_at + w * y.axis[2];
        }
      }
}

}  // namespace retrograd::engines::cpu
