// SPDX-License-Identifier: Apache-2.0
// The codecs under test, each beside an independent double-precision formula, and a slow encoder built on it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.h"

namespace retrograd::test {

enum class Tie { kToEven, kAwayFromZero };

struct CodecCase {
  std::string name;
  DType dtype;
  int bits;                          // width of a code
  double (*formula)(uint32_t code);  // what the code means, NaN included
  float (*decode)(uint32_t code);
  uint32_t (*encode)(float value);
  Tie tie;
  uint32_t overflow_code;  // magnitude code of what lies beyond the largest finite value
  double overflow_value;   // the value that code would have if the format went on
  bool signed_zero;

  uint32_t code_count() const { return 1u << bits; }
  uint32_t sign_bit() const { return 1u << (bits - 1); }
};

const std::vector<CodecCase>& codec_cases();

// Looks for the nearest of all values of the format and applies the tie rule; knows nothing of bit patterns.
class SlowEncoder {
 public:
  explicit SlowEncoder(const CodecCase& codec);
  // For anything but NaN.
  uint32_t encode(float value) const;
  // All finite magnitudes and the overflow value, ascending, with their codes.
  const std::vector<std::pair<double, uint32_t>>& ladder() const { return ladder_; }

 private:
  const CodecCase& codec_;
  std::vector<std::pair<double, uint32_t>> ladder_;
};

// Every FP16 value, every BF16 value, each as FP32 by its formula.
std::vector<float> every_half();
// FP32 bit patterns: specials, both ends of every exponent, subnormals, and a fixed pseudo-random million.
std::vector<float> f32_sample();
// Every value of the format, every midpoint between two of them, and the two FP32 numbers on either side of
// each.
std::vector<float> critical_points(const SlowEncoder& encoder);

uint32_t bits_of(float value);
float float_of(uint32_t bits);

}  // namespace retrograd::test
