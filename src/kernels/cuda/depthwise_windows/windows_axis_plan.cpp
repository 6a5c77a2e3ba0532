// SPDX-License-Identifier: Apache-2.0
// Numbers that taps_at needs, from a window.
#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "kernels/cuda/counts.h"
#include "kernels/cuda/depthwise_windows/windows_axis.h"

namespace retrograd::kernels::cuda {

DepthwiseAxis window_axis(const Axis& axis, bool forward, int64_t result_pitch, int64_t source_pitch) {
  DepthwiseAxis a;
  a.results = static_cast<int>(forward ? axis.y : axis.x);
  a.source = static_cast<int>(forward ? axis.x : axis.y);
  a.kernel = static_cast<int>(axis.kernel);
  a.stride = axis.y == 1 ? 1 : static_cast<int>(axis.stride);
  a.dilation = axis.kernel == 1 ? 1 : static_cast<int>(axis.dilation);
  a.pad = static_cast<int>(axis.pad);
  a.step = a.dilation;
  a.result_pitch = static_cast<int>(result_pitch);
  a.source_pitch = static_cast<int>(source_pitch);
  a.matched = !forward && a.stride > 1;
  if (!forward && !a.matched) {
    a.pad = (a.kernel - 1) * a.dilation - a.pad;
    a.first = a.kernel - 1;
    a.toward = -1;
  }
  if (a.matched) {
    const int common = std::gcd(a.stride, a.dilation);
    a.step = a.dilation / common;
    a.apart = a.stride / common;
    a.phase = static_cast<int>(a.pad - floor_div(a.pad, a.stride) * a.stride);
    a.lift = ceil_of(int64_t{std::max(0, -a.pad)} + int64_t{a.kernel} * a.dilation, a.stride);
    while (int64_t{a.inverse} * a.step % a.apart != 1 % a.apart) ++a.inverse;
    a.by_stride = FastDiv(a.stride);
    a.by_common = FastDiv(common);
    a.by_apart = FastDiv(a.apart);
  }
  a.by_step = FastDiv(a.step);
  return a;
}

DepthwiseKernels depthwise_kernels(const Conv& conv, bool forward) {
  const int64_t(&strides)[5] = conv.w.strides;
  return {FastDiv(conv.axes[2].kernel), FastDiv(conv.axes[1].kernel), conv.y_channels * strides[0],
          strides[forward ? 0 : 1],     strides[forward ? 1 : 0],     {strides[2], strides[3], strides[4]}};
}

int most_taps(const DepthwiseAxis& a) { return ceil_of(a.kernel, a.apart); }

bool shares(const DepthwiseAxis& a) { return a.matched || a.dilation % a.stride == 0; }
int64_t spacing_of(const DepthwiseAxis& a) {
  if (!shares(a)) return 1;
  const int64_t exact = a.matched ? std::lcm(int64_t{a.stride}, int64_t{a.dilation}) : a.dilation / a.stride;
  return std::min<int64_t>(exact, a.results);
}

int64_t extent(const DepthwiseAxis& a, int64_t count) {
  const int64_t reach = int64_t{a.kernel - 1} * a.dilation;
  return a.matched ? (count - 1 + reach) / a.stride + 2 : (count - 1) * a.stride + reach + 1;
}

}  // namespace retrograd::kernels::cuda
