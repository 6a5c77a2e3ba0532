// SPDX-License-Identifier: Apache-2.0
// Which tiles of m places by n channels a gather product is cut into. All of them add in the same order.
#pragma once

#include "kernels/cuda/dense/gather_product.h"

namespace retrograd::kernels::cuda {

struct GatherTiles {
  int m, n;
  double time;
};
// time: of f32_gather_tiles in microseconds on a GPU with as many multiprocessors as an H200's, of
// gather_tiles in results of a multiprocessor that are made one after the other, or idle.
GatherTiles gather_tiles(int64_t places, int64_t columns, int64_t groups, ProductMath math,
                         int multiprocessors);

// The same of f32_gather; steps: of 32 terms.
GatherTiles f32_gather_tiles(int64_t places, int64_t columns, int64_t steps, ProductMath math,
                             int multiprocessors);

}  // namespace retrograd::kernels::cuda
