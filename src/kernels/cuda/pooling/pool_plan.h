// SPDX-License-Identifier: Apache-2.0
// What the pooling kernels are told beside sizes.
#pragma once

#include "base/host_device.h"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// Whether every window divides by the same number, and what to multiply with then.
struct PoolDivisor {
  bool uniform;
  float scale;
};
PoolDivisor divisor_of(const Pool& pool);

// Along one axis, in 32 bits.
struct WindowAxis {
  int x, y, kernel, stride, pad;
  int first, end;  // what a window counts lies in between
};
struct Windows {
  WindowAxis axes[3];
  bool uniform;  // every window is multiplied with `scale`; else divided by its count
  float scale;
};
Windows windows_of(const Pool& pool);

RG_HOST_DEVICE inline int least(int a, int b) { return a < b ? a : b; }
RG_HOST_DEVICE inline int most(int a, int b) { return a > b ? a : b; }

struct Places {
  int begin, end;  // end <= begin: none
};
RG_HOST_DEVICE inline Places places_of(const WindowAxis& a, int window) {
  const int start = window * a.stride - a.pad, end = start + a.kernel;
  return {start > 0 ? start : 0, end < a.x ? end : a.x};
}
// At least 1: a window that holds no place sums nothing, and may divide by anything but zero.
RG_HOST_DEVICE inline int count_of(const WindowAxis& a, int window) {
  const int start = window * a.stride - a.pad, end = start + a.kernel;
  const int count = (end < a.end ? end : a.end) - (start > a.first ? start : a.first);
  return count > 1 ? count : 1;
}

// pool_vectors: sources of a result along W, steps that it adds along H (pool_vectors_walk.h), steps that a
// thread walks down, of all; no band: too many taps or steps.
struct VectorsCut {
  int taps, reach, band, steps;
};
inline constexpr int kVectorsReach = 8;
VectorsCut vectors_cut(const Pool& pool, bool forward);
// The same pooling of channels-last tensors: lines of windows along W alone become columns.
Pool walked_down(const Pool& pool);

}  // namespace retrograd::kernels::cuda
