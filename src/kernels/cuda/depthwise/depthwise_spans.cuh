// SPDX-License-Identifier: Apache-2.0
// Lines cut into groups of eight pixels, 16 bytes each. A tile is sixteen groups: the rows of a matrix whose
// columns are a window around each group.
#pragma once

#include "kernels/cuda/dense/tile_mma.cuh"
#include "kernels/cuda/depthwise/depthwise_plan.h"

namespace retrograd::kernels::cuda {

// Groups begin, begin + 1, … of a line of so many, zeros where there are none.
template <class T>
__device__ void start_groups(uint32_t target, int count, const T* line, int begin, int groups, int lane) {
  for (int i = lane; i < count; i += 32) {
    const bool there = static_cast<unsigned>(begin + i) < static_cast<unsigned>(groups);
    copy_chunk(target + i * 16, there ? line + (begin + i) * 8 : line, there);
  }
}

}  // namespace retrograd::kernels::cuda
