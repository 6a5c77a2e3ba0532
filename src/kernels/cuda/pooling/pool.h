// SPDX-License-Identifier: Apache-2.0
// Average pooling on dense tensors of FP32, FP16 or BF16 with fewer than 2^31 elements, input and result of
// one type.
#pragma once

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// disjoint: windows side by side, without padding. columns: tiles in shared memory, a thread a few columns.
// vectors: channels last, a thread 16 bytes of channels of a column. any: a thread a few results.
enum class PoolKernel : unsigned char { kDisjoint, kColumns, kVectors, kAny };
const char* name_of(PoolKernel kernel);
// alignment: what both addresses are multiples of.
bool has_pool_kernel(PoolKernel kernel, const Pool& pool, bool channels_last, int alignment);
// The first of them that there is.
PoolKernel pool_kernel(const Pool& pool, bool channels_last, int alignment);

// kColumns: a block's tile.
struct ColumnsCut {
  int planes = 0;             // 0: no tile fits
  int steps = 0, strips = 0;  // down and across (pool_strips.h); where there are no strips, rows and elements
  int band = 0;               // steps that a thread walks down
};

// (N, C, D, H, W) row-major, or channels innermost. cut: columns_cut's, where the kernel is kColumns.
void pool_backward(const Pool& pool, bool channels_last, PoolKernel kernel, const ColumnsCut& cut,
                   Stream stream);

}  // namespace retrograd::kernels::cuda
