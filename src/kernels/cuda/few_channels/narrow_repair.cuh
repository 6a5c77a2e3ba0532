// SPDX-License-Identifier: Apache-2.0
// Results of grad_input that are NaN, taken from the formula: a zero beyond the edge may have met an
// infinity. Looks at results where they lie, so that kernels need one place that calls it.
#pragma once

#include "kernels/cuda/repair.cuh"

namespace retrograd::kernels::cuda {

struct Run {
  int first, count, step = 1;
};

// Rows and columns beyond the edges are left out. Channels of a group have the same taps.
inline __device__ __noinline__ void repair_grad_input(const Conv& conv, int n, Run channels, Run rows,
                                                      Run columns, int64_t depth = 0) {
  for (int i = 0; i < rows.count; ++i)
    for (int j = 0; j < columns.count; ++j) {
      Index5 at{n, 0, depth, rows.first + i * rows.step, columns.first + j * columns.step};
      if (at.h < 0 || at.h >= conv.axes[1].x || at.w < 0 || at.w >= conv.axes[2].x) continue;
      Terms terms{};
      int64_t known = -1;  // whose channel's terms they are
      for (at.c = channels.first; at.c < channels.first + channels.count; ++at.c) {
        const int64_t offset = offset_of(conv.x, at);
        if (!isnan(load_any(conv.x.dtype, conv.x.data, offset))) continue;
        if (known < 0 || quotient(known, conv.x_channels) != quotient(at.c, conv.x_channels))
          terms = terms_of_place(conv, false, at);
        else
          terms.b += (at.c - known) * conv.w.strides[1];
        known = at.c;
        if (begins_with_nan(conv, Result::kGradInput, terms)) continue;
        const float sum = sum_of_terms(conv, Result::kGradInput, terms, 0, terms.all(), 0, 1);
        store_any(conv.x.dtype, conv.x.data, offset, sum + bias_of(conv, at.c));
      }
    }
}

}  // namespace retrograd::kernels::cuda
