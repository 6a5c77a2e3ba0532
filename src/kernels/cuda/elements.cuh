// SPDX-License-Identifier: Apache-2.0
// Elements of every type as FP32 on the GPU, with the roundings of base/dtype.h, bit for bit.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "base/dtype.h"

namespace retrograd::kernels::cuda {

struct HiF8 {
  uint8_t bits;
};
struct E4M3 {
  uint8_t bits;
};

// 2^exponent * (1 + fraction / 2^fraction_bits)
__device__ inline float assemble(uint32_t sign, int exponent, uint32_t fraction, int fraction_bits) {
  return __uint_as_float(sign << 31 | static_cast<uint32_t>(exponent + 127) << 23 |
                         fraction << (23 - fraction_bits));
}

// |E| has `width` binary digits: how many mantissa bits such codes have, where the exponent's sign is, and
// what they begin with (base/hif8_codec.cpp).
__device__ inline int hif8_mantissa_bits(int width) { return width <= 2 ? 3 : 5 - width; }
__device__ inline uint32_t hif8_prefix(int width) {
  return width == 0 ? 0x08u : width == 1 ? 0x10u : static_cast<uint32_t>(width - 1) << 5;
}
__device__ inline int bits_in(int exponent) { return 32 - __clz(exponent < 0 ? -exponent : exponent); }

__device__ inline float decode(HiF8 value) {
  const uint32_t sign = value.bits >> 7, body = value.bits & 0x7fu;
  if (value.bits == 0) return 0.0f;
  if (value.bits == 0x80) return __uint_as_float(0x7fc00000u);
  if (body == 0x6f) return __uint_as_float(sign << 31 | 0x7f800000u);
  if (body < 0x08) return assemble(sign, static_cast<int>(body) - 23, 0, 0);
  const int width = body >= 0x20 ? static_cast<int>(body >> 5) + 1 : static_cast<int>(body >> 4);
  const int kept = hif8_mantissa_bits(width);
  const uint32_t mantissa = body & ((1u << kept) - 1);
  if (width == 0) return assemble(sign, 0, mantissa, kept);
  const uint32_t leading = 1u << (width - 1);
  const int magnitude = static_cast<int>(leading | ((body >> kept) & (leading - 1)));
  const bool negative = ((body >> (kept + width - 1)) & 1u) != 0;
  return assemble(sign, negative ? -magnitude : magnitude, mantissa, kept);
}

__device__ inline uint32_t hif8_magnitude(uint32_t f32) {
  if (f32 < (104u << 23)) return 0;     // 2^-23
  if (f32 >= 0x47200000u) return 0x6f;  // 40960
  const int exponent = static_cast<int>(f32 >> 23) - 127;
  if (exponent == -23) return 1;
  const int kept = exponent < -15 ? 0 : hif8_mantissa_bits(bits_in(exponent));
  const uint32_t rounded = f32 + (1u << (22 - kept));
  const int e = static_cast<int>(rounded >> 23) - 127;
  if (e < -15) return static_cast<uint32_t>(e + 23);
  const int width = bits_in(e);
  const int bits = hif8_mantissa_bits(width);
  const uint32_t mantissa = (rounded & 0x7fffffu) >> (23 - bits);
  if (width == 0) return hif8_prefix(0) | mantissa;
  const uint32_t magnitude = static_cast<uint32_t>(e < 0 ? -e : e) & ~(1u << (width - 1));
  return hif8_prefix(width) | (e < 0 ? 1u : 0u) << (bits + width - 1) | magnitude << bits | mantissa;
}

__device__ inline HiF8 encode_hif8(float value) {
  const uint32_t bits = __float_as_uint(value), f32 = bits & 0x7fffffffu;
  if (f32 > 0x7f800000u) return {0x80};
  const uint32_t code = hif8_magnitude(f32);
  return {static_cast<uint8_t>(code == 0 ? 0u : code | (bits >> 31) << 7)};
}

__device__ inline float decode(E4M3 value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x80u) << 24, body = value.bits & 0x7fu;
  if (body == 0x7f) return __uint_as_float(sign | 0x7fc00000u);
  const float magnitude =
      body < 8 ? static_cast<float>(body) * 0x1p-9f : __uint_as_float((body << 20) + ((127u - 7u) << 23));
  return __uint_as_float(sign | __float_as_uint(magnitude));
}

