// SPDX-License-Identifier: Apache-2.0
// Sizes as 32-bit counts: quotients, and which numbers are below one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/checked.h"
#include "base/host_device.h"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

inline int ceil_of(int64_t a, int64_t b) { return static_cast<int>(ceil_div(a, b)); }

RG_DEVICE inline bool is_inside(int number, int count) {
  return static_cast<unsigned>(number) < static_cast<unsigned>(count);
}

// For structs with arrays of these names.
template <class Axes>
void set_axes(const Conv& conv, Axes& p) {
  for (int a = 0; a < 3; ++a) {
    const Axis& axis = conv.axes[a];
    p.outputs[a] = FastDiv(std::max(axis.y, int64_t{1}));
    p.stride[a] = static_cast<int>(axis.stride);
    p.dilation[a] = static_cast<int>(axis.dilation);
    p.pad[a] = static_cast<int>(axis.pad);
    p.source[a] = static_cast<int>(axis.x);
    p.kernel[a] = static_cast<int>(axis.kernel);
  }
}

}  // namespace retrograd::kernels::cuda
