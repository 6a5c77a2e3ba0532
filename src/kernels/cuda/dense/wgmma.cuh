// SPDX-License-Identifier: Apache-2.0
// Products of a warpgroup (128 threads whose first warp's number is a multiple of four) on Hopper's tensor
// cores, both factors in shared memory. Only for code compiled for sm_90a.
//
// Thread t holds of 64 x n sums, for every block of eight columns 8j: sums[4j], [4j + 1] of row
// t/32·16 + t%32/4, columns 8j + t%4·2 and the next; [4j + 2], [4j + 3] the same of the row eight further.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace retrograd::kernels::cuda::hopper {

// A factor whose rows lie 128 bytes apart in shared memory, 16-byte chunk c of row r at c ^ (r % 8): as TMA
// writes it with CU_TENSOR_MAP_SWIZZLE_128B. `address` is a multiple of 1024 plus 32 bytes for every 16
// elements (eight of TF32) along the sum.
//   Rows along the result, the sum within a row: leading is not used, stride = 1024, from eight rows to
//   eight. Rows along the sum (16-bit types, kAlongSum below): leading = bytes from 64 results to the next
//   64, stride = 1024, from eight terms to eight; 16 terms further are 2048 bytes.
__device__ inline uint64_t factor(uint32_t address, uint32_t leading = 16, uint32_t stride = 1024) {
  return static_cast<uint64_t>((address & 0x3ffffu) >> 4) | static_cast<uint64_t>(leading >> 4) << 16 |
         static_cast<uint64_t>(stride >> 4) << 32 | uint64_t{1} << 62;
}

// The same for rows of 64 bytes, chunk c of row r at c ^ (r / 2 % 4) (CU_TENSOR_MAP_SWIZZLE_64B); a multiple
// of 512 plus 32 bytes for every 16 elements. Rows along the sum hold 32 results, and 16 terms are 1024
// bytes.
__device__ inline uint64_t narrow_factor(uint32_t address, uint32_t leading = 16) {
  return (factor(address, leading, 512) & ~(uint64_t{3} << 62)) | uint64_t{2} << 62;
}

// Rows of 32 bytes, chunk c of row r at c ^ (r / 4 % 2) (CU_TENSOR_MAP_SWIZZLE_32B), along the result: 16
// elements of the sum. A multiple of 256.
__device__ inline uint64_t thin_factor(uint32_t address) {
  return factor(address, 16, 256) | uint64_t{3} << 62;
}

// Before the first product, and whenever registers of the sums were written by anything else.
__device__ inline void fence_sums() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// Closes a group of products.
__device__ inline void close_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Until at most so many groups are under way.
template <int kLeft>
__device__ inline void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}
// The compiler may not take sums from before this point.
template <int kCount>
__device__ inline void hold(float (&sums)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

// What was in them is needed no more: a product that does not add reads its sums for the compiler all the
// same.
template <int kCount>
__device__ inline void forget(float (&sums)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "=f"(sums[i]));
}

struct Tf32 {};  // FP32 numbers of which the tensor cores read 19 bits

#define RG_TEN(t) \
  "%" #t "0, %" #t "1, %" #t "2, %" #t "3, %" #t "4, %" #t "5, %" #t "6, %" #t "7, %" #t "8, %" #t "9, "
#define RG_REGISTERS_16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define RG_FIRST_10 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, "
#define RG_REGISTERS_32 RG_FIRST_10 RG_TEN(1) RG_TEN(2) "%30, %31"
#define RG_REGISTERS_48 RG_FIRST_10 RG_TEN(1) RG_TEN(2) RG_TEN(3) "%40, %41, %42, %43, %44, %45, %46, %47"
#define RG_REGISTERS_64 RG_FIRST_10 RG_TEN(1) RG_TEN(2) RG_TEN(3) RG_TEN(4) RG_TEN(5) "%60, %61, %62, %63"
#define RG_REGISTERS_80                                         \
  RG_FIRST_10 RG_TEN(1) RG_TEN(2) RG_TEN(3) RG_TEN(4) RG_TEN(5) \
      RG_TEN(6) "%70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define RG_REGISTERS_96                                                             \
  RG_FIRST_10 RG_TEN(1) RG_TEN(2) RG_TEN(3) RG_TEN(4) RG_TEN(5) RG_TEN(6) RG_TEN(7) \
      RG_TEN(8) "%90, %91, %92, %93, %94, %95"
