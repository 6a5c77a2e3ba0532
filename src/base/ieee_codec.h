// SPDX-License-Identifier: Apache-2.0
// The rule FP16 and E4M3 share: sign, biased exponent, mantissa, subnormals; only the widths and the top
// differ.
#pragma once

#include <bit>
#include <cstdint>

namespace retrograd::ieee_codec {

inline constexpr uint32_t kF32Sign = 0x8000'0000u;
inline constexpr uint32_t kF32Infinity = 0x7f80'0000u;
inline constexpr int kF32MantissaBits = 23;
inline constexpr int kF32Bias = 127;

// Works on magnitudes: bit patterns without their sign. The infinities and NaNs of each type are its own
// affair.
template <int kExponentBits, int kMantissaBits>
struct Layout {
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kDroppedBits = kF32MantissaBits - kMantissaBits;
  static constexpr uint32_t kRebias = static_cast<uint32_t>(kF32Bias - kBias) << kF32MantissaBits;
  // FP32 exponent field of the smallest normal value, 2^(1 - kBias).
  static constexpr uint32_t kFirstNormalField = static_cast<uint32_t>(kF32Bias - kBias + 1);

  // The FP32 pattern of a finite magnitude; exact.
  static constexpr uint32_t decode(uint32_t magnitude) {
    if (magnitude >> kMantissaBits != 0) return (magnitude << kDroppedBits) + kRebias;
    if (magnitude == 0) return 0;
    // Subnormal, magnitude * 2^(1 - kBias - kMantissaBits): move the leading one to the implied place.
    const int shift = std::countl_zero(magnitude) - (31 - kMantissaBits);
    const uint32_t mantissa = (magnitude << (shift + kDroppedBits)) & ((1u << kF32MantissaBits) - 1);
    return ((kFirstNormalField - static_cast<uint32_t>(shift)) << kF32MantissaBits) | mantissa;
  }

  // The magnitude nearest to a finite FP32 one, ties to even, as if the exponent field had no upper end: a
  // carry out of the mantissa enters the exponent, and what exceeds the largest finite code is left to the
  // caller.
  static constexpr uint32_t encode(uint32_t f32) {
    const uint32_t field = f32 >> kF32MantissaBits;
    if (field >= kFirstNormalField) return shift_to_even(f32 - kRebias, kDroppedBits);
    // Subnormal: shift the mantissa, its implied one now written out, until a unit is the smallest subnormal.
    // 25 bits or more leave less than half a unit. FP32's own subnormals are far below.
    const uint32_t shift = static_cast<uint32_t>(kDroppedBits) + kFirstNormalField - field;
    if (shift > kF32MantissaBits + 1) return 0;
    constexpr uint32_t kImpliedOne = 1u << kF32MantissaBits;
    return shift_to_even((f32 & (kImpliedOne - 1)) | kImpliedOne, static_cast<int>(shift));
  }

 private:
  static constexpr uint32_t shift_to_even(uint32_t bits, int shift) {
    const uint32_t just_below_half = (1u << (shift - 1)) - 1;
    return (bits + just_below_half + ((bits >> shift) & 1u)) >> shift;
  }
};

}  // namespace retrograd::ieee_codec
