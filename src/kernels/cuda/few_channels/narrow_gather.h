// SPDX-License-Identifier: Apache-2.0
// grad_input with at most four x channels a group, on row-major planes of FP32: stems and
// narrow groups.
#pragma once

#include <cstddef>

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

inline constexpr int64_t kNarrowChannels = 4;

// Shared memory that the weights of a group take.
inline size_t narrow_bytes(const Conv& conv) {
  return static_cast<size_t>(conv.y_channels * conv.axes[1].kernel * conv.axes[2].kernel * kNarrowChannels) *
         sizeof(float);
}
void narrow_grad_input(const Conv& conv, Stream stream);

}  // namespace retrograd::kernels::cuda
