// SPDX-License-Identifier: Apache-2.0
// Division of 31-bit numbers by a number known before the launch: one multiplication and a shift. A plain
// division is some twenty instructions, and index arithmetic is what limits kernels that only move bytes.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace retrograd::kernels::cuda {

struct FastDiv {
  uint32_t divisor = 1, factor = 1, shift = 0;

  FastDiv() = default;
  // 1 <= d < 2^31: with s = ⌈log2 d⌉ and f = ⌊2^32·(2^s − d)/d⌋ + 1, n / d = (⌊n·f/2^32⌋ + n) >> s for n <
  // 2^31.
  explicit FastDiv(int64_t d) : divisor(static_cast<uint32_t>(d)) {
    while ((1ull << shift) < divisor) ++shift;
    factor = static_cast<uint32_t>(((1ull << 32) * ((1ull << shift) - divisor)) / divisor + 1);
  }
  RG_DEVICE uint32_t quotient(uint32_t n) const {
#ifdef __CUDACC__
    const uint32_t high = __umulhi(n, factor);
#else
    const auto high = static_cast<uint32_t>((uint64_t{n} * factor) >> 32);
#endif
    return (high + n) >> shift;
  }
  // n becomes the remainder.
  RG_DEVICE uint32_t split(uint32_t& n) const {
    const uint32_t q = quotient(n);
    n -= q * divisor;
    return q;
  }
};

}  // namespace retrograd::kernels::cuda
