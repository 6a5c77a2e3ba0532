// SPDX-License-Identifier: Apache-2.0
// x[n, c, q] = bias[c] + Σ_t columns[n, t, c, output_reading(q, t)]
//
// A thread an element of x, neighbouring lanes neighbouring places: what they read of a tap lies side by
// side. Taps are added in their order. Bytes: the columns once, x once.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/layout/col2im.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;

struct Columns {
  Tensor x;
  ChannelBias bias;
  FastDiv sizes[3], channels;  // of x
  int kernel[3], stride[3], dilation[3], pad[3], outputs[3];
  int64_t plane, image;  // elements of a column's places, and of an image's columns
  uint32_t total;
};

// The output whose tap reads `at`, of an axis; −1: none.
__device__ int output_of(const Columns& p, int axis, int at, int tap) {
  const int scaled = at + p.pad[axis] - tap * p.dilation[axis];
  if (scaled < 0) return -1;
  const int output = p.stride[axis] == 1 ? scaled : scaled / p.stride[axis];
  return output * p.stride[axis] == scaled && output < p.outputs[axis] ? output : -1;
}

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
  float sum = p.bias.data == nullptr ? 0.0f : load_any(p.bias.dtype, p.bias.data, c * p.bias.stride);
  for (int td = 0; td < p.kernel[0]; ++td) {
    const int od = output_of(p, 0, static_cast<int>(d), td);
    for (int th = 0; th < p.kernel[1]; ++th) {
      const int oh = output_of(p, 1, static_cast<int>(h), th);
      const bool live = od >= 0 && oh >= 0;
      const float* line = columns + (live ? (int64_t{od} * p.outputs[1] + oh) * p.outputs[2] : 0);
#pragma unroll 4
      for (int tw = 0; tw < p.kernel[2]; ++tw, line += tap_step) {
        const int ow = live ? output_of(p, 2, static_cast<int>(w), tw) : -1;
        if (ow >= 0) sum += line[ow];
      }
      columns += p.kernel[2] * tap_step;
    }
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
    p.kernel[a] = static_cast<int>(axis.kernel);
    p.stride[a] = static_cast<int>(axis.stride);
    p.dilation[a] = static_cast<int>(axis.dilation);
    p.pad[a] = static_cast<int>(axis.pad);
    p.outputs[a] = static_cast<int>(axis.y);
    p.plane *= axis.y;
    taps *= axis.kernel;
    places *= axis.x;
  }
  p.channels = FastDiv(conv.x_channels);
  p.image = taps * conv.x_channels * p.plane;
  p.total = static_cast<uint32_t>(conv.batch * conv.x_channels * places);
  columns_kernel<<<(p.total + kThreads - 1) / kThreads, kThreads, 0, stream>>>(p, columns);
}

}  // namespace retrograd::kernels::cuda
