// SPDX-License-Identifier: Apache-2.0
// Results of grad_input that are NaN, taken from the formula: a zero beyond the edge may have met an
// infinity. Looks at results where they lie, so that kernels need one place that calls it.
#pragma once

#include "kernels/cuda/repair.cuh"

namespace retrograd::kernels::cuda {

struct Run {
  int first, count;
};

inline __device__ __noinline__ void repair_grad_input(const Conv& conv, int n, Run channels, Run rows,
                                                      Run columns) {
  for (int c = channels.first; c < channels.first + channels.count; ++c)
    for (int h = rows.first; h < min(rows.first + rows.count, static_cast<int>(conv.axes[1].x)); ++h)
      for (int w = columns.first; w < min(columns.first + columns.count, static_cast<int>(conv.axes[2].x));
           ++w) {
        const Index5 at{n, c, 0, h, w};
        const int64_t offset = offset_of(conv.x, at);
        if (isnan(load_any(conv.x.dtype, conv.x.data, offset)) &&
            !begins_with_nan(conv, Result::kGradInput, at))
          store_any(conv.x.dtype, conv.x.data, offset, grad_input_sum(conv, at));
      }
}

}  // namespace retrograd::kernels::cuda
