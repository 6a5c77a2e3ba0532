// SPDX-License-Identifier: Apache-2.0
// The sums of one thread of narrow_tiles_gather.cu: what its results read along each axis, and the products.
#pragma once

#include "kernels/cuda/few_channels/narrow_tile.cuh"

namespace retrograd::kernels::cuda {

template <class S>
struct GatherSums {
  float of[S::kPieces][S::kSh][S::kC][4 * S::kSw] = {};

  // Row v of the window, for one piece.
  template <int kV>
  __device__ void add_row(int piece, const float* values, const float (*weights)[S::kLine * 4]) {
#pragma unroll
    for (int rh = 0; rh < S::kSh; ++rh) {
      if (S::H::tap(rh, kV) < 0) continue;
#pragma unroll
      for (int v = 0; v < S::W::kWindow; ++v)
#pragma unroll
        for (int rw = 0; rw < S::kSw; ++rw) {
          const int kw = S::W::tap(rw, v);
          if (kw < 0) continue;
#pragma unroll
          for (int c = 0; c < S::kC; ++c)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              float& sum = of[piece][rh][c][i * S::kSw + rw];
              sum = fmaf(values[i + v], weights[rh][kw * S::kC + c], sum);
            }
        }
    }
  }

  // The rows of weights that row v of the window meets.
  template <int kV>
  __device__ static void load_weights(const float* w, float (*weights)[S::kLine * 4]) {
#pragma unroll
    for (int rh = 0; rh < S::kSh; ++rh)
      if (S::H::tap(rh, kV) >= 0) load_chunks<S::kLine>(w + S::H::tap(rh, kV) * S::kLine * 4, weights[rh]);
  }

  template <int kV = 0>
  __device__ void add(const float* y, int pitch, int quad_step, const float* w) {
    if constexpr (kV < S::H::kWindow) {
      float weights[S::kSh][S::kLine * 4];
      load_weights<kV>(w, weights);
#pragma unroll
      for (int k = 0; k < S::kPieces; ++k) {
        float values[S::kChunks * 4];
        load_chunks<S::kChunks>(S::kAlongRows ? y + (kV + k) * pitch : y + kV * pitch + k * quad_step,
                                values);
        add_row<kV>(k, values, weights);
      }
      add<kV + 1>(y, pitch, quad_step, w);
    }
  }

  template <int kRow = 0>
  __device__ void add_rows(const float* y, int pitch, const float (*weights)[1][S::kLine * 4]) {
    if constexpr (kRow < S::kPieces + S::H::kWindow - 1) {
      float values[S::kChunks * 4];
      load_chunks<S::kChunks>(y + kRow * pitch, values);
      add_to_pieces<kRow, 0>(values, weights);
      add_rows<kRow + 1>(y, pitch, weights);
    }
  }
  template <int kRow, int kPiece>
  __device__ void add_to_pieces(const float* values, const float (*weights)[1][S::kLine * 4]) {
    if constexpr (kPiece < S::kPieces) {
      if constexpr (kRow >= kPiece && kRow - kPiece < S::H::kWindow)
        add_row<kRow - kPiece>(kPiece, values, weights[kRow - kPiece]);
      add_to_pieces<kRow, kPiece + 1>(values, weights);
    }
  }
  template <int kV = 0>
  __device__ static void hold(const float* w, float (*weights)[1][S::kLine * 4]) {
    if constexpr (kV < S::H::kWindow) {
      load_weights<kV>(w, weights[kV]);
      hold<kV + 1>(w, weights);
    }
  }
};

// Adds what the threads of other shares have to the sums of share 0.
template <class S>
__device__ void add_shares(GatherSums<S>& sums, float* shared, int share, int shares, int position,
                           int positions) {
  constexpr int kCount = sizeof(sums.of) / 4;
  float* const flat = &sums.of[0][0][0][0];
  __syncthreads();
  if (share > 0 && share < shares) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) shared[((share - 1) * kCount + i) * positions + position] = flat[i];
  }
  __syncthreads();
  if (share != 0) return;
  for (int s = 1; s < shares; ++s) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) flat[i] += shared[((s - 1) * kCount + i) * positions + position];
  }
}

}  // namespace retrograd::kernels::cuda
