// SPDX-License-Identifier: Apache-2.0
// The sums of problem/pass.h for one element, with any strides, sizes and types. Sums over channels or runs
// of places are kept apart before they are added, which keeps FP32 accurate over long sums. Threads may share
// the terms of a sum; a sum that is NaN stays NaN, so nobody reads on.
#pragma once

#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

struct Source {
  const void* data;
  DType dtype;
  OperandRounding rounding;
  __device__ Source(const Tensor& tensor, OperandRounding r)
      : data(tensor.data), dtype(tensor.dtype), rounding(r) {}
  __device__ float operator()(int64_t offset) const {
    return round_operand(rounding, load_any(dtype, data, offset));
  }

  // Elements `stride` apart.
  struct Run;
  __device__ Run from(int64_t first, int64_t stride) const;
};
struct Source::Run {
  const Source& source;
  int64_t first, stride;
  __device__ int64_t at(int64_t i) const { return first + i * stride; }
};
__device__ inline Source::Run Source::from(int64_t first, int64_t stride) const {
  return {*this, first, stride};
}

struct Range {
  int64_t begin, end;
};

__device__ inline int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }
__device__ inline int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

__device__ inline Range clamped(int64_t begin, int64_t end, int64_t highest) {
  begin = max(int64_t{0}, min(begin, highest));
  return {begin, max(begin, min(end, highest))};
}
// Of x; −1: beyond its edge.
__device__ inline int64_t position(const Axis& a, int64_t output, int64_t tap) {
  const int64_t index = output * a.stride - a.pad + tap * a.dilation;
  return index < a.x ? max(index, int64_t{-1}) : -1;
}
__device__ inline Range live_outputs(const Axis& a, int64_t tap) {
  const int64_t shift = tap * a.dilation - a.pad;
  return clamped(ceil_div(-shift, a.stride), ceil_div(a.x - shift, a.stride), a.y);
}
// −1: none
__device__ inline int64_t output_reading(const Axis& a, int64_t index, int64_t tap) {
  const int64_t scaled = index + a.pad - tap * a.dilation;
  if (scaled < 0) return -1;
  const int64_t output = a.stride == 1 ? scaled : scaled / a.stride;
  if (output * a.stride != scaled) return -1;
  return output < a.y ? output : -1;
}

struct Index5 {
  int64_t n, c, d, h, w;
};
__device__ inline Index5 split(int64_t flat, int64_t c, int64_t d, int64_t h, int64_t w) {
  Index5 i;
  i.w = flat % w;
  flat /= w;
  i.h = flat % h;
  flat /= h;
  i.d = flat % d;
  flat /= d;
  i.c = flat % c;
  i.n = flat / c;
  return i;
}
__device__ inline int64_t offset_of(const Tensor& t, const Index5& i) {
  return i.n * t.strides[0] + i.c * t.strides[1] + i.d * t.strides[2] + i.h * t.strides[3] +
         i.w * t.strides[4];
}

__device__ inline float bias_of(const Conv& p, int64_t channel) {
  return p.bias.data == nullptr ? 0.0f : load_any(p.bias.dtype, p.bias.data, channel * p.bias.stride);
}

// Which terms of a sum over taps and channels a thread takes: every taps-th live tap from `tap` on, of it
// every channels-th channel from `channel` on. The first thread takes the bias.
struct Share {
  int tap, taps, channel, channels;
  // How a warp shares a sum.
  __device__ static Share of_lane(const Conv& p, int64_t in_tap) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (in_tap < 16) return {lane, 32, 0, 1};
    return p.axes[0].kernel * p.axes[1].kernel * p.axes[2].kernel > 2 ? Share{lane / 8, 4, lane % 8, 8}
                                                                      : Share{0, 1, lane, 32};
  }
  __device__ bool has_bias() const { return tap == 0 && channel == 0; }
};

// Calls function(a, b) with what loads elements of both: of types known to the compiler if they are the usual
// ones, since what asks for the type each time cannot load ahead.
template <class Function>
__device__ float with_loads(const Source& a, const Source& b, Function&& function) {
  const auto typed = [&](auto type) {
    using T = decltype(type);
    const auto* const of_a = static_cast<const T*>(a.data);
    const auto* const of_b = static_cast<const T*>(b.data);
    return function([=](int64_t i) { return to_float(of_a[i]); },
                    [=](int64_t i) { return to_float(of_b[i]); });
  };
  if (a.rounding == OperandRounding::kNone && a.dtype == b.dtype) {
    if (a.dtype == DType::kF32) return typed(float{});
    if (a.dtype == DType::kF16) return typed(__half{});
    if (a.dtype == DType::kBF16) return typed(__nv_bfloat16{});
  }
  return function(a, b);
}

