// SPDX-License-Identifier: Apache-2.0
// Sums of a warpgroup (wgmma.cuh) as 16-bit weights where they belong, 16 bytes a thread: four lanes side by
// side hold pairs of 32 columns and exchange them, so that each has eight columns in a row.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/alignment.h"
#include "kernels/cuda/dense_weight/weight_results.h"

namespace retrograd::kernels::cuda {

struct ResultTarget {
  void* results;       // null: parts
  int64_t strides[4];  // WeightStrides
  bool vectors;        // results are aligned
  float* parts;

  ResultTarget(void* results, const WeightStrides& strides, float* parts)
      : results(results), vectors(is_aligned(results)), parts(parts) {
    std::copy(strides.begin(), strides.end(), this->strides);
  }
  __device__ uint16_t* row(int64_t o, const int3& tap) const {
    return static_cast<uint16_t*>(results) + o * strides[0] + tap.x * strides[1] + tap.y * strides[2] +
           tap.z * strides[3];
  }
};

__device__ inline uint32_t pack(const float2& pair, __half) {
  const __half2 both = __floats2half2_rn(pair.x, pair.y);
  return *reinterpret_cast<const uint32_t*>(&both);
}
__device__ inline uint32_t pack(const float2& pair, __nv_bfloat16) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(pair.x, pair.y);
  return *reinterpret_cast<const uint32_t*>(&both);
}

// Four lanes side by side hold four words each; lane q gets the q-th of all four, in the order of lanes.
__device__ inline void exchange(uint32_t (&v)[4]) {
  const bool odd = (threadIdx.x & 1u) != 0, high = (threadIdx.x & 2u) != 0;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const uint32_t got = __shfl_xor_sync(~0u, odd ? v[i] : v[i + 1], 1);
    (odd ? v[i] : v[i + 1]) = got;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t got = __shfl_xor_sync(~0u, high ? v[i] : v[i + 2], 2);
    (high ? v[i] : v[i + 2]) = got;
  }
}

// A row of results of which `columns` are there. store: this thread's columns of four times eight, from
// `column` of the row on; whole warps call it.
template <class E, bool kVectors>
class ResultRow {
 public:
  __device__ ResultRow(uint16_t* to, int columns) : to_(to), columns_(columns) {}
  __device__ void store(int column, const float2 (&pairs)[4]) const {
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) words[i] = pack(pairs[i], E{});
    exchange(words);
    const int c = column + static_cast<int>(threadIdx.x) % 4 * 8;
    if (c >= columns_) return;
    if constexpr (kVectors) {
      *reinterpret_cast<uint4*>(to_ + c) = uint4{words[0], words[1], words[2], words[3]};
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) to_[c + i] = static_cast<uint16_t>(words[i / 2] >> i % 2 * 16);
    }
  }

 private:
  uint16_t* to_;
  int columns_;
};

// The same of a part, in FP32.
class PartRow {
 public:
  __device__ PartRow(float* to, int columns) : to_(to), columns_(columns) {}
  __device__ void store(int column, const float2 (&pairs)[4]) const {
    const int c = column + static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (c + i * 8 < columns_) *reinterpret_cast<float2*>(to_ + c + i * 8) = pairs[i];
  }

 private:
  float* to_;
  int columns_;  // that are there, a multiple of eight; none in rows that are not
};

// row_at(further): the row of a thread's first sums, and the one eight further.
template <int kColumns, class RowAt>
__device__ void store_rows(const float (&sums)[kColumns / 2], const RowAt& row_at) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const auto row = row_at(half * 8);
#pragma unroll
    for (int j = 0; j < kColumns / 8; j += 4) {
      float2 pairs[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) pairs[i] = {sums[(j + i) * 4 + half * 2], sums[(j + i) * 4 + half * 2 + 1]};
      row.store(j * 8, pairs);
    }
  }
}

}  // namespace retrograd::kernels::cuda
