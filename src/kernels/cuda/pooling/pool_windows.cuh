// SPDX-License-Identifier: Apache-2.0
// What the kernels of average pooling forward share: the average from the sum of a window.
#pragma once

#include "kernels/cuda/pooling_forward/pool_forward.h"

namespace retrograd::kernels::cuda {

// What a window's sum is divided by; not asked for where all windows have one scale.
__device__ inline float divisor_of(const Windows& p, int d, int h, int w) {
  return static_cast<float>(count_of(p.axes[0], d)) * static_cast<float>(count_of(p.axes[1], h)) *
         static_cast<float>(count_of(p.axes[2], w));
}

// Sums are never −0, divisors of counts never negative; a scale may be.
template <int kCount>
__device__ void average(const Windows& p, int d, int h, int w, float (&sums)[kCount]) {
  if (p.uniform) {
#pragma unroll
    for (float& sum : sums) sum = fmaf(sum, p.scale, 0.0f);
    return;
  }
  const float divisor = divisor_of(p, d, h, w);
#pragma unroll
  for (float& sum : sums) sum /= divisor;
}

}  // namespace retrograd::kernels::cuda
