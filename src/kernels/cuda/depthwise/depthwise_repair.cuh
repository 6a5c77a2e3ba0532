// SPDX-License-Identifier: Apache-2.0
// Results that are not finite, where a zero beside a kernel's diagonal may have met an infinity, are taken
// from the formula by the warp that has written them, once it is done: the loops only watch for them.
#pragma once

#include "kernels/cuda/repair.cuh"

namespace retrograd::kernels::cuda {

// Becomes NaN with the first value that is not finite.
__device__ inline void watch(float& witness, float value) { witness = fmaf(value, 0.0f, witness); }

// Rows of one plane of x, or of y if `result` is kForward.
template <class T>
__device__ __noinline__ void repair_rows(const Conv& conv, Result result, int64_t image, int channel, int row,
                                         int rows) {
  const bool forward = result == Result::kForward;
  const int width = static_cast<int>(forward ? conv.axes[2].y : conv.axes[2].x);
  const Tensor& target = forward ? conv.y : conv.x;
  __syncwarp();
  for (int i = static_cast<int>(threadIdx.x) % 32; i < rows * width; i += 32) {
    const Index5 at{image, channel, 0, row + i / width, i % width};
    T& value = static_cast<T*>(target.data)[offset_of(target, at)];
    if (!isfinite(to_float(value))) value = from_float<T>(by_formula(conv, result, at));
  }
}

}  // namespace retrograd::kernels::cuda
