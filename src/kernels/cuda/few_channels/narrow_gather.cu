// SPDX-License-Identifier: Apache-2.0
// x[n, c, q] = Σ_{o, t} y[n, o, (q + P − t·dilation)/S] · w[o, c, t] for the few c of a group.
//
// A thread makes all channels of one place: each y it reads, neighbours along a row, serves up to four
// products, and the weights lie in shared memory as [o][tap][4]. A matrix product's tile would be empty but
// for these few columns.
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/few_channels/narrow_gather.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWide = static_cast<int>(kNarrowChannels);

struct Narrow {
  int x_channels, y_channels, groups;
  int kh, kw, dilation_h, dilation_w, stride_h, stride_w, pad_h, pad_w;
  int xh, xw, yh, yw;
  uint32_t places;  // of an image
  FastDiv by_row;
  int64_t w_o, w_i, w_h, w_w;
};

__global__ void __launch_bounds__(kThreads)
    narrow_kernel(Narrow p, const float* y, const float* w, float* x) {
  extern __shared__ __align__(16) float weights[];  // [o][tap][kWide]
  const int group = static_cast<int>(blockIdx.y);
  const int64_t image = blockIdx.z;
  const int taps = p.kh * p.kw;
  for (int i = static_cast<int>(threadIdx.x); i < p.y_channels * taps * kWide; i += kThreads) {
    const int c = i % kWide, tap = i / kWide % taps, o = i / kWide / taps;
    weights[i] = c < p.x_channels ? w[(int64_t{group} * p.y_channels + o) * p.w_o + c * p.w_i +
                                      tap / p.kw * p.w_h + tap % p.kw * p.w_w]
                                  : 0.0f;
  }
  __syncthreads();
  const int64_t y_plane = int64_t{p.yh} * p.yw, x_plane = int64_t{p.xh} * p.xw;
  const float* source = y + (image * p.groups + group) * p.y_channels * y_plane;
  float* const out = x + (image * p.groups + group) * p.x_channels * x_plane;
  for (uint32_t place = blockIdx.x * kThreads + threadIdx.x; place < p.places;
       place += gridDim.x * kThreads) {
    uint32_t column = place;
    const int row = static_cast<int>(p.by_row.split(column));
    float sums[kWide] = {};
    // With dilation 1 the taps that match lie a stride apart: every lane has work at every step.
    const int from_h = row + p.pad_h, from_w = static_cast<int>(column) + p.pad_w;
    const int step_h = p.dilation_h == 1 ? p.stride_h : 1, step_w = p.dilation_w == 1 ? p.stride_w : 1;
    const int first_h = step_h == 1 ? 0 : ((from_h % step_h) + step_h) % step_h;
    const int first_w = step_w == 1 ? 0 : ((from_w % step_w) + step_w) % step_w;
    for (int kh = first_h; kh < p.kh; kh += step_h) {
      const int scaled_h = from_h - kh * p.dilation_h;
      if (scaled_h < 0 || scaled_h % p.stride_h != 0 || scaled_h / p.stride_h >= p.yh) continue;
      for (int kw = first_w; kw < p.kw; kw += step_w) {
        const int scaled_w = from_w - kw * p.dilation_w;
        if (scaled_w < 0 || scaled_w % p.stride_w != 0 || scaled_w / p.stride_w >= p.yw) continue;
        const float* at = source + int64_t{scaled_h / p.stride_h} * p.yw + scaled_w / p.stride_w;
        const auto* four = reinterpret_cast<const float4*>(weights) + kh * p.kw + kw;
        float parts[kWide] = {};
#pragma unroll 8
        for (int o = 0; o < p.y_channels; ++o) {
          const float value = at[o * y_plane];
          const float4 f = four[o * taps];
          parts[0] = fmaf(value, f.x, parts[0]);
          parts[1] = fmaf(value, f.y, parts[1]);
          parts[2] = fmaf(value, f.z, parts[2]);
          parts[3] = fmaf(value, f.w, parts[3]);
        }
#pragma unroll
        for (int c = 0; c < kWide; ++c) sums[c] += parts[c];
      }
    }
#pragma unroll
    for (int c = 0; c < kWide; ++c)
      if (c < p.x_channels) out[c * x_plane + place] = sums[c];
  }
}

}  // namespace

void narrow_grad_input(const Conv& conv, Stream stream) {
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  Narrow p;
  p.x_channels = static_cast<int>(conv.x_channels);
  p.y_channels = static_cast<int>(conv.y_channels);
  p.groups = static_cast<int>(conv.groups);
  p.kh = static_cast<int>(h.kernel), p.kw = static_cast<int>(w.kernel);
  p.dilation_h = static_cast<int>(h.dilation), p.dilation_w = static_cast<int>(w.dilation);
  p.stride_h = static_cast<int>(h.stride), p.stride_w = static_cast<int>(w.stride);
  p.pad_h = static_cast<int>(h.pad), p.pad_w = static_cast<int>(w.pad);
  p.xh = static_cast<int>(h.x), p.xw = static_cast<int>(w.x);
  p.yh = static_cast<int>(h.y), p.yw = static_cast<int>(w.y);
  p.places = static_cast<uint32_t>(h.x * w.x);
  p.by_row = FastDiv(w.x);
  p.w_o = conv.w.strides[0], p.w_i = conv.w.strides[1], p.w_h = conv.w.strides[3], p.w_w = conv.w.strides[4];
  const size_t bytes = narrow_bytes(conv);
  // A block reads the weights once: as few blocks as fill the GPU eight times.
  const int64_t tiles = (p.places + kThreads - 1) / kThreads,
                wanted = 8 * 132 / (conv.groups * conv.batch) + 1;
  const dim3 grid(static_cast<unsigned>(tiles < wanted ? tiles : wanted), static_cast<unsigned>(conv.groups),
                  static_cast<unsigned>(conv.batch));
  cudaFuncSetAttribute(narrow_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  narrow_kernel<<<grid, kThreads, bytes, stream>>>(p, static_cast<const float*>(conv.y.data),
                                                   static_cast<const float*>(conv.w.data),
                                                   static_cast<float*>(conv.x.data));
}

}  // namespace retrograd::kernels::cuda