// Σ a[i] · b[i] of the channels i = first, first + step, …; loads go ahead of the products.
__device__ inline float add_channels(const Source::Run& a, const Source::Run& b, int64_t first, int64_t end,
                                     int64_t step) {
  constexpr int kAhead = 4;
  return with_loads(a.source, b.source, [&](auto of_a, auto of_b) {
    float sum = 0;
    int64_t i = first;
#pragma unroll 1
    for (; i + (kAhead - 1) * step < end; i += kAhead * step) {
      float left[kAhead], right[kAhead];
#pragma unroll
      for (int j = 0; j < kAhead; ++j)
        left[j] = of_a(a.at(i + j * step)), right[j] = of_b(b.at(i + j * step));
#pragma unroll
      for (int j = 0; j < kAhead; ++j) sum = fmaf(left[j], right[j], sum);
      if (isnan(sum)) return sum;
    }
#pragma unroll 1
    for (; i < end; i += step) sum = fmaf(of_a(a.at(i)), of_b(b.at(i)), sum);
    return sum;
  });
}

// Terms of y[at].
__device__ inline float forward_sum(const Conv& p, const Index5& at, Share share = {0, 1, 0, 1}) {
  const Axis &ad = p.axes[0], &ah = p.axes[1], &aw = p.axes[2];
  const int64_t first = at.c / p.y_channels * p.x_channels;
  const Source x(p.x, p.rounding), w(p.w, p.rounding);
  float sum = share.has_bias() ? bias_of(p, at.c) : 0.0f;
  int live = 0;
  for (int64_t d = 0; d < ad.kernel; ++d) {
    const int64_t xd = position(ad, at.d, d);
    if (xd < 0) continue;
    for (int64_t h = 0; h < ah.kernel; ++h) {
      const int64_t xh = position(ah, at.h, h);
      if (xh < 0) continue;
#pragma unroll 1
      for (int64_t k = 0; k < aw.kernel; ++k) {
        const int64_t xw = position(aw, at.w, k);
        if (xw < 0 || live++ % share.taps != share.tap) continue;
        sum += add_channels(x.from(offset_of(p.x, {at.n, first, xd, xh, xw}), p.x.strides[1]),
                            w.from(offset_of(p.w, {at.c, 0, d, h, k}), p.w.strides[1]), share.channel,
                            p.x_channels, share.channels);
        if (isnan(sum)) return sum;
      }
    }
  }
  return sum;
}

// Terms of x[at].
__device__ inline float grad_input_sum(const Conv& p, const Index5& at, Share share = {0, 1, 0, 1}) {
  const Axis &ad = p.axes[0], &ah = p.axes[1], &aw = p.axes[2];
  const int64_t first = at.c / p.x_channels * p.y_channels, in_group = at.c % p.x_channels;
  const Source y(p.y, p.rounding), w(p.w, p.rounding);
  float sum = share.has_bias() ? bias_of(p, at.c) : 0.0f;
  int live = 0;
  for (int64_t d = 0; d < ad.kernel; ++d) {
    const int64_t od = output_reading(ad, at.d, d);
    if (od < 0) continue;
    for (int64_t h = 0; h < ah.kernel; ++h) {
      const int64_t oh = output_reading(ah, at.h, h);
      if (oh < 0) continue;
#pragma unroll 1
      for (int64_t k = 0; k < aw.kernel; ++k) {
        const int64_t ow = output_reading(aw, at.w, k);
        if (ow < 0 || live++ % share.taps != share.tap) continue;
        sum += add_channels(y.from(offset_of(p.y, {at.n, first, od, oh, ow}), p.y.strides[1]),
                            w.from(offset_of(p.w, {first, in_group, d, h, k}), p.w.strides[0]), share.channel,
                            p.y_channels, share.channels);
        if (isnan(sum)) return sum;
      }
    }
  }
  return sum;
}

// An order of places of y, images outside: `count` of them along an axis from `first` on. May hold places
// that are not there.
struct PlaceGrid {
  int64_t first[3], count[3];
  __device__ static PlaceGrid of(const Conv& p) {
    return {{0, 0, 0}, {p.axes[0].y, p.axes[1].y, p.axes[2].y}};
  }
};

