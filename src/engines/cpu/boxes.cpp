// SPDX-License-Identifier: Apache-2.0
// Cutting positions into even boxes.
#include "engines/cpu/boxes.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/checked.h"

namespace retrograd::engines::cpu {

std::pair<int64_t, int64_t> cut_evenly(int64_t total, int64_t most) {
  const int64_t size = ceil_div(total, ceil_div(total, most));
  return {size, ceil_div(total, size)};
}

int64_t count_of(const Positions& p) { return p[0] * p[1] * p[2] * p[3]; }

std::string to_string(const BoxGrid& grid) {
  return fmt::format("{} boxes of {}", grid.count(), fmt::join(grid.box, "x"));
}

BoxGrid cut_into_boxes(const Positions& total, int64_t wanted) {
  BoxGrid grid;
  grid.total = total;
  int64_t room = std::max<int64_t>(wanted, 1);
  for (size_t axis = 4; axis-- > 0;) {
    std::tie(grid.box[axis], grid.boxes[axis]) = cut_evenly(total[axis], std::min(total[axis], room));
    room = std::max<int64_t>(room / grid.box[axis], 1);
  }
  return grid;
}

BoxGrid::Box BoxGrid::at(int64_t index) const {
  Box result;
  for (size_t axis = 4; axis-- > 0;) {
    result.first[axis] = index % boxes[axis] * box[axis];
    result.size[axis] = std::min(box[axis], total[axis] - result.first[axis]);
    index /= boxes[axis];
  }
  return result;
}

}  // namespace retrograd::engines::cpu
