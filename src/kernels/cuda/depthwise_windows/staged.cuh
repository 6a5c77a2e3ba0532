// SPDX-License-Identifier: Apache-2.0
// The rows of the source that a block reads, on their way into shared memory: copies of 16 bytes where they
// lie inside the tensor, zeros for rows beyond the edge. Wait for the copies, then for the block.
#pragma once

#include "kernels/cuda/copy_async.cuh"
#include "kernels/cuda/depthwise_windows/staged_item.h"

namespace retrograd::kernels::cuda {

template <class T>
__device__ inline void stage_rows(const Staged& p, const StagedBlock& b, int phase, const T* source,
                                  T* tile) {
  constexpr int kWide = 16 / static_cast<int>(sizeof(T));
  const int pieces = staged_pieces(p, b);
  for (int i = static_cast<int>(threadIdx.x); i < pieces; i += static_cast<int>(blockDim.x)) {
    const StagedPiece piece = staged_piece(p, b, kWide, phase, i);
    T* const to = tile + piece.to;
    if (piece.kind == StagedPiece::kWhole) {
      copy_async_16(to, source + piece.from);
    } else if (piece.kind == StagedPiece::kZeros) {
      *reinterpret_cast<uint4*>(to) = make_uint4(0, 0, 0, 0);
    } else if (piece.kind == StagedPiece::kSome) {
      for (int k = 0; k < kWide; ++k)
        if (piece.from + k >= 0 && piece.from + k < int64_t{p.total}) to[k] = source[piece.from + k];
    }
  }
}

}  // namespace retrograd::kernels::cuda