#define RG_REGISTERS_128                                                                                \
  RG_FIRST_10 RG_TEN(1) RG_TEN(2) RG_TEN(3) RG_TEN(4) RG_TEN(5) RG_TEN(6) RG_TEN(7) RG_TEN(8) RG_TEN(9) \
      RG_TEN(10) RG_TEN(11) "%120, %121, %122, %123, %124, %125, %126, %127"

#define RG_F8(i)                                                                              \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define RG_SUMS_16 RG_F8(0), RG_F8(8)
#define RG_SUMS_32 RG_SUMS_16, RG_F8(16), RG_F8(24)
#define RG_SUMS_48 RG_SUMS_32, RG_F8(32), RG_F8(40)
#define RG_SUMS_64 RG_SUMS_48, RG_F8(48), RG_F8(56)
#define RG_SUMS_80 RG_SUMS_64, RG_F8(64), RG_F8(72)
#define RG_SUMS_96 RG_SUMS_80, RG_F8(80), RG_F8(88)
#define RG_SUMS_128 RG_SUMS_96, RG_F8(96), RG_F8(104), RG_F8(112), RG_F8(120)

// n columns in `count` registers; the factors and whether to add are operands a, b and p.
#define RG_PRODUCT(n, k, type, count, a_at, b_at, p_at, transposes, ...)                                     \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %" #p_at                                                \
               ", 0;\n"                                                                                      \
               "wgmma.mma_async.sync.aligned.m64n" #n "k" #k ".f32." type "." type " {" RG_REGISTERS_##count \
               "}, %" #a_at ", %" #b_at ", add, 1, 1" transposes ";\n}"                                      \
               : RG_SUMS_##count                                                                             \
               : "l"(a), "l"(b), "r"(static_cast<int>(add))__VA_ARGS__)
#define RG_PRODUCT_OF(n, count, a_at, b_at, p_at, ta_at, tb_at)                       \
  if constexpr (kColumns == n) {                                                      \
    if constexpr (std::is_same_v<T, __half>)                                          \
      RG_PRODUCT(n, 16, "f16", count, a_at, b_at, p_at, ", %" #ta_at ", %" #tb_at, ,  \
                 "n"(kAAlongSum ? 1 : 0), "n"(kBAlongSum ? 1 : 0));                   \
    else if constexpr (std::is_same_v<T, __nv_bfloat16>)                              \
      RG_PRODUCT(n, 16, "bf16", count, a_at, b_at, p_at, ", %" #ta_at ", %" #tb_at, , \
                 "n"(kAAlongSum ? 1 : 0), "n"(kBAlongSum ? 1 : 0));                   \
    else                                                                              \
      RG_PRODUCT(n, 8, "tf32", count, a_at, b_at, p_at, "");                          \
  }

// sums = a·b, plus the sums where add: 64 rows by kColumns of T, 16 terms (eight of Tf32). A factor's rows
// may lie along the sum.
template <class T, int kColumns, bool kAAlongSum = false, bool kBAlongSum = false>
__device__ inline void multiply(float (&d)[kColumns / 2], uint64_t a, uint64_t b, bool add) {
  static_assert(kColumns == 32 || kColumns == 64 || kColumns == 96 || kColumns == 128 || kColumns == 160 ||
                kColumns == 192 || kColumns == 256);
  RG_PRODUCT_OF(32, 16, 16, 17, 18, 19, 20)
  RG_PRODUCT_OF(64, 32, 32, 33, 34, 35, 36)
  RG_PRODUCT_OF(96, 48, 48, 49, 50, 51, 52)
  RG_PRODUCT_OF(128, 64, 64, 65, 66, 67, 68)
  RG_PRODUCT_OF(160, 80, 80, 81, 82, 83, 84)
  RG_PRODUCT_OF(192, 96, 96, 97, 98, 99, 100)
  RG_PRODUCT_OF(256, 128, 128, 129, 130, 131, 132)
}

#undef RG_PRODUCT_OF
#undef RG_PRODUCT

}  // namespace retrograd::kernels::cuda::hopper
