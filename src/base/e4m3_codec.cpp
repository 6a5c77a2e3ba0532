// SPDX-License-Identifier: Apache-2.0
// FLOAT8_E4M3FN from and to FP32: 1-4-3, bias 7, no infinities, one NaN a sign; what is too large becomes
// NaN.
#include <array>

#include "base/dtype.h"
#include "base/ieee_codec.h"

namespace retrograd {
namespace {

using ieee_codec::kF32Infinity;
using ieee_codec::kF32Sign;
using E4M3 = ieee_codec::Layout<4, 3>;

constexpr uint32_t kNaN = 0x7f;
constexpr uint32_t kF32Quiet = 0x0040'0000;

constexpr float decode(uint32_t code) {
  const uint32_t sign = (code & 0x80u) << 24;
  const uint32_t magnitude = code & 0x7fu;
  return std::bit_cast<float>(sign |
                              (magnitude == kNaN ? kF32Infinity | kF32Quiet : E4M3::decode(magnitude)));
}

constexpr std::array<float, 256> kDecoded = [] {
  std::array<float, 256> table{};
  for (uint32_t code = 0; code < table.size(); ++code) table[code] = decode(code);
  return table;
}();

}  // namespace

float e4m3_to_f32(uint8_t bits) { return kDecoded[bits]; }

uint8_t f32_to_e4m3(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t f32 = bits & ~kF32Sign;
  uint32_t magnitude = kNaN;
  if (f32 < kF32Infinity) {
    // 464 lies halfway between 448 (0x7e) and the place of NaN (0x7f): the tie goes to the even code, 448.
    magnitude = E4M3::encode(f32);
    if (magnitude > kNaN) magnitude = kNaN;
  }
  return static_cast<uint8_t>(((bits & kF32Sign) >> 24) | magnitude);
}

}  // namespace retrograd
