// SPDX-License-Identifier: Apache-2.0
// Average pooling forward on dense tensors of FP32, FP16 or BF16 with fewer than 2^31 elements, x and y of
// one type and one layout: row-major, or channels innermost.
#pragma once

#include "kernels/cuda/pooling/pool.h"

namespace retrograd::kernels::cuda {

// vectors: channels last, a thread 16 bytes of channels of a column. whole: a window is a plane, some threads
// a plane. shared: channels last, windows of many places, a block some vectors of channels of a result.
// columns: through shared memory. any: a thread a result.
enum class ForwardKernel : unsigned char { kVectors, kWhole, kShared, kColumns, kAny };
const char* name_of(ForwardKernel kernel);
struct ForwardChoice {
  ForwardKernel kernel;
  ColumnsCut cut;  // of kColumns
};
// choice: forward_choice's; sums: forward_sums of them.
void pool_forward(const Pool& pool, bool channels_last, const ForwardChoice& choice, float* sums,
                  Stream stream);

}  // namespace retrograd::kernels::cuda
