// SPDX-License-Identifier: Apache-2.0
// From the sums of a warpgroup to the result: 16-byte vectors of channels or of places.
#pragma once

#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/formulas.cuh"
#include "kernels/cuda/sm90a/gather_loop.cuh"

namespace retrograd::kernels::cuda::wgather {

__device__ inline uint32_t pack(float low, float high, __half) {
  const __half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}
__device__ inline uint32_t pack(float low, float high, __nv_bfloat16) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// Word i of lane q of four becomes word q of lane i.
__device__ inline void transpose_quad(uint32_t (&words)[4]) {
  const unsigned lane = threadIdx.x;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const uint32_t other = __shfl_xor_sync(~0u, lane & 1 ? words[i] : words[i + 1], 1);
    (lane & 1 ? words[i] : words[i + 1]) = other;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t other = __shfl_xor_sync(~0u, lane & 2 ? words[i] : words[i + 2], 2);
    (lane & 2 ? words[i] : words[i + 2]) = other;
  }
}

// Eight rows of eight 16-bit elements, a word a lane, become columns.
__device__ inline uint32_t transpose_matrix(uint32_t word) {
  uint32_t result;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(word));
  return result;
}

__device__ inline int64_t offset_of_place(const Args& p, uint32_t m) {
  const Place place = place_of(p, m);
  int64_t offset = place.n * p.result.strides[0];
#pragma unroll
  for (int a = 0; a < 3; ++a)
    offset += (int64_t{place.at[a]} * p.result_step[a] + p.result_first[a]) * p.result.strides[2 + a];
  return offset;
}

// The columns 32·g + 8·(lane % 4) and the seven behind them of one of this lane's rows.
template <class T, int kCount>
__device__ inline void take_vector(const float (&sums)[kCount], int g, int half, uint32_t (&words)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
    words[i] = pack(sums[16 * g + 4 * i + 2 * half], sums[16 * g + 4 * i + 2 * half + 1], T{});
  transpose_quad(words);
}

// Where a warpgroup's sums belong.
struct Corner {
  uint32_t place;
  int channel;
};

// Rows are places, and channels lie side by side.
template <class T, class C>
__device__ void store_rows(const Args& p, const Multiplier<T, C>& product, Corner corner) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32 % 4;
  auto* const result = static_cast<T*>(p.result.data);
#pragma unroll
  for (int i = 0; i < C::kBands; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t m = corner.place + i * 64 + warp * 16 + half * 8 + lane / 4;
      const int channel = corner.channel + lane % 4 * 8;
      T* const row = result + offset_of_place(p, min(m, p.places - 1)) + channel;
#pragma unroll
      for (int g = 0; g < C::kColumns / 32; ++g) {
        uint32_t words[4];
        take_vector<T>(product.sums[i], g, half, words);
        if (m < p.places && channel + 32 * g < p.columns)
          *reinterpret_cast<uint4*>(row + 32 * g) = uint4{words[0], words[1], words[2], words[3]};
      }
    }
}

// Rows are channels, and channels lie side by side: sixteen of them a warp.
template <class T, class C>
__device__ void store_columns(const Args& p, const Multiplier<T, C>& product, Corner corner) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32 % 4;
  auto* const result = static_cast<T*>(p.result.data);
#pragma unroll
  for (int j = 0; j < C::kColumns / 8; ++j) {
    const uint32_t m = corner.place + j * 8 + lane / 4;
    T* const row = result + offset_of_place(p, min(m, p.places - 1));
#pragma unroll
    for (int i = 0; i < C::kBands; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int channel = corner.channel + i * 64 + warp * 16 + half * 8 + lane % 4 * 2;
        const uint32_t word = transpose_matrix(
            pack(product.sums[i][4 * j + 2 * half], product.sums[i][4 * j + 2 * half + 1], T{}));
        if (m < p.places && channel < p.columns) *reinterpret_cast<uint32_t*>(row + channel) = word;
      }
  }
}

