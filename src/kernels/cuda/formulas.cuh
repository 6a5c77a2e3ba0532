// SPDX-License-Identifier: Apache-2.0
// The sums of problem/pass.h for one element, with any strides, sizes and types. Sums over channels or runs
// of places are kept apart before they are added, which keeps FP32 accurate over long sums.
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
};

struct Range {
  int64_t begin, end;
};

__device__ inline int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }
__device__ inline int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

__device__ inline Range clamped(int64_t begin, int64_t end, int64_t highest) {
  begin = max(int64_t{0}, min(begin, highest));
  return {begin, max(begin, min(end, highest))};
}
__device__ inline Range live_taps(const Axis& a, int64_t output) {
  const int64_t start = output * a.stride - a.pad;
  return clamped(ceil_div(-start, a.dilation), ceil_div(a.x - start, a.dilation), a.kernel);
}
__device__ inline Range live_outputs(const Axis& a, int64_t tap) {
  const int64_t shift = tap * a.dilation - a.pad;
  return clamped(ceil_div(-shift, a.stride), ceil_div(a.x - shift, a.stride), a.y);
}
// −1: none
__device__ inline int64_t output_reading(const Axis& a, int64_t index, int64_t tap) {
  const int64_t scaled = index + a.pad - tap * a.dilation;
  if (scaled < 0 || scaled % a.stride != 0) return -1;
  const int64_t output = scaled / a.stride;
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

// y[at]
__device__ inline float forward_sum(const Conv& p, const Index5& at) {
  const Source x(p.x, p.rounding), w(p.w, p.rounding);
  const auto& [ad, ah, aw] = p.axes;
  const Range td = live_taps(ad, at.d), th = live_taps(ah, at.h), tw = live_taps(aw, at.w);
  const int64_t first = at.c / p.y_channels * p.x_channels;
  float sum = bias_of(p, at.c);
  for (int64_t d = td.begin; d < td.end; ++d)
    for (int64_t h = th.begin; h < th.end; ++h)
      for (int64_t k = tw.begin; k < tw.end; ++k) {
        const int64_t xo = offset_of(
            p.x, {at.n, first, at.d * ad.stride - ad.pad + d * ad.dilation,
                  at.h * ah.stride - ah.pad + h * ah.dilation, at.w * aw.stride - aw.pad + k * aw.dilation});
        const int64_t wo = offset_of(p.w, {at.c, 0, d, h, k});
        float over_channels = 0;
        for (int64_t c = 0; c < p.x_channels; ++c)
          over_channels = fmaf(x(xo + c * p.x.strides[1]), w(wo + c * p.w.strides[1]), over_channels);
        sum += over_channels;
      }
  return sum;
}

// x[at]
__device__ inline float grad_input_sum(const Conv& p, const Index5& at) {
  const Source y(p.y, p.rounding), w(p.w, p.rounding);
  const auto& [ad, ah, aw] = p.axes;
  const int64_t first = at.c / p.x_channels * p.y_channels, in_group = at.c % p.x_channels;
  float sum = bias_of(p, at.c);
  for (int64_t d = 0; d < ad.kernel; ++d) {
    const int64_t od = output_reading(ad, at.d, d);
    if (od < 0) continue;
    for (int64_t h = 0; h < ah.kernel; ++h) {
      const int64_t oh = output_reading(ah, at.h, h);
      if (oh < 0) continue;
      for (int64_t k = 0; k < aw.kernel; ++k) {
        const int64_t ow = output_reading(aw, at.w, k);
        if (ow < 0) continue;
        const int64_t yo = offset_of(p.y, {at.n, first, od, oh, ow});
        const int64_t wo = offset_of(p.w, {first, in_group, d, h, k});
        float over_channels = 0;
        for (int64_t c = 0; c < p.y_channels; ++c)
          over_channels = fmaf(y(yo + c * p.y.strides[1]), w(wo + c * p.w.strides[0]), over_channels);
        sum += over_channels;
      }
    }
  }
  return sum;
}

// The terms number, number + step, … of w[at].
__device__ inline float grad_weight_sum(const Conv& p, const Index5& at, int64_t number, int64_t step) {
  const Source x(p.x, p.rounding), y(p.y, p.rounding);
  const auto& [ad, ah, aw] = p.axes;
  const int64_t x_channel = at.n / p.y_channels * p.x_channels + at.c;
  const Range rd = live_outputs(ad, at.d), rh = live_outputs(ah, at.h), rw = live_outputs(aw, at.w);
  const int64_t terms = p.batch * (rd.end - rd.begin) * (rh.end - rh.begin) * (rw.end - rw.begin);
  float sum = 0, part = 0;
  int added = 0;
  for (int64_t i = number; i < terms; i += step) {
    const Index5 o = split(i, 1, rd.end - rd.begin, rh.end - rh.begin, rw.end - rw.begin);
    const int64_t od = rd.begin + o.d, oh = rh.begin + o.h, ow = rw.begin + o.w;
    const float value = x(offset_of(
        p.x, {o.n, x_channel, od * ad.stride - ad.pad + at.d * ad.dilation,
              oh * ah.stride - ah.pad + at.h * ah.dilation, ow * aw.stride - aw.pad + at.w * aw.dilation}));
    part = fmaf(value, y(offset_of(p.y, {o.n, at.n, od, oh, ow})), part);
    if (++added % 64 == 0) {
      sum += part;
      part = 0;
    }
  }
  return sum + part;
}

}  // namespace retrograd::kernels::cuda
