// SPDX-License-Identifier: Apache-2.0
// The element types we compute with, and the exact conversions between each of them and FP32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace retrograd {

enum class DType : unsigned char { kF32, kF16, kBF16, kHiF8, kE4M3 };
inline constexpr int kDTypeCount = 5;

size_t size_of(DType dtype);
// "f32", "f16", "bf16", "hif8", "e4m3": the names used in the text form of a problem.
std::string_view name_of(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);
inline bool is_8bit(DType dtype) { return dtype == DType::kHiF8 || dtype == DType::kE4M3; }

// Decoding is exact. Encoding rounds once, as docs/numerics.md says: FP16, BF16 and E4M3 to nearest even,
// HIFLOAT8 half away from zero. NaN stays NaN.
float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);
float bf16_to_f32(uint16_t bits);
uint16_t f32_to_bf16(float value);
float hif8_to_f32(uint8_t bits);
uint8_t f32_to_hif8(float value);
float e4m3_to_f32(uint8_t bits);
uint8_t f32_to_e4m3(float value);

// FP32 with its mantissa cut to `mantissa_bits` (11: HF32, 10: the TF32 layout), half away from zero.
float round_to_hf32(float value, int mantissa_bits);

// What is done to FP32 operands before they are multiplied (cubeMathType 2 and 3).
enum class OperandRounding : unsigned char { kNone, kF16, kHf32Bits11, kHf32Bits10 };
float apply(OperandRounding rounding, float value);

// One element at `address`, of a type known only at run time.
float load_as_f32(DType dtype, const void* address);
void store_from_f32(DType dtype, void* address, float value);

}  // namespace retrograd
