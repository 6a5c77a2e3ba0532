// SPDX-License-Identifier: Apache-2.0
// How blocks share channels-last tensors: neighbouring threads take neighbouring pairs of channels, so that a
// warp reads whole lines; further threads of a block take further tiles of places.
#pragma once

#include "kernels/cuda/alignment.h"
#include "kernels/cuda/depthwise_nhwc/depthwise_last_plan.h"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

inline bool has_vectors(const Conv& conv, int vector) {
  const size_t bytes = static_cast<size_t>(vector) * size_of(conv.x.dtype);
  return conv.groups % vector == 0 && is_aligned(conv.x.data, bytes) && is_aligned(conv.y.data, bytes);
}

}  // namespace retrograd::kernels::cuda
