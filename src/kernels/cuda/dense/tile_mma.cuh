// SPDX-License-Identifier: Apache-2.0
// The inner product of tiles on tensor cores: asynchronous 16-byte copies into shared memory, fragments out
// of it, the sums of a warp.
//
// Every fragment spans 32 bytes of the sum: 16 terms of 16 bits or 8 of 32. FP32 is made of three TF32
// products: an operand is a + b with a its nearest TF32 number and b the rest; a·a' + a·b' + b·a' leaves
// out b·b' and what b has beyond 11 bits, each at most 2^-22 of the product. Tensor cores cut sums off
// instead of rounding them, which adds up over long sums: the sum of each step of four fragments starts at
// zero and is added to the others by an FP32 addition.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/cuda/copy_async.cuh"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/layout/channel_rows.h"

namespace retrograd::kernels::cuda {

__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// 16 bytes, or zeros when not `live`; `source` must be a readable address all the same.
__device__ inline void copy_chunk(uint32_t target, const void* source, bool live) {
  const int bytes = live ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(source), "r"(bytes));
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
// Two of them, transposed.
__device__ inline void load_pair(uint32_t address, uint32_t (&r)[2]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(address));
}
__device__ inline void load_words(uint32_t address, uint32_t (&r)[4]) {
  asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}

// How operands are multiplied. InTF32: they are such numbers already. InNearTF32: they are FP32, and rounded
// to TF32 on their way from shared memory.
struct InF16 {
  using Element = __half;
};
struct InBF16 {
  using Element = __nv_bfloat16;
};
struct InTF32 {
  using Element = float;
};
struct InNearTF32 {
  using Element = float;
};
struct InF32 {
  using Element = float;
};

// Calls function(Math{}); OfTF32: what kTF32 means.
template <class OfTF32, class Function>
void with_math(ProductMath math, Function&& function) {
  switch (math) {
    case ProductMath::kF16:
      return function(InF16{});
    case ProductMath::kBF16:
      return function(InBF16{});
    case ProductMath::kTF32:
      return function(OfTF32{});
    case ProductMath::kF32:
      return function(InF32{});
  }
}

__device__ inline void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], InF16) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ inline void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], InBF16) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ inline void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], InTF32) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// The same for who has the fragment's two words apart.
__device__ inline void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, __half) {
  const uint32_t b[2] = {b0, b1};
  multiply(c, a, b, InF16{});
}
__device__ inline void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                                    __nv_bfloat16) {
  const uint32_t b[2] = {b0, b1};
  multiply(c, a, b, InBF16{});
}

// value = near + rest, near the nearest TF32 number. What is not finite, or becomes so when rounded, leaves a
// rest that is not finite, so that its products come out as NaN and the caller takes them from the formula.
template <int kCount>
__device__ void halve(const uint32_t (&value)[kCount], uint32_t (&near)[kCount], uint32_t (&rest)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    near[i] = (value[i] + 0x1000u) & 0xffffe000u;
    rest[i] = __float_as_uint(__uint_as_float(value[i]) - __uint_as_float(near[i]));
  }
}

// Tiles of kM x kN results by warps of kWarpM x kWarpN, kStages steps in shared memory, kBlocks blocks a
// multiprocessor.
template <int kM_, int kN_, int kWarpM_, int kWarpN_, int kStages_, int kBlocks_>
struct TileCut {
  static constexpr int kM = kM_, kN = kN_, kWarpM = kWarpM_, kWarpN = kWarpN_, kStages = kStages_,
                       kBlocks = kBlocks_;
  static constexpr int kWarps = kM / kWarpM * (kN / kWarpN), kThreads = kWarps * 32;
};

// Where a warp's results begin in its block's tile.
template <class C>
struct WarpCorner {
  int row, column;
  __device__ WarpCorner() {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    row = warp / (C::kN / C::kWarpN) * C::kWarpM;
    column = warp % (C::kN / C::kWarpN) * C::kWarpN;
  }
};

// kRows x kColumns results of a warp, a fragment of the sum at a time; settle() at the end of a step.
template <class Math, int kRows, int kColumns>
struct WarpSums {
  static constexpr int kDown = kRows / 16, kAcross = kColumns / 8;
  float sums[kDown][kAcross][4] = {};