__device__ inline E4M3 encode_e4m3(float value) {
  const uint32_t bits = __float_as_uint(value), f32 = bits & 0x7fffffffu;
  uint32_t code = 0x7f;
  if (f32 < (121u << 23)) {  // below 2^-6: a multiple of 2^-9, to nearest even
    code = static_cast<uint32_t>(__float2int_rn(__uint_as_float(f32) * 0x1p9f));
  } else if (f32 < 0x7f800000u) {
    const uint32_t rounded = f32 + 0x7ffffu + ((f32 >> 20) & 1u);
    code = (rounded >> 20) - ((127u - 7u) << 3);
    if (code > 0x7f) code = 0x7f;
  }
  return {static_cast<uint8_t>((bits >> 31) << 7 | code)};
}

__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(__half value) { return __half2float(value); }
__device__ inline float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ inline float to_float(HiF8 value) { return decode(value); }
__device__ inline float to_float(E4M3 value) { return decode(value); }

template <class T>
__device__ T from_float(float value);
template <>
__device__ inline float from_float<float>(float value) {
  return value;
}
template <>
__device__ inline __half from_float<__half>(float value) {
  return __float2half_rn(value);
}
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}
template <>
__device__ inline HiF8 from_float<HiF8>(float value) {
  return encode_hif8(value);
}
template <>
__device__ inline E4M3 from_float<E4M3>(float value) {
  return encode_e4m3(value);
}

// FP32 with its mantissa cut, half away from zero; NaN stays.
__device__ inline float cut_mantissa(float value, uint32_t half) {
  const uint32_t bits = __float_as_uint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return value;
  return __uint_as_float((bits + half) & ~(2 * half - 1));
}

__device__ inline float round_operand(OperandRounding rounding, float value) {
  switch (rounding) {
    case OperandRounding::kNone:
      return value;
    case OperandRounding::kF16:
      return __half2float(__float2half_rn(value));
    case OperandRounding::kHf32Bits11:
      return cut_mantissa(value, 1u << 11);
    case OperandRounding::kHf32Bits10:
      return cut_mantissa(value, 1u << 12);
  }
  return value;
}

// An element of a type known only when the kernel runs. Every thread takes the same branch.
__device__ inline float load_any(DType dtype, const void* base, int64_t index) {
  switch (dtype) {
    case DType::kF32:
      return static_cast<const float*>(base)[index];
    case DType::kF16:
      return to_float(static_cast<const __half*>(base)[index]);
    case DType::kBF16:
      return to_float(static_cast<const __nv_bfloat16*>(base)[index]);
    case DType::kHiF8:
      return to_float(static_cast<const HiF8*>(base)[index]);
    case DType::kE4M3:
      return to_float(static_cast<const E4M3*>(base)[index]);
  }
  return 0;
}

__device__ inline void store_any(DType dtype, void* base, int64_t index, float value) {
  switch (dtype) {
    case DType::kF32:
      static_cast<float*>(base)[index] = value;
      return;
    case DType::kF16:
      static_cast<__half*>(base)[index] = from_float<__half>(value);
      return;
    case DType::kBF16:
      static_cast<__nv_bfloat16*>(base)[index] = from_float<__nv_bfloat16>(value);
      return;
    case DType::kHiF8:
      static_cast<HiF8*>(base)[index] = from_float<HiF8>(value);
      return;
    case DType::kE4M3:
      static_cast<E4M3*>(base)[index] = from_float<E4M3>(value);
      return;
  }
}

}  // namespace retrograd::kernels::cuda
