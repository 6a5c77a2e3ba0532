// SPDX-License-Identifier: Apache-2.0
// Exchanging axes.
#include "engines/cpu/few_channels/row_axis.h"

#include <utility>

#include "base/checked.h"
#include "engines/cpu/gather_sides.h"

namespace retrograd::engines::cpu {
namespace {

int64_t positions_along(const problem::ConvPass& pass, size_t axis) {
  const problem::Window& w = pass.axes[axis];
  return is_forward(pass) ? w.y : ceil_div(w.x, w.stride);
}

}  // namespace

int64_t row_positions_of(const problem::ConvPass& pass) { return positions_along(pass, 2); }

problem::ConvPass with_long_rows(problem::ConvPass pass) {
  if (row_positions_of(pass) >= kShortestRow) return pass;
  const size_t longest = positions_along(pass, 0) > positions_along(pass, 1) ? 0 : 1;
  if (positions_along(pass, longest) < kShortestRow) return pass;
  std::swap(pass.axes[longest], pass.axes[2]);
  for (problem::PassTensor* t : {&pass.x, &pass.y, &pass.w})
    std::swap(t->strides[longest + 2], t->strides[4]);
  return pass;
}

}  // namespace retrograd::engines::cpu
