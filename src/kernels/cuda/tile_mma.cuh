// SPDX-License-Identifier: Apache-2.0
// The inner product of tiles in shared memory: asynchronous 16-byte copies into them, fragments out of them,
// and the sums of a warp (tensor cores) or of a thread (FP32).
//
// A tile is rows of four or more 16-byte chunks. Chunk c of row r lies at chunk swizzle(r, c), so that eight
// rows of one chunk, which a warp reads at once, lie in different banks.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace retrograd::kernels::cuda {

__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// 16 bytes, or zeros when not `live`; `source` must be a readable address all the same.
__device__ inline void copy_chunk(uint32_t target, const void* source, bool live) {
  const int bytes = live ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(source), "r"(bytes));
}
__device__ inline void close_copies() { asm volatile("cp.async.commit_group;"); }
template <int kPending>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending));
}

template <int kChunks>  // of a row
__device__ uint32_t chunk_at(int row, int chunk) {
  const int swizzled = kChunks == 4 ? chunk ^ ((row >> 1) & 3) : chunk ^ (row & 7);
  return static_cast<uint32_t>((row * kChunks + swizzled) * 16);
}

template <bool kTransposed>
__device__ void load_matrices(uint32_t address, uint32_t (&r)[4]) {
  if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
  }
}

__device__ inline void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, __half) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ inline void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                                    __nv_bfloat16) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// kM x kN results of a block of 256 threads.
//   Tensor cores: 8 warps, each kM·kN/(8·32) rows by 32 columns.
//   FP32: 16 x 16 threads; a thread's rows and columns lie 16 apart.
// kAlong: the tiles' rows run along the sum (a row a term), else a row a result's row or column.
template <class E, int kM, int kN, bool kAlong>
struct TileSums;

template <class E, int kM, int kN, bool kAlong>
requires(sizeof(E) == 2) struct TileSums<E, kM, kN, kAlong> {
  static constexpr int kTerms = 32;  // of a step
  static constexpr int kWarpRows = kM * kN / 256, kBlocks = kWarpRows / 16;
  static constexpr int kWarpsAcross = kN / 32;
  float sums[kBlocks][4][4] = {};

  __device__ static int first_row() { return static_cast<int>(threadIdx.x) / 32 / kWarpsAcross * kWarpRows; }
  __device__ static int first_column() { return static_cast<int>(threadIdx.x) / 32 % kWarpsAcross * 32; }

  __device__ void add(uint32_t a, uint32_t b) {
    const int lane = static_cast<int>(threadIdx.x) % 32, line = lane % 8, matrix = lane / 8;
#pragma unroll
    for (int k = 0; k < kTerms; k += 16) {
      uint32_t of_b[2][4];
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int column = first_column() + j * 16 + matrix / 2 * 8, term = k + matrix % 2 * 8;
        if constexpr (kAlong) {
          load_matrices<true>(b + chunk_at<kN / 8>(term + line, column / 8), of_b[j]);
        } else {
          load_matrices<false>(b + chunk_at<4>(column + line, term / 8), of_b[j]);
        }
      }
      uint32_t of_a[kBlocks][4];
#pragma unroll
      for (int i = 0; i < kBlocks; ++i) {
        const int row = first_row() + i * 16 + matrix % 2 * 8, term = k + matrix / 2 * 8;
        if constexpr (kAlong) {
          load_matrices<true>(a + chunk_at<kM / 8>(term + line, row / 8), of_a[i]);
        } else {
          load_matrices<false>(a + chunk_at<4>(row + line, term / 8), of_a[i]);
        }
      }
#pragma unroll
      for (int i = 0; i < kBlocks; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          multiply_add(sums[i][j], of_a[i], of_b[j / 2][j % 2 * 2], of_b[j / 2][j % 2 * 2 + 1], E{});
    }
  }

  // Calls visit(row, column, sum) for this thread's results in columns [begin, begin + 32).
  template <class Visit>
  __device__ void visit(int begin, Visit&& visit) const {
    if (first_column() != begin) return;
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < kBlocks; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          visit(first_row() + i * 16 + lane / 4 + e / 2 * 8, j * 8 + lane % 4 * 2 + e % 2, sums[i][j][e]);
  }
};