template <int kRun>
__device__ inline void store_run(void* target, const uint32_t (&words)[4], int first) {
  if constexpr (kRun == 8)
    *static_cast<uint4*>(target) = uint4{words[0], words[1], words[2], words[3]};
  else if constexpr (kRun == 4)
    *static_cast<uint2*>(target) = uint2{words[first / 2], words[first / 2 + 1]};
  else if constexpr (kRun == 2)
    *static_cast<uint32_t*>(target) = words[first / 2];
  else
    *static_cast<uint16_t*>(target) = static_cast<uint16_t>(words[first / 2] >> (first % 2 * 16));
}

// Rows are channels, and places lie side by side, kRun of them at least.
template <int kRun, class T, class C>
__device__ void store_planes(const Args& p, const Multiplier<T, C>& product, Corner corner) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32 % 4;
  const int64_t stride = p.result.strides[1];
  auto* const result = static_cast<T*>(p.result.data);
  const int channel0 = corner.channel + warp * 16 + lane / 4;
#pragma unroll
  for (int g = 0; g < C::kColumns / 32; ++g) {
    uint32_t words[2 * C::kBands][4];
#pragma unroll
    for (int i = 0; i < 2 * C::kBands; ++i) take_vector<T>(product.sums[i / 2], g, i % 2, words[i]);
    const uint32_t m = corner.place + 32 * g + lane % 4 * 8;
#pragma unroll
    for (int first = 0; first < 8; first += kRun) {
      if (m + first >= p.places) break;
      T* const at = result + offset_of_place(p, m + first) + channel0 * stride;
#pragma unroll
      for (int i = 0; i < 2 * C::kBands; ++i) {
        const int further = i / 2 * 64 + i % 2 * 8;
        if (channel0 + further < p.columns) store_run<kRun>(at + further * stride, words[i], first);
      }
    }
  }
}

// Whether a sum of this thread is not finite.
template <class T, class C>
__device__ bool is_suspect(const Multiplier<T, C>& product) {
  float zero = 0;
#pragma unroll
  for (int i = 0; i < C::kBands; ++i)
#pragma unroll
    for (int j = 0; j < C::kColumns / 2; ++j) zero = fmaf(product.sums[i][j], 0.0f, zero);
  return zero != 0.0f;  // NaN is not 0 either
}

// Zero times a weight that is not finite is NaN where the mathematics skips the product: results that are not
// finite are taken from the formula. The warp has just written them.
template <class T, class C>
__device__ void repair(const Args& p, Corner corner) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32 % 4;
  auto* const result = static_cast<T*>(p.result.data);
  for (int e = 0; e < C::kBands * C::kColumns / 2; ++e) {
    const int j = e / 4 % (C::kColumns / 8), i = e / 4 / (C::kColumns / 8);
    const int row = i * 64 + warp * 16 + e / 2 % 2 * 8 + lane / 4, column = 8 * j + lane % 4 * 2 + e % 2;
    const uint32_t m = corner.place + (C::kSwapped ? column : row);
    const int channel = corner.channel + (C::kSwapped ? row : column);
    if (m >= p.places || channel >= p.columns) continue;
    T& element = result[offset_of_place(p, m) + channel * p.result.strides[1]];
    if (isfinite(to_float(element))) continue;
    const Place place = place_of(p, m);
    const Index5 index{place.n, channel, int64_t{place.at[0]} * p.result_step[0] + p.result_first[0],
                       int64_t{place.at[1]} * p.result_step[1] + p.result_first[1],
                       int64_t{place.at[2]} * p.result_step[2] + p.result_first[2]};
    element = from_float<T>(p.forward ? forward_sum(p.conv, index) : grad_input_sum(p.conv, index));
  }
}

template <class T, class C>
__device__ void store(const Args& p, const Multiplier<T, C>& product, Corner corner) {
  const bool suspect = p.repair && __any_sync(~0u, is_suspect(product));
  if constexpr (!C::kSwapped) {
    store_rows(p, product, corner);
  } else if (p.result.strides[1] == 1) {
    store_columns(p, product, corner);
  } else if (p.run == 8) {
    store_planes<8>(p, product, corner);
  } else if (p.run == 4) {
    store_planes<4>(p, product, corner);
  } else if (p.run == 2) {
    store_planes<2>(p, product, corner);
  } else {
    store_planes<1>(p, product, corner);
  }
  if (suspect) {
    __syncwarp();
    repair<T, C>(p, corner);
  }
}

}  // namespace retrograd::kernels::cuda::wgather
