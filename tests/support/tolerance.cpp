// SPDX-License-Identifier: Apache-2.0
// The bounds of tolerance.h.
#include "support/tolerance.h"

#include <algorithm>
#include <cmath>

namespace retrograd::test {
namespace {

struct Precision {
  int mantissa_bits;    // stored ones, at their fewest
  int lowest_exponent;  // below 2^this, spacing no longer shrinks
};

Precision precision_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return {23, -126};
    case DType::kF16:
      return {10, -14};
    case DType::kBF16:
      return {7, -126};
    case DType::kHiF8:
      return {1, -15};  // tapered: one bit at the ends of its range
    case DType::kE4M3:
      return {3, -6};
  }
  return {23, -126};
}

}  // namespace

double half_ulp(DType dtype, double value) {
  const auto [bits, lowest] = precision_of(dtype);
  const int exponent = value == 0 ? lowest : std::max(std::ilogb(value), lowest);
  return std::ldexp(1.0, exponent - bits - 1);
}

double sum_bound(DType dtype, double exact, double magnitude, int64_t terms, Accumulation accumulation) {
  // Each of n additions errs by at most u·Σ|terms| to first order; products in FP32 add one more.
  const double unit = std::ldexp(1.0, accumulation == Accumulation::kDouble ? -53 : -24);
  // In FP32, each addition of numbers near the smallest ones may lose half of the smallest on top.
  const double underflow = accumulation == Accumulation::kDouble ? 0 : half_ulp(DType::kF32, 0);
  const double sum_error = static_cast<double>(terms + 1) * (unit * magnitude + underflow);
  const double value = std::abs(exact) + sum_error;
  const double to_f32 = half_ulp(DType::kF32, value);
  // Half a unit is counted at the upper end, where a value may have been rounded up into the next binade.
  return sum_error + to_f32 + (dtype == DType::kF32 ? 0 : half_ulp(dtype, value + to_f32));
}

double lost_small_products(int64_t terms, double largest_operand) {
  return static_cast<double>(terms) * std::ldexp(largest_operand, -137);
}

double reduced_precision_bound(double largest) { return 3e-5 * largest; }

}  // namespace retrograd::test