template <int kM, int kN, bool kAlong>
struct TileSums<float, kM, kN, kAlong> {
  static constexpr int kTerms = 16;
  static constexpr int kRows = kM / 16, kColumns = kN / 16;
  float sums[kRows][kColumns] = {};

  __device__ static float4 chunk(uint32_t address) {
    float4 value;
    asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
                 : "r"(address));
    return value;
  }
  __device__ static int row() { return static_cast<int>(threadIdx.x) / 16; }
  __device__ static int column() { return static_cast<int>(threadIdx.x) % 16; }
  // Along the sum a thread takes chunks of four neighbours, which lie 64 apart; else single ones, 16 apart.
  __device__ static int row_of(int i) { return kAlong ? i / 4 * 64 + row() * 4 + i % 4 : row() + 16 * i; }
  __device__ static int column_of(int j) {
    constexpr int kWidth = kColumns < 4 ? kColumns : 4;
    return kAlong ? j / kWidth * 64 + column() * kWidth + j % kWidth : column() + 16 * j;
  }

  __device__ void add(uint32_t a, uint32_t b) {
    if constexpr (kAlong) {
#pragma unroll 4
      for (int k = 0; k < kTerms; ++k) {
        float of_a[kRows], of_b[kColumns];
#pragma unroll
        for (int i = 0; i < kRows; i += 4) {
          const float4 v = chunk(a + chunk_at<kM / 4>(k, row_of(i) / 4));
          of_a[i] = v.x, of_a[i + 1] = v.y, of_a[i + 2] = v.z, of_a[i + 3] = v.w;
        }
        if constexpr (kColumns >= 4) {
#pragma unroll
          for (int j = 0; j < kColumns; j += 4) {
            const float4 v = chunk(b + chunk_at<kN / 4>(k, column_of(j) / 4));
            of_b[j] = v.x, of_b[j + 1] = v.y, of_b[j + 2] = v.z, of_b[j + 3] = v.w;
          }
        } else {
          static_assert(kColumns == 2);
          const float4 v = chunk(b + chunk_at<kN / 4>(k, column_of(0) / 4));
          const bool upper = column_of(0) % 4 != 0;
          of_b[0] = upper ? v.z : v.x, of_b[1] = upper ? v.w : v.y;
        }
#pragma unroll
        for (int i = 0; i < kRows; ++i)
#pragma unroll
          for (int j = 0; j < kColumns; ++j) sums[i][j] = fmaf(of_a[i], of_b[j], sums[i][j]);
      }
    } else {
#pragma unroll
      for (int k = 0; k < kTerms; k += 4) {
        float4 of_b[kColumns];
#pragma unroll
        for (int j = 0; j < kColumns; ++j) of_b[j] = chunk(b + chunk_at<4>(column_of(j), k / 4));
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          const float4 of_a = chunk(a + chunk_at<4>(row_of(i), k / 4));
#pragma unroll
          for (int j = 0; j < kColumns; ++j) {
            sums[i][j] = fmaf(of_a.x, of_b[j].x, sums[i][j]);
            sums[i][j] = fmaf(of_a.y, of_b[j].y, sums[i][j]);
            sums[i][j] = fmaf(of_a.z, of_b[j].z, sums[i][j]);
            sums[i][j] = fmaf(of_a.w, of_b[j].w, sums[i][j]);
          }
        }
      }
    }
  }

  template <class Visit>
  __device__ void visit(int begin, Visit&& visit) const {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const int c = column_of(j) - begin;
      if (c < 0 || c >= 32) continue;
#pragma unroll
      for (int i = 0; i < kRows; ++i) visit(row_of(i), c, sums[i][j]);
    }
  }
};

}  // namespace retrograd::kernels::cuda
