// SPDX-License-Identifier: Apache-2.0
#include "layouts.h"

#include <algorithm>

namespace retrograd_torch {
namespace {

// Axes from the fastest to the slowest.
std::vector<int> order(int rank, Format format) {
  std::vector<int> axes;
  if (format == Format::kChannelsLast && rank >= 3) axes.push_back(1);
  for (int axis = rank - 1; axis >= 0; --axis)
    if (axis != 1 || axes.empty() || axes[0] != 1) axes.push_back(axis);
  return axes;
}

}  // namespace

ResultLayout dense(const std::vector<int64_t>& sizes, Format format) {
  ResultLayout layout;
  layout.rank = static_cast<int>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), layout.sizes.begin());
  int64_t stride = 1;
  for (const int axis : order(layout.rank, format)) {
    layout.strides[static_cast<size_t>(axis)] = stride;
    stride *= std::max<int64_t>(sizes[static_cast<size_t>(axis)], 1);
  }
  return layout;
}

Format suggested(int rank, const int64_t* sizes, const int64_t* strides) {
  if (rank < 4 || strides[1] == 0) return Format::kContiguous;
  int64_t least = 0;
  for (const int axis : order(rank, Format::kChannelsLast)) {
    if (sizes[axis] == 0 || strides[axis] < least) return Format::kContiguous;
    // (N, C, 1, 1) with equal strides of N and C: N is no slower than C.
    if (axis == 0 && least == strides[1]) return Format::kContiguous;
    least = strides[axis] * std::max<int64_t>(sizes[axis], 1);
  }
  return Format::kChannelsLast;
}

}  // namespace retrograd_torch
