// SPDX-License-Identifier: Apache-2.0
// The kernels that average pooling of dense tensors is made of.
#pragma once

#include "kernels/cuda/pooling/pool.h"

namespace retrograd::kernels::cuda {

// From the formula, forward and backward: a thread a result.
void pool_any(const Pool& pool, bool channels_last, bool forward, Stream stream);

// Through shared memory, forward and backward: any windows for which a tile fits.
void pool_columns(const Pool& pool, bool channels_last, bool forward, const ColumnsCut& cut, Stream stream);

// Channels last, forward and backward, 16 bytes of channels a thread.
void pool_vectors(const Pool& pool, bool forward, Stream stream);

// Backward with windows side by side, no padding and one divisor, on row-major planes: rows of whole vectors
// of 16 bytes at multiples of that, or planes and volumes that are one window each.
void pool_disjoint(const Pool& pool, float scale, Stream stream);

// The same of channels-last tensors, whole 16-byte vectors of channels at multiples of 16 bytes; every window
// is multiplied with `scale`.
void pool_last_side_by_side(const Pool& pool, float scale, Stream stream);

// Forward with windows of many pixels, which several threads share; sums: forward_sums of them. Row-major
// planes, each of them one window (ForwardKernel::kWhole).
void pool_whole(const Pool& pool, float* sums, Stream stream);
// Channels last; vector: channels of a thread, 16 bytes of them or one.
void pool_shared(const Pool& pool, int vector, float* sums, Stream stream);

}  // namespace retrograd::kernels::cuda
