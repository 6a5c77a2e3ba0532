// SPDX-License-Identifier: Apache-2.0
// x[n,i,q] = Σ_{o,t} y[n,o,output_reading(q,t)] · w[o,i,t] of small images.
//
// A block takes an image of a group, up to eight channels of x and some places of it: y and these weights are
// in shared memory as FP32. A thread makes eight channels of one pixel: 8 products for one value of y and two
// 16-byte reads of weights that the whole warp shares. Taps that read nothing are left out, so what is not
// finite goes where it belongs.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/small_images.cuh"
#include "kernels/cuda/small_images.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = kSmallThreads;

__global__ void __launch_bounds__(kThreads)
    grad_input_kernel(const __grid_constant__ Conv conv, const __grid_constant__ SmallSizes s) {
  extern __shared__ __align__(16) float shared[];
  float* const weights = shared;  // [tap][o][kSmallChannels]
  float* const of_y = shared + s.taps * s.y_channels * kSmallChannels;
  const int64_t image = blockIdx.x;
  const int chunk = static_cast<int>(blockIdx.y) % s.chunks, group = static_cast<int>(blockIdx.y) / s.chunks;
  const int channel0 = chunk * kSmallChannels, channels = min(kSmallChannels, s.x_channels - channel0);
  const int64_t o0 = int64_t{group} * s.y_channels;
  if (channels < kSmallChannels) {
    for (int i = static_cast<int>(threadIdx.x); i < s.taps * s.y_channels; i += kThreads)
      for (int c = channels; c < kSmallChannels; ++c) weights[i * kSmallChannels + c] = 0;
  }
  stage_run<12>(
      conv.w, conv.rounding, s.of_w, s.taps * s.y_channels * channels,
      [&](int pair) {
        return (o0 + pair / channels) * conv.w.strides[0] + (channel0 + pair % channels) * conv.w.strides[1];
      },
      [&](int pair, int tap, float value) {
        weights[(tap * s.y_channels + pair / channels) * kSmallChannels + pair % channels] = value;
      });
  stage_run<8>(
      conv.y, conv.rounding, s.of_y, s.y_channels * s.y_places,
      [&](int o) { return image * conv.y.strides[0] + (o0 + o) * conv.y.strides[1]; },
      [&](int o, int at, float value) { of_y[o * s.y_places + at] = value; });
  __syncthreads();

  const int place = static_cast<int>(blockIdx.z) * kThreads + static_cast<int>(threadIdx.x);
  if (place >= s.x_places) return;
  const int qw = place % s.w.x, qh = place / s.w.x % s.h.x, qd = place / s.w.x / s.h.x;
  float sums[kSmallChannels] = {};
  for (int kd = 0; kd < s.d.kernel; ++kd) {
    const int od = small_output_reading(s.d, qd, kd);
    if (od < 0) continue;
    for (int kh = 0; kh < s.h.kernel; ++kh) {
      const int oh = small_output_reading(s.h, qh, kh);
      if (oh < 0) continue;
      for (int kw = 0; kw < s.w.kernel; ++kw) {
        const int ow = small_output_reading(s.w, qw, kw);
        if (ow < 0) continue;
        const float* from = of_y + (od * s.h.y + oh) * s.w.y + ow;
        const float* taps =
            weights + ((kd * s.h.kernel + kh) * s.w.kernel + kw) * s.y_channels * kSmallChannels;
#pragma unroll 4
        for (int o = 0; o < s.y_channels; ++o) {
          const float value = from[o * s.y_places];
          const auto* four = reinterpret_cast<const float4*>(taps + o * kSmallChannels);
          const float4 a = four[0], b = four[1];
          sums[0] = fmaf(value, a.x, sums[0]), sums[1] = fmaf(value, a.y, sums[1]);
          sums[2] = fmaf(value, a.z, sums[2]), sums[3] = fmaf(value, a.w, sums[3]);
          sums[4] = fmaf(value, b.x, sums[4]), sums[5] = fmaf(value, b.y, sums[5]);
          sums[6] = fmaf(value, b.z, sums[6]), sums[7] = fmaf(value, b.w, sums[7]);
        }
      }
    }
  }
  const int64_t offset = offset_of(conv.x, {image, int64_t{group} * s.x_channels + channel0, qd, qh, qw});
#pragma unroll
  for (int c = 0; c < kSmallChannels; ++c)
    if (c < channels) store_any(conv.x.dtype, conv.x.data, offset + c * conv.x.strides[1], sums[c]);
}

}  // namespace

void small_grad_input(const Conv& conv, Stream stream) {
  const SmallSizes s = small_sizes(conv, conv.x_channels);
  start(grad_input_kernel, {conv.batch, s.chunks * conv.groups, (s.x_places + kThreads - 1) / kThreads},
        kThreads, small_grad_input_bytes(conv), stream, conv, s);
}

}  // namespace retrograd::kernels::cuda
