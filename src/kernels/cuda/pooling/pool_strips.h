// SPDX-License-Identifier: Apache-2.0
// What the compiler knows of the windows that a thread walks along in shared memory.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/cuda/host_device.h"

namespace retrograd::kernels::cuda {

inline constexpr int kColumnsReach =
    16;                                  // windows that hold a place along one axis, at most, where it counts
inline constexpr int kStripMargin = 24;  // floats before and behind what is staged, which strips may read

// A strip: kernel and stride along W and H, and the windows along W that begin in it; no channels in lines.
// With an odd number of windows the lanes of a warp read different banks.
template <int kKernelW, int kStrideW, int kKernelH, int kStrideH, int kBegin>
struct Strip {
  static constexpr int kW = kKernelW, kSW = kStrideW, kH = kKernelH, kSH = kStrideH;
  static constexpr int kReachW = (kW + kSW - 1) / kSW, kReachH = (kH + kSH - 1) / kSH;
  static constexpr int kWindows = kBegin;
  static constexpr int kColumns = kBegin * kSW, kLoads = kBegin + kReachW - 1;  // of x, and of y for them
  static constexpr int kHeld = (kBegin - 1) * kSW + kW;                         // places of the windows
  static constexpr int kSums = kColumns * kReachH, kForwardSums = kWindows * kReachH;  // that a thread keeps
  static constexpr bool kIsStrip = true;
};
// Any window, a column a walk: kR windows at most that hold a place along an axis.
template <int kR>
struct Column {
  static constexpr int kReach = kR, kWindows = 1, kColumns = 1, kLoads = kR, kHeld = kR, kSums = kR,
                       kForwardSums = 1;
  static constexpr bool kIsStrip = false;
};

struct WalkKey {
  int64_t kernel_w, stride_w, kernel_h, stride_h, inner;
};
// Calls function with the kind of these windows; those that are common have strips.
template <class Function>
void with_walk_kind(const WalkKey& key, Function&& function) {
  const auto is = [&](int kernel, int stride) {
    return key.kernel_w == kernel && key.stride_w == stride && key.inner == 1;
  };
  if (key.kernel_h == key.kernel_w && key.stride_h == key.stride_w) {
    if (is(2, 2)) return function(Strip<2, 2, 2, 2, 3>{});
    if (is(3, 1)) return function(Strip<3, 1, 3, 1, 7>{});
    if (is(3, 2)) return function(Strip<3, 2, 3, 2, 3>{});
    if (is(4, 2)) return function(Strip<4, 2, 4, 2, 3>{});
    if (is(4, 4)) return function(Strip<4, 4, 4, 4, 1>{});
    if (is(5, 1)) return function(Strip<5, 1, 5, 1, 7>{});
    if (is(7, 2)) return function(Strip<7, 2, 7, 2, 3>{});
  }
  if (key.kernel_h == 1 && key.stride_h == 1) {
    if (is(2, 2)) return function(Strip<2, 2, 1, 1, 3>{});
    if (is(3, 1)) return function(Strip<3, 1, 1, 1, 7>{});
    if (is(3, 2)) return function(Strip<3, 2, 1, 1, 3>{});
    if (is(4, 2)) return function(Strip<4, 2, 1, 1, 3>{});
    if (is(4, 4)) return function(Strip<4, 4, 1, 1, 1>{});
  }
  const auto reach = [](int64_t kernel, int64_t stride) { return (kernel + stride - 1) / stride; };
  const int64_t w = reach(key.kernel_w, key.stride_w), h = reach(key.kernel_h, key.stride_h);
  const int64_t larger = w > h ? w : h;
  if (larger == 1) return function(Column<1>{});
  if (larger <= 4) return function(Column<4>{});
  if (larger <= 8) return function(Column<8>{});
  function(Column<kColumnsReach>{});
}

RG_DEVICE inline bool is_window(int number, int count) {
  return static_cast<unsigned>(number) < static_cast<unsigned>(count);
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

}  // namespace retrograd::kernels::cuda
