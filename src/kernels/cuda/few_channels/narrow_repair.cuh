// SPDX-License-Identifier: Apache-2.0
// Results of grad_input that are NaN, taken from the formula: a zero beyond the edge may have met an
// infinity. Looks at results where they lie, so that kernels need one place that calls it.
#pragma once

#include "kernels/cuda/repair.cuh"

namespace retrograd::kernels::cuda {

struct Run {
  int first, count, step = 1;
};

// Rows and columns beyond the edges are left out.
inline __device__ __noinline__ void repair_grad_input(const Conv& conv, int n, Run channels, Run rows,
                                                      Run columns, int64_t depth = 0) {
  for (int c = channels.first; c < channels.first + channels.count; ++c)
    for (int i = 0; i < rows.count; ++i)
      for (int j = 0; j < columns.count; ++j) {
        const Index5 at{n, c, depth, rows.first + i * rows.step, columns.first + j * columns.step};
        if (at.h < 0 || at.h >= conv.axes[1].x || at.w < 0 || at.w >= conv.axes[2].x) continue;
        const int64_t offset = offset_of(conv.x, at);
        if (isnan(load_any(conv.x.dtype, conv.x.data, offset)) &&
            !begins_with_nan(conv, Result::kGradInput, at))
          store_any(conv.x.dtype, conv.x.data, offset, by_formula(conv, Result::kGradInput, at));
      }
}

}  // namespace retrograd::kernels::cuda
