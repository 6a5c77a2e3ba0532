// SPDX-License-Identifier: Apache-2.0
// Average pooling on dense tensors of FP32, FP16 or BF16 with fewer than 2^31 elements, input and result of
// one type.
#pragma once

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// disjoint: windows side by side, without padding. staged, sliding: 3x3 with padding 1, small planes in
// shared memory or not. tiles: 2x2 and 3x3, any padding and divisors, with depths. vectors: any windows, 16
// bytes of channels a thread. any: a thread a few results.
enum class PoolKernel : unsigned char { kDisjoint, kStaged, kSliding, kTiles, kVectors, kAny };
const char* name_of(PoolKernel kernel);
// alignment: what both addresses are multiples of.
bool has_pool_kernel(PoolKernel kernel, const Pool& pool, bool channels_last, int alignment);
// The first of them that there is.
PoolKernel pool_kernel(const Pool& pool, bool channels_last, int alignment);

// (N, C, D, H, W) row-major.
void pool_planes(const Pool& pool, PoolKernel kernel, Stream stream);
// Channels innermost.
void pool_channels_last(const Pool& pool, PoolKernel kernel, Stream stream);

}  // namespace retrograd::kernels::cuda
