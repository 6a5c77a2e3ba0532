// SPDX-License-Identifier: Apache-2.0
// The sums of one thread of stem_gather.cu: kA rows of eight pixels with kC channels.
//
// Up to eight taps of a row at a time, which the compiler knows: a row of y is read once, 16 bytes a load,
// and slides through registers below the taps; it serves all kA rows. Eight taps with kA·kC = 4: 4 loads of y
// and 8 of weights, which all threads of a warp read at one address, for 256 products.
#pragma once

#include "kernels/cuda/stems/stem_plan.h"

namespace retrograd::kernels::cuda {

template <int kCount>
__device__ void load_fours(const float* address, float* values) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const float4 v = reinterpret_cast<const float4*>(address)[i];
    values[4 * i] = v.x, values[4 * i + 1] = v.y, values[4 * i + 2] = v.z, values[4 * i + 3] = v.w;
  }
}

template <int kC, int kA>
struct StemSums {
  float of[kA][kC][kStemRun] = {};

  // One y channel. y: the first row of the thread; column: its first; w: of its class, th x tw taps.
  __device__ void add(const float* y, int pitch, int column, const float* w, int weight_row, int th, int tw) {
#pragma unroll 1
    for (int first = 0; first < tw; first += 8) {
      const float* const of_w = w + first * kC;
      const int at = column + first;
      switch (tw - first) {
        case 1:
          add_taps<1>(y, pitch, at, of_w, weight_row, th);
          break;
        case 2:
          add_taps<2>(y, pitch, at, of_w, weight_row, th);
          break;
        case 3:
          add_taps<3>(y, pitch, at, of_w, weight_row, th);
          break;
        case 4:
          add_taps<4>(y, pitch, at, of_w, weight_row, th);
          break;
        case 5:
          add_taps<5>(y, pitch, at, of_w, weight_row, th);
          break;
        case 6:
          add_taps<6>(y, pitch, at, of_w, weight_row, th);
          break;
        case 7:
          add_taps<7>(y, pitch, at, of_w, weight_row, th);
          break;
        default:
          add_taps<8>(y, pitch, at, of_w, weight_row, th);
          break;
      }
    }
  }

 private:
  // kN columns of taps; `column` is a multiple of eight.
  template <int kN>
  __device__ void add_taps(const float* y, int pitch, int column, const float* w, int weight_row, int th) {
    constexpr int kFours = (kStemRun + kN - 1 + 3) / 4;
    const float* from[kFours];
#pragma unroll
    for (int i = 0; i < kFours; ++i) from[i] = y + stem_column(column + 4 * i);
#pragma unroll 1
    for (int row = 0; row < th + kA - 1; ++row) {
      float values[kFours * 4];
#pragma unroll
      for (int i = 0; i < kFours; ++i) {
        load_fours<1>(from[i], values + 4 * i);
        from[i] += pitch;
      }
#pragma unroll
      for (int a = 0; a < kA; ++a)
        if (kA == 1 || static_cast<unsigned>(row - a) < static_cast<unsigned>(th))
          add_row<kN>(of[a], values, w + (row - a) * weight_row);
    }
  }

  template <int kN>
  __device__ static void add_row(float (&sums)[kC][kStemRun], const float* values, const float* w) {
    constexpr int kFours = (kN * kC + 3) / 4;
    float weights[kFours * 4];
    load_fours<kFours>(w, weights);
#pragma unroll
    for (int t = 0; t < kN; ++t)
#pragma unroll
      for (int c = 0; c < kC; ++c)
#pragma unroll
        for (int i = 0; i < kStemRun; ++i) sums[c][i] = fmaf(values[i + t], weights[t * kC + c], sums[c][i]);
  }
};

// Adds what the threads of other shares have to the sums of share 0, in order.
template <int kC, int kA>
__device__ void add_shares(StemSums<kC, kA>& sums, float* shared, int share, int shares, int thread,
                           int threads) {
  constexpr int kCount = kA * kC * kStemRun;
  float* const flat = &sums.of[0][0][0];
  __syncthreads();
  if (share > 0) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) shared[((share - 1) * kCount + i) * threads + thread] = flat[i];
  }
  __syncthreads();
  if (share > 0) return;
  for (int s = 1; s < shares; ++s) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) flat[i] += shared[((s - 1) * kCount + i) * threads + thread];
  }
}

}  // namespace retrograd::kernels::cuda