// Places of a grid in steps of `step`, and where x lies that a tap of weights reads with them. Knows no
// division once it is under way.
struct PlaceWalk {
  int64_t at[3], end[3], count[3], by[3];      // of an axis; by: of a step
  int64_t x, y;                                // offsets
  int64_t x_by, y_by, x_carry[3], y_carry[3];  // of a step, and of a carry from an axis
  Range live[3];

  __device__ PlaceWalk(const Conv& p, const Index5& w, const PlaceGrid& grid, int64_t place, int64_t step) {
    const int64_t channel = w.n / p.y_channels * p.x_channels + w.c;
    const int64_t taps[3] = {w.d, w.h, w.w};
    x = channel * p.x.strides[1], y = w.n * p.y.strides[1];
    x_by = y_by = 0;
    int64_t x_outer = 0, y_outer = 0;  // strides of the axis within, times its size
#pragma unroll
    for (int a = 2; a >= 0; --a) {
      const Axis& axis = p.axes[a];
      const int64_t x_stride = p.x.strides[2 + a] * axis.stride, y_stride = p.y.strides[2 + a];
      count[a] = grid.count[a], end[a] = grid.first[a] + count[a];
      live[a] = live_outputs(axis, taps[a]);
      at[a] = grid.first[a] + place % count[a], by[a] = step % count[a];
      place /= count[a], step /= count[a];
      x += at[a] * x_stride + (taps[a] * axis.dilation - axis.pad) * p.x.strides[2 + a];
      y += at[a] * y_stride;
      x_by += by[a] * x_stride, y_by += by[a] * y_stride;
      if (a < 2) x_carry[a + 1] = x_stride - x_outer, y_carry[a + 1] = y_stride - y_outer;
      x_outer = x_stride * count[a], y_outer = y_stride * count[a];
    }
    x += place * p.x.strides[0], y += place * p.y.strides[0];
    x_by += step * p.x.strides[0], y_by += step * p.y.strides[0];
    x_carry[0] = p.x.strides[0] - x_outer, y_carry[0] = p.y.strides[0] - y_outer;
  }
  __device__ bool is_live() const {
    bool inside = true;
#pragma unroll
    for (int a = 0; a < 3; ++a) inside = inside && at[a] >= live[a].begin && at[a] < live[a].end;
    return inside;
  }
  __device__ void next() {
    x += x_by, y += y_by;
#pragma unroll
    for (int a = 2; a >= 0; --a) {
      at[a] += by[a];
      if (at[a] < end[a]) continue;
      at[a] -= count[a];
      if (a > 0) ++at[a - 1];
      x += x_carry[a], y += y_carry[a];
    }
  }
};

// The terms of w[at] of the grid's places begin + number, begin + number + step, … before `end`.
__device__ inline float grad_weight_part(const Conv& p, const Index5& at, const PlaceGrid& grid,
                                         int64_t begin, int64_t end, int64_t number, int64_t step) {
  constexpr int kAhead = 4, kApart = 64;
  return with_loads(Source(p.x, p.rounding), Source(p.y, p.rounding), [&](auto x, auto y) {
    float sum = 0, part = 0;
    int added = 0;
    if (begin + number >= end) return sum;
    PlaceWalk walk(p, at, grid, begin + number, step);
    for (int64_t i = begin + number; i < end;) {
      float of_x[kAhead], of_y[kAhead];
#pragma unroll
      for (int j = 0; j < kAhead; ++j, i += step, walk.next()) {
        const bool live = i < end && walk.is_live();
        of_x[j] = live ? x(walk.x) : 0.0f;
        of_y[j] = live ? y(walk.y) : 0.0f;
      }
#pragma unroll
      for (int j = 0; j < kAhead; ++j) part = fmaf(of_x[j], of_y[j], part);
      if (isnan(part)) return part;
      added += kAhead;
      if (added % kApart == 0) {
        sum += part;
        part = 0;
      }
    }
    return sum + part;
  });
}

// The terms number, number + step, … of w[at].
__device__ inline float grad_weight_sum(const Conv& p, const Index5& at, int64_t number, int64_t step) {
  return grad_weight_part(p, at, PlaceGrid::of(p), 0, p.batch * p.axes[0].y * p.axes[1].y * p.axes[2].y,
                          number, step);
}

}  // namespace retrograd::kernels::cuda
