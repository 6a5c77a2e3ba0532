// SPDX-License-Identifier: Apache-2.0
// How groups are shared out to blocks.
#include <algorithm>

#include "base/checked.h"
#include "kernels/cuda/few_channels/group_rows.h"

namespace retrograd::kernels::cuda {

GroupRows group_rows_plan(const Conv& conv, bool forward) {
  constexpr int64_t kMostEights = 16;          // of a block: 256 bytes of a place
  constexpr int64_t kMostWeights = 96 * 1024;  // bytes
  const int64_t terms = forward ? conv.x_channels : conv.y_channels,
                columns = forward ? conv.y_channels : conv.x_channels;
  if (conv.groups < 2 || terms == 0 || columns == 0 || terms % 8 != 0 || columns % 8 != 0 || terms > 32 ||
      columns > 32)
    return {};
  GroupRows plan{};
  plan.terms = static_cast<int>(terms / 8);
  plan.columns = static_cast<int>(columns / 8);
  // As few blocks as can take them, and groups spread evenly.
  const int64_t most = kMostEights / std::max(plan.terms, plan.columns);
  plan.slabs = static_cast<int>(ceil_div(conv.groups, most));
  const int64_t groups = ceil_div(conv.groups, plan.slabs);
  int64_t taps = 1;
  for (const Axis& axis : conv.axes) taps *= axis.kernel;
  const int64_t a_tap = groups * plan.terms * plan.columns * 128;
  if (taps > kMostWeights / a_tap) return {};
  plan.groups = static_cast<int>(groups);
  plan.weight_bytes = static_cast<int>(taps * a_tap);
  return plan;
}

}  // namespace retrograd::kernels::cuda
