// SPDX-License-Identifier: Apache-2.0
// w[o,i,t] = Σ_{n,p} x[n,i,position(p,t)] · y[n,o,p] of small images.
//
// A block takes some images of a group and eight channels of y, one image after another in shared memory as
// FP32. A thread takes one x channel and tap: 8 products for one value of x and two 16-byte reads of y that
// the whole warp shares. Pixels that read nothing are left out. Parts are added by a second kernel, in order.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/small_images.cuh"
#include "kernels/cuda/small_images.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = kSmallThreads;

__global__ void __launch_bounds__(kThreads)
    grad_weight_kernel(const __grid_constant__ Conv conv, const __grid_constant__ SmallSizes s, int images,
                       float* parts) {
  extern __shared__ __align__(16) float shared[];
  float* const of_y = shared;  // [place][kSmallChannels]
  float* const of_x = shared + s.y_places * kSmallChannels;
  const int chunk = static_cast<int>(blockIdx.y) % s.chunks, group = static_cast<int>(blockIdx.y) / s.chunks;
  const int channel0 = chunk * kSmallChannels, channels = min(kSmallChannels, s.y_channels - channel0);
  const int64_t o0 = int64_t{group} * s.y_channels + channel0;
  if (channels < kSmallChannels) {
    for (int i = static_cast<int>(threadIdx.x); i < s.y_places; i += kThreads)
      for (int o = channels; o < kSmallChannels; ++o) of_y[i * kSmallChannels + o] = 0;
  }
  const int number = static_cast<int>(blockIdx.z) * kThreads + static_cast<int>(threadIdx.x);
  const bool works = number < s.x_channels * s.taps;
  const int tap = number % s.taps, channel = number / s.taps;
  const int kw = tap % s.w.kernel, kh = tap / s.w.kernel % s.h.kernel, kd = tap / s.w.kernel / s.h.kernel;
  float sums[kSmallChannels] = {};
  const int64_t first = blockIdx.x * int64_t{images}, last = min(first + images, conv.batch);
  for (int64_t image = first; image < last; ++image) {
    __syncthreads();
    stage_run<4>(
        conv.y, conv.rounding, s.of_y, channels * s.y_places,
        [&](int o) { return image * conv.y.strides[0] + (o0 + o) * conv.y.strides[1]; },
        [&](int o, int at, float value) { of_y[at * kSmallChannels + o] = value; });
    stage_run<8>(
        conv.x, conv.rounding, s.of_x, s.x_channels * s.x_places,
        [&](int c) {
          return image * conv.x.strides[0] + (int64_t{group} * s.x_channels + c) * conv.x.strides[1];
        },
        [&](int c, int at, float value) { of_x[c * s.x_places + at] = value; });
    __syncthreads();
    if (!works) continue;
    for (int od = 0; od < s.d.y; ++od) {
      const int qd = od * s.d.stride - s.d.pad + kd * s.d.dilation;
      if (static_cast<unsigned>(qd) >= static_cast<unsigned>(s.d.x)) continue;
      for (int oh = 0; oh < s.h.y; ++oh) {
        const int qh = oh * s.h.stride - s.h.pad + kh * s.h.dilation;
        if (static_cast<unsigned>(qh) >= static_cast<unsigned>(s.h.x)) continue;
        const float* row = of_x + channel * s.x_places + (qd * s.h.x + qh) * s.w.x;
        const float* of_row = of_y + (od * s.h.y + oh) * s.w.y * kSmallChannels;
        int qw = kw * s.w.dilation - s.w.pad;
#pragma unroll 4
        for (int ow = 0; ow < s.w.y; ++ow, qw += s.w.stride) {
          if (static_cast<unsigned>(qw) >= static_cast<unsigned>(s.w.x)) continue;
          const float value = row[qw];
          const auto* four = reinterpret_cast<const float4*>(of_row + ow * kSmallChannels);
          const float4 a = four[0], b = four[1];
          sums[0] = fmaf(value, a.x, sums[0]), sums[1] = fmaf(value, a.y, sums[1]);
          sums[2] = fmaf(value, a.z, sums[2]), sums[3] = fmaf(value, a.w, sums[3]);
          sums[4] = fmaf(value, b.x, sums[4]), sums[5] = fmaf(value, b.y, sums[5]);
          sums[6] = fmaf(value, b.z, sums[6]), sums[7] = fmaf(value, b.w, sums[7]);
        }
      }
    }
  }
  if (!works) return;
#pragma unroll
  for (int c = 0; c < kSmallChannels; ++c) {
    if (c >= channels) break;
    const int64_t o = o0 + c;
    if (parts == nullptr) {
      store_any(conv.w.dtype, conv.w.data, offset_of(conv.w, {o, channel, kd, kh, kw}), sums[c]);
    } else {
      const int64_t weights = conv.groups * s.y_channels * s.x_channels * s.taps;
      parts[blockIdx.x * weights + (o * s.x_channels + channel) * s.taps + tap] = sums[c];
    }
  }
}

__global__ void __launch_bounds__(256)
    add_kernel(const __grid_constant__ Conv conv, const __grid_constant__ SmallSizes s, int weights,
               int parts, const float* sums) {
  __shared__ float shared[8][32];
  const int i = static_cast<int>(blockIdx.x) * 32 + static_cast<int>(threadIdx.x);
  float sum = 0;
  if (i < weights) {
#pragma unroll 8
    for (int part = static_cast<int>(threadIdx.y); part < parts; part += 8)
      sum += sums[static_cast<int64_t>(part) * weights + i];
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || i >= weights) return;
  for (int k = 1; k < 8; ++k) sum += shared[k][threadIdx.x];
  const int kw = i % s.w.kernel, kh = i / s.w.kernel % s.h.kernel,
            kd = i / s.w.kernel / s.h.kernel % s.d.kernel;
  const int channel = i / s.taps % s.x_channels, o = i / s.taps / s.x_channels;
  store_any(conv.w.dtype, conv.w.data, offset_of(conv.w, {o, channel, kd, kh, kw}), sum);
}

}  // namespace

void small_grad_weight(const Conv& conv, float* workspace, Stream stream) {
  const SmallSizes s = small_sizes(conv, conv.y_channels);
  const int64_t parts = small_parts(conv), weights = conv.groups * s.y_channels * s.x_channels * s.taps;
  start(grad_weight_kernel,
        {parts, s.chunks * conv.groups, (s.x_channels * s.taps + kThreads - 1) / kThreads}, kThreads,
        small_grad_weight_bytes(conv), stream, conv, s, static_cast<int>((conv.batch + parts - 1) / parts),
        parts == 1 ? nullptr : workspace);
  if (parts == 1) return;
  start(add_kernel, (weights + 31) / 32, {32, 8}, 0, stream, conv, s, static_cast<int>(weights),
        static_cast<int>(parts), workspace);
}

}  // namespace retrograd::kernels::cuda
