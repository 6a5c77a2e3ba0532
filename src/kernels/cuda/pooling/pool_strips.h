// SPDX-License-Identifier: Apache-2.0
// What the compiler knows of the windows of a strip. Both directions are sums of neighbours: forward, a
// result is the sum of the places of its window; backward, of the windows that hold its place. A step is a
// window: forward it reads `stride` more pixels and gives one result, backward it reads one more window and
// gives `stride` results.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/host_device.h"
#include "kernels/cuda/counts.h"

namespace retrograd::kernels::cuda {

inline constexpr int kStripMargin = 32;  // elements before and behind what is staged, which strips may read

// kSteps neighbouring steps along an axis: their sources, and which of those each result adds.
template <bool kForward, int kKernel, int kStride, int kSteps>
struct Steps {
  static constexpr int kK = kKernel, kS = kStride;
  static constexpr int kReach = (kKernel + kStride - 1) / kStride;  // steps until a window is complete
  static constexpr int kLast = kKernel - (kReach - 1) * kStride;    // of the places of a stride, in the last
  static constexpr int kResults = kForward ? kSteps : kSteps * kStride;
  static constexpr int kSources = kForward ? (kSteps - 1) * kStride + kKernel : kSteps + kReach - 1;
  RG_HOST_DEVICE static constexpr int first(int result) {
    if (kForward) return result * kStride;
    return result / kStride + (result % kStride < kLast ? 0 : 1);
  }
  RG_HOST_DEVICE static constexpr int end(int result) {
    return kForward ? result * kStride + kKernel : result / kStride + kReach;
  }
};

// Square windows, or windows in lines (kFlat); kWide: windows along W of a thread. With an odd number the
// lanes of a warp mostly read different banks. kPlain: all windows have one divisor.
template <bool kDirection, int kKernel, int kStride, int kWide, bool kFlat, bool kIsPlain>
struct Strip {
  static constexpr bool kIsStrip = true, kForward = kDirection, kPlain = kIsPlain;
  using W = Steps<kDirection, kKernel, kStride, kWide>;
  using H = Steps<kDirection, kFlat ? 1 : kKernel, kFlat ? 1 : kStride, 1>;
};
// Any windows: sums down columns, then across.
template <bool kDirection>
struct AnyWindows {
  static constexpr bool kIsStrip = false, kForward = kDirection, kPlain = false;
};

struct WindowKey {
  bool forward, plain;
  int64_t kernel_h, stride_h, kernel_w, stride_w, inner;  // inner: channels in a line
};
template <bool kForward, bool kPlain, int kBytes, class Function>
void with_kind(const WindowKey& key, Function&& function) {
  constexpr int kOne = kBytes == 2 ? 6 : 7;  // with stride 1: whole words apart, an odd number
  const auto is = [&](int kernel, int stride) { return key.kernel_w == kernel && key.stride_w == stride; };
  if (key.inner == 1 && key.kernel_h == key.kernel_w && key.stride_h == key.stride_w) {
    if (is(2, 2)) return function(Strip<kForward, 2, 2, 7, false, kPlain>{});
    if (is(3, 1)) return function(Strip<kForward, 3, 1, kOne, false, kPlain>{});
    if (is(3, 2)) return function(Strip<kForward, 3, 2, 3, false, kPlain>{});
    if (is(4, 2)) return function(Strip<kForward, 4, 2, 3, false, kPlain>{});
    if (is(4, 4)) return function(Strip<kForward, 4, 4, 3, false, kPlain>{});
    if (is(3, 3)) return function(Strip<kForward, 3, 3, 5, false, kPlain>{});
    if (is(5, 1)) return function(Strip < kForward, 5, 1, kBytes == 2 ? 6 : 5, false, kPlain > {});
    if (is(7, 2)) return function(Strip<kForward, 7, 2, 3, false, kPlain>{});
    if (is(7, 7)) return function(Strip<kForward, 7, 7, 3, false, kPlain>{});
  }
  if (key.inner == 1 && key.kernel_h == 1 && key.stride_h == 1) {
    if (is(2, 2)) return function(Strip<kForward, 2, 2, 7, true, kPlain>{});
    if (is(3, 1)) return function(Strip<kForward, 3, 1, kOne, true, kPlain>{});
    if (is(3, 2)) return function(Strip<kForward, 3, 2, 7, true, kPlain>{});
    if (is(4, 2)) return function(Strip<kForward, 4, 2, 7, true, kPlain>{});
    if (is(4, 4)) return function(Strip<kForward, 4, 4, 5, true, kPlain>{});
  }
  function(AnyWindows<kForward>{});
}
// Calls function with the kind of these windows for elements of kBytes; those that are common have strips.
template <int kBytes, class Function>
void with_kind(const WindowKey& key, Function&& function) {
  if (key.forward)
    return key.plain ? with_kind<true, true, kBytes>(key, function)
                     : with_kind<true, false, kBytes>(key, function);
  key.plain ? with_kind<false, true, kBytes>(key, function) : with_kind<false, false, kBytes>(key, function);
}

// What the compiler knows of bits, it would keep a register for each of, or test instead of masking.
RG_DEVICE inline uint32_t unknown(uint32_t bits) {
#ifdef __CUDACC__
  asm volatile("" : "+r"(bits));
#endif
  return bits;
}
RG_DEVICE inline float masked(float value, uint32_t mask) {
#ifdef __CUDACC__
  return __uint_as_float(__float_as_uint(value) & mask);
#else
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  bits &= mask;
  memcpy(&value, &bits, sizeof(bits));
  return value;
#endif
}

// Bit i: whether first + i lies inside; of `bits` of them.
RG_DEVICE inline uint32_t inside_bits(int first, int count, int bits) {
  const int begin = first < 0 ? -first : 0, end = count - first < bits ? count - first : bits;
  return begin < end ? (1u << end) - (1u << begin) : 0u;
}

}  // namespace retrograd::kernels::cuda
