// SPDX-License-Identifier: Apache-2.0
// Average pooling forward on dense tensors of FP32, FP16 or BF16 with fewer than 2^31 elements, x and y of
// one type and one layout: row-major, or channels innermost.
#pragma once

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// kColumns: a tile of y. 0 planes: no tile fits, or its memory would be read too often.
struct ForwardCut {
  int planes = 0, rows = 0, columns = 0;
  int band = 0;  // rows that a thread walks down
};
// tiles: 2x2 and 3x3 windows, channels last, a thread a few rows of results. whole: a window is a plane, some
// threads a plane. shared: channels last, windows of many places, a block some vectors of channels of a
// result. each: a thread a result. columns: through shared memory (pool_forward_columns.h).
enum class ForwardKernel : unsigned char { kTiles, kWhole, kShared, kEach, kColumns };
const char* name_of(ForwardKernel kernel);
struct ForwardChoice {
  ForwardKernel kernel;
  ForwardCut cut;  // of kColumns
};
// choice: forward_choice's; sums: forward_sums of them.
void pool_forward(const Pool& pool, bool channels_last, const ForwardChoice& choice, float* sums,
                  Stream stream);

}  // namespace retrograd::kernels::cuda
