// SPDX-License-Identifier: Apache-2.0
// 64-bit integer arithmetic that says when it overflows. Sizes come from callers: nothing here may wrap.
#pragma once

#include <cstdint>
#include <optional>

#include "base/host_device.h"

namespace retrograd {

inline std::optional<int64_t> checked_add(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
  return r;
}

inline std::optional<int64_t> checked_mul(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
  return r;
}

// A running value that turns into nullopt at the first overflow and stays so:
//   (Checked(in) + pad_lo + pad_hi - Checked(dilation) * (kernel - 1)).get()
class Checked {
 public:
  Checked(int64_t value) : value_(value) {}
  Checked(std::optional<int64_t> value) : value_(value) {}
  std::optional<int64_t> get() const { return value_; }

  friend Checked operator+(Checked a, Checked b) { return combine(a, b, checked_add); }
  friend Checked operator*(Checked a, Checked b) { return combine(a, b, checked_mul); }
  friend Checked operator-(Checked a, Checked b) {
    return combine(a, b, [](int64_t x, int64_t y) -> std::optional<int64_t> {
      int64_t r;
      if (__builtin_sub_overflow(x, y, &r)) return std::nullopt;
      return r;
    });
  }

 private:
  template <class F>
  static Checked combine(Checked a, Checked b, F f) {
    if (!a.value_ || !b.value_) return Checked(std::nullopt);
    return Checked(f(*a.value_, *b.value_));
  }
  std::optional<int64_t> value_;
};

// Rounds towards minus infinity; the divisor is positive. C++ truncates, and (in - kernel) may be negative.
RG_HOST_DEVICE constexpr int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
RG_HOST_DEVICE constexpr int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

}  // namespace retrograd
