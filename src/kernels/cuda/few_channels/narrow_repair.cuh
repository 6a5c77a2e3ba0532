// SPDX-License-Identifier: Apache-2.0
// Results of grad_input that are NaN, taken from the formula: a zero beyond the edge may have met an
// infinity. Looks at results where they lie, so that kernels need one place that calls it.
#pragma once

#include "kernels/cuda/repair.cuh"

namespace retrograd::kernels::cuda {

struct Run {
  int first, count, step = 1;
};

// Whether a term of x[at] is NaN that is found without a search.
__device__ inline bool middle_is_nan(const Conv& p, const Index5& at) {
  const Axis(&a)[3] = p.axes;
  if (!is_same(a[0]) || !is_same(a[1]) || !is_same(a[2])) return false;
  const int64_t group = quotient(at.c, p.x_channels), y_channel = group * p.y_channels;
  const Source y(p.y, p.rounding), w(p.w, p.rounding);
  return isnan(y(offset_of(p.y, {at.n, y_channel, at.d, at.h, at.w})) *
               w(offset_of(p.w, {y_channel, at.c - group * p.x_channels, a[0].kernel / 2, a[1].kernel / 2,
                                 a[2].kernel / 2})));
}

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
        if (!isnan(load_any(conv.x.dtype, conv.x.data, offset)) || middle_is_nan(conv, at)) continue;
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
