// SPDX-License-Identifier: Apache-2.0
// What a result adds along an axis: forward the places of its window, backward the windows that hold its
// pixel. Both are neighbours.
#pragma once

#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/pooling/pool_plan.h"

namespace retrograd::kernels::cuda {

struct PoolAxes {
  Windows windows;
  FastDiv strides[3];
};
inline PoolAxes axes_of(const Pool& pool) {
  const auto& [d, h, w] = pool.axes;
  return {windows_of(pool), {FastDiv(d.stride), FastDiv(h.stride), FastDiv(w.stride)}};
}

template <bool kForward>
RG_DEVICE Places sources_of(const PoolAxes& p, int axis, int index) {
  const WindowAxis& a = p.windows.axes[axis];
  if (kForward) {
    const Places places = places_of(a, index);
    return {least(places.begin, a.x), places.end};
  }
  const int shifted = index + a.pad;
  const auto windows_before = [&](int place) {
    return static_cast<int>(p.strides[axis].quotient(static_cast<uint32_t>(place))) + 1;
  };
  const int begin = shifted < a.kernel ? 0 : windows_before(shifted - a.kernel);
  return {least(begin, a.y), least(windows_before(shifted), a.y)};
}

// What a window is divided by along one axis, or two of them.
RG_DEVICE inline float counted(const PoolAxes& p, int axis, int window) {
  return static_cast<float>(count_of(p.windows.axes[axis], window));
}
RG_DEVICE inline float counted(const PoolAxes& p, int d, int h, int w) {
  return counted(p, 0, d) * counted(p, 1, h) * counted(p, 2, w);
}

}  // namespace retrograd::kernels::cuda