  __device__ void add(const uint32_t (&a)[kDown][4], const uint32_t (&b)[kAcross][2]) {
#pragma unroll
    for (int i = 0; i < kDown; ++i)
#pragma unroll
      for (int j = 0; j < kAcross; ++j) multiply(sums[i][j], a[i], b[j], Math{});
  }
  __device__ void settle() {}
};

template <int kCount>
__device__ void round_to_tf32(const uint32_t (&value)[kCount], uint32_t (&near)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i)
    near[i] = __float_as_uint(round_operand(OperandRounding::kHf32Bits10, __uint_as_float(value[i])));
}

template <int kRows, int kColumns>
struct WarpSums<InNearTF32, kRows, kColumns> : WarpSums<InTF32, kRows, kColumns> {
  using Base = WarpSums<InTF32, kRows, kColumns>;

  __device__ void add(const uint32_t (&a)[Base::kDown][4], const uint32_t (&b)[Base::kAcross][2]) {
    uint32_t near_a[Base::kDown][4], near_b[Base::kAcross][2];
#pragma unroll
    for (int i = 0; i < Base::kDown; ++i) round_to_tf32(a[i], near_a[i]);
#pragma unroll
    for (int j = 0; j < Base::kAcross; ++j) round_to_tf32(b[j], near_b[j]);
    Base::add(near_a, near_b);
  }
};

template <int kRows, int kColumns>
struct WarpSums<InF32, kRows, kColumns> {
  static constexpr int kDown = kRows / 16, kAcross = kColumns / 8;
  float sums[kDown][kAcross][4] = {}, parts[kDown][kAcross][4] = {};

  __device__ void add(const uint32_t (&a)[kDown][4], const uint32_t (&b)[kAcross][2]) {
    uint32_t near_b[kAcross][2], rest_b[kAcross][2];
#pragma unroll
    for (int j = 0; j < kAcross; ++j) halve(b[j], near_b[j], rest_b[j]);
#pragma unroll
    for (int i = 0; i < kDown; ++i) {
      uint32_t near_a[4], rest_a[4];
      halve(a[i], near_a, rest_a);
#pragma unroll
      for (int j = 0; j < kAcross; ++j) multiply(parts[i][j], rest_a, near_b[j], InTF32{});
#pragma unroll
      for (int j = 0; j < kAcross; ++j) multiply(parts[i][j], near_a, rest_b[j], InTF32{});
#pragma unroll
      for (int j = 0; j < kAcross; ++j) multiply(parts[i][j], near_a, near_b[j], InTF32{});
    }
  }
  __device__ void settle() {
#pragma unroll
    for (int i = 0; i < kDown; ++i)
#pragma unroll
      for (int j = 0; j < kAcross; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          sums[i][j][e] += parts[i][j][e];
          parts[i][j][e] = 0;
        }
  }
};

// The sums of steps: kStages − 1 of them are on their way to shared memory while one is multiplied, and the
// fragments of the next 32 bytes while those of these are. load(step): begins the copies of a step, if it is
// one; called for one after the other. meanwhile(step): once a step, when all threads have read what was
// copied before it.
template <class C, int kStageBytes, class Fragments, class Sums, class Load, class Meanwhile>
__device__ void multiply_steps(int steps, uint32_t base, const WarpCorner<C>& warp, Sums& sums,
                               const Load& load, const Meanwhile& meanwhile) {
#pragma unroll
  for (int i = 0; i < C::kStages - 1; ++i) {
    load(i);
    close_copies();
  }
  Fragments fragments[2];
  wait_for_copies<C::kStages - 2>();
  __syncthreads();
  fragments[0].load(base, warp.row, warp.column, 0);
  uint32_t reading = 0;
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (k == 3) {
        wait_for_copies<C::kStages - 2>();
        __syncthreads();
        reading = reading == (C::kStages - 1) * kStageBytes ? 0u : reading + kStageBytes;
      }
      fragments[(k + 1) % 2].load(base + reading, warp.row, warp.column, (k + 1) % 4);
      if (k == 0) {
        load(step + C::kStages - 1);
        close_copies();
      }
      if (k == 1) meanwhile(step);
      sums.add(fragments[k % 2].a, fragments[k % 2].b);
    }
    sums.settle();
  }
  wait_for_copies<0>();
}

}  // namespace retrograd::kernels::cuda
