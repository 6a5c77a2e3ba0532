// SPDX-License-Identifier: Apache-2.0
// Average pooling forward on dense tensors of FP32, FP16 or BF16 with fewer than 2^31 elements, x and y of
// one type and one layout: row-major, or channels innermost.
#pragma once

#include "kernels/cuda/pooling/pool.h"
#include "kernels/cuda/pooling/pool_plan.h"

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

// How average pooling forward is cut. All kernels add a window in an order that follows from the problem
// alone: rows of pixels first, then rows, then depths; or, where several threads share a window, each its
// share in that order and the shares in a fixed tree; where blocks share it, the sums of the parts last.
ForwardChoice forward_choice(const Pool& pool, bool channels_last);

// Neighbouring channels that a thread takes at once; alignment: what both addresses are multiples of.
int forward_vector(const Pool& pool, bool channels_last, int alignment);

// Long windows of few results are cut into parts, a block each; a second launch adds their sums.
struct WindowParts {
  int64_t count, places;  // places: of a part, but for the last
};

// kShared: lanes of a block, a power of two, take vectors of channels side by side. The other threads share
// the places.
struct SharedCut {
  int lanes;
  WindowParts parts;
};
SharedCut shared_cut(const Pool& pool);

// kWhole: runs of `places` elements of x, each the window of one result.
struct WholePlanes {
  int64_t planes, places;
  WindowParts parts;
  int lanes;    // threads of a plane: 8, 32 or 256
  float scale;  // of the one divisor there is
};
WholePlanes whole_planes(const Pool& pool);

// FP32 sums of parts in the workspace; 0: windows are not cut.
int64_t forward_sums(const Pool& pool, ForwardKernel kernel);

}  // namespace retrograd::kernels::cuda
