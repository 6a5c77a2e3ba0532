// SPDX-License-Identifier: Apache-2.0
// x[n, c, q] = bias[c] + Σ_t columns[n, t, c, output_reading(q, t)]
//
// A thread an element of x, neighbouring lanes neighbouring pixels: what they read of a tap lies side by
// side. It walks only the taps whose window holds its place (depthwise/windows_axis.h): with stride 4, two
// of seven along an axis. Their order is fixed. Bytes: the columns once, x once.
#include "kernels/cuda/depthwise_windows/windows_axis.h"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/layout/channel_rows.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;

struct Columns {
  Tensor x;
  ChannelBias bias;
  DepthwiseAxis axes[3];
  FastDiv sizes[3], channels;  // of x
  int64_t plane, image;        // elements of a column's places, and of an image's columns
  uint32_t total;
};

__global__ void __launch_bounds__(kThreads)
    columns_kernel(const __grid_constant__ Columns p, const float* columns) {
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= p.total) return;
  uint32_t w = i;
  uint32_t h = p.sizes[2].split(w);
  uint32_t d = p.sizes[1].split(h);
  uint32_t c = p.sizes[0].split(d);
  const uint32_t n = p.channels.split(c);
  columns += n * p.image + c * p.plane;
  const int64_t tap_step = p.channels.divisor * p.plane;
  const DepthwiseAxis &ad = p.axes[0], &ah = p.axes[1], &aw = p.axes[2];
  const Taps td = taps_at(ad, static_cast<int>(d)), th = taps_at(ah, static_cast<int>(h)),
             tw = taps_at(aw, static_cast<int>(w));
  const Span of_d = live_taps(ad, td), of_h = live_taps(ah, th), of_w = live_taps(aw, tw);
  const int64_t to_next = tw.apart * tap_step + aw.step;
  float sum = p.bias.data == nullptr ? 0.0f : load_any(p.bias.dtype, p.bias.data, c * p.bias.stride);
  for (int jd = of_d.begin; jd < of_d.end; ++jd)
    for (int jh = of_h.begin; jh < of_h.end; ++jh) {
      const int64_t tap =
          (int64_t{td.first + jd * td.apart} * ah.kernel + th.first + jh * th.apart) * aw.kernel + tw.first +
          of_w.begin * tw.apart;
      const int64_t place =
          (int64_t{td.base + jd * ad.step} * ah.source + th.base + jh * ah.step) * aw.source + tw.base +
          of_w.begin * aw.step;
      const float* from = columns + tap * tap_step + place;
#pragma unroll 4
      for (int jw = of_w.begin; jw < of_w.end; ++jw, from += to_next) sum += *from;
    }
  const int64_t* s = p.x.strides;
  store_any(p.x.dtype, p.x.data, n * s[0] + c * s[1] + d * s[2] + h * s[3] + w * s[4], sum);
}

}  // namespace

void add_columns(const Conv& conv, const float* columns, Stream stream) {
  Columns p;
  p.x = conv.x;
  p.bias = conv.bias;
  p.plane = 1;
  int64_t taps = 1, places = 1;
  for (int a = 0; a < 3; ++a) {
    const Axis& axis = conv.axes[a];
    p.sizes[a] = FastDiv(axis.x);
    p.axes[a] = window_axis(axis, false, 0, 0);
    p.plane *= axis.y;
    taps *= axis.kernel;
    places *= axis.x;
  }
  p.channels = FastDiv(conv.x_channels);
  p.image = taps * conv.x_channels * p.plane;
  p.total = static_cast<uint32_t>(conv.batch * conv.x_channels * places);
  start(columns_kernel, (p.total + kThreads - 1) / kThreads, kThreads, 0, stream, p, columns);
}

}  // namespace retrograd::kernels::cuda
