// SPDX-License-Identifier: Apache-2.0
// FP16 and BF16 from and to FP32, to nearest even, and the cut of an FP32 mantissa that HF32 makes.
#include <cassert>

#include "base/dtype.h"
#include "base/ieee_codec.h"

namespace retrograd {
namespace {

using ieee_codec::kF32Infinity;
using ieee_codec::kF32Sign;
using F16 = ieee_codec::Layout<5, 10>;

constexpr uint32_t kF16Infinity = 0x7c00;
constexpr uint32_t kF16Quiet = 0x0200;
constexpr uint32_t kBF16Quiet = 0x0040;

}  // namespace

float f16_to_f32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  // Infinity and NaN: the exponent field is all ones on both sides, and a payload keeps its leading bits.
  if (magnitude >= kF16Infinity)
    return std::bit_cast<float>(sign | kF32Infinity | ((magnitude & 0x3ffu) << 13));
  return std::bit_cast<float>(sign | F16::decode(magnitude));
}

uint16_t f32_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits & kF32Sign) >> 16;
  const uint32_t f32 = bits & ~kF32Sign;
  uint32_t magnitude = kF16Infinity;
  if (f32 > kF32Infinity) {
    // The quiet bit is forced: a payload held only in the dropped bits would leave the pattern of infinity.
    magnitude = kF16Infinity | kF16Quiet | ((f32 >> 13) & 0x3ffu);
  } else if (f32 < kF32Infinity) {
    magnitude = F16::encode(f32);
    if (magnitude > kF16Infinity) magnitude = kF16Infinity;
  }
  return static_cast<uint16_t>(sign | magnitude);
}

float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & ~kF32Sign) > kF32Infinity) return static_cast<uint16_t>((bits >> 16) | kBF16Quiet);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float round_to_hf32(float value, int mantissa_bits) {
  assert(mantissa_bits >= 1 && mantissa_bits < ieee_codec::kF32MantissaBits);
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  // A NaN whose mantissa is all ones would carry into the sign. Infinity has a zero mantissa and comes out
  // whole.
  if ((bits & ~kF32Sign) > kF32Infinity) return value;
  const uint32_t half = 1u << (ieee_codec::kF32MantissaBits - mantissa_bits - 1);
  return std::bit_cast<float>((bits + half) & ~(2 * half - 1));
}

}  // namespace retrograd
