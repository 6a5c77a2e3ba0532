// SPDX-License-Identifier: Apache-2.0
// One x channel, K = 10 taps, stride S = 5: a value of y meets ten products and is read once, by the thread
// that has its place, neighbouring threads neighbouring places. Bytes of y are the limit.
//
//   grad_input   A_t(i) = Σ_o y[n, o, i] · w[o, t];  x[n, 5i + r − P] = A_r(i) + A_{r+5}(i − 1)
//     A warp takes two runs of 32 places and a part of the channels; the warps of a block add up in shared
//     memory, in order.
//   grad_weight  w[o, t] = Σ_{n,i} y[n, o, i] · x[n, 5i + t − P], and Σ y on the side
//     A warp takes four channels; x lies in shared memory, read with stride 5, in 32 different banks. The
//     threads of a warp add up at the end. Parts go to the workspace.
#include <algorithm>

#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/few_channels/narrow_finish.h"
#include "kernels/cuda/few_channels/waveform.h"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kTaps = 10, kStride = 5;
constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kRuns = 2;               // of 32 places that a warp takes in grad_input
constexpr int kSpan = kRuns * 32 - 1;  // places of a block that it completes
constexpr int kMine = 4;               // channels of a warp in grad_weight
constexpr int kTile = 256;             // places whose x is in shared memory
constexpr int kPartPlaces = 1600;      // of a part

struct Wave {
  int channels, x, y, pad;
};

template <class T>
__global__ void __launch_bounds__(kThreads, 4)
    grad_input_kernel(const __grid_constant__ Wave p, const T* y, Tensor w, T* x) {
  extern __shared__ __align__(16) float shared[];  // weights [channel][12], then sums [warp][tap][place]
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  for (int i = static_cast<int>(threadIdx.x); i < p.channels * kTaps; i += kThreads)
    shared[i / kTaps * 12 + i % kTaps] =
        to_float(static_cast<const T*>(w.data)[i / kTaps * w.strides[0] + i % kTaps * w.strides[4]]);
  __syncthreads();
  // The block's first place is computed for the second of its neighbours only.
  const int first = static_cast<int>(blockIdx.x) * kSpan - 1;
  const T* const image = y + int64_t{blockIdx.y} * p.channels * p.y;
  float sums[kRuns][kTaps] = {};
#pragma unroll 4
  for (int o = warp; o < p.channels; o += kWarps) {
    float values[kRuns];
#pragma unroll
    for (int k = 0; k < kRuns; ++k) {
      const int place = first + k * 32 + lane;
      values[k] = static_cast<unsigned>(place) < static_cast<unsigned>(p.y)
                      ? to_float(image[int64_t{o} * p.y + place])
                      : 0.0f;
    }
    float taps[12];
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      const float4 four = reinterpret_cast<const float4*>(shared + o * 12)[i];
      taps[4 * i] = four.x, taps[4 * i + 1] = four.y, taps[4 * i + 2] = four.z, taps[4 * i + 3] = four.w;
    }
#pragma unroll
    for (int k = 0; k < kRuns; ++k)
#pragma unroll
      for (int t = 0; t < kTaps; ++t) sums[k][t] = fmaf(values[k], taps[t], sums[k][t]);
  }
  __syncthreads();
  constexpr int kPlaces = kRuns * 32;
#pragma unroll
  for (int k = 0; k < kRuns; ++k)
#pragma unroll
    for (int t = 0; t < kTaps; ++t) shared[(warp * kTaps + t) * kPlaces + k * 32 + lane] = sums[k][t];
  __syncthreads();
  const auto total = [&](int tap, int place) {
    // Beyond y a zero has been multiplied, maybe with an infinity.
    if (static_cast<unsigned>(first + place) >= static_cast<unsigned>(p.y)) return 0.0f;
    float sum = shared[tap * kPlaces + place];
#pragma unroll
    for (int s = 1; s < kWarps; ++s) sum += shared[(s * kTaps + tap) * kPlaces + place];
    return sum;
  };
  for (int i = static_cast<int>(threadIdx.x); i < kSpan * kStride; i += kThreads) {
    const int place = i / kStride + 1, r = i % kStride, q = (first + place) * kStride + r - p.pad;
    if (q >= 0 && q < p.x)
      x[int64_t{blockIdx.y} * p.x + q] = from_float<T>(total(r, place) + total(r + kStride, place - 1));
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads, 2)
    grad_weight_kernel(const __grid_constant__ Wave p, const T* x, const T* y, int ranges, float* parts) {
  __shared__ float of_x[kTile * kStride + kTaps];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int part = static_cast<int>(blockIdx.y), n = part / ranges, begin = part % ranges * kPartPlaces,
            end = min(begin + kPartPlaces, p.y);
  const int o0 = (static_cast<int>(blockIdx.x) * kWarps + warp) * kMine;
  const T* const wave = x + int64_t{n} * p.x;
  const T* rows[kMine];
#pragma unroll
  for (int m = 0; m < kMine; ++m) rows[m] = y + (int64_t{n} * p.channels + min(o0 + m, p.channels - 1)) * p.y;
  float sums[kMine][kTaps] = {};
  for (int tile = begin; tile < end; tile += kTile) {
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < kTile * kStride + kTaps - kStride; i += kThreads) {
      const int q = tile * kStride - p.pad + i;
      of_x[i] = static_cast<unsigned>(q) < static_cast<unsigned>(p.x) ? to_float(wave[q]) : 0.0f;
    }
    __syncthreads();
#pragma unroll 4
    for (int run = 0; run < kTile; run += 32) {
      const int place = tile + run + lane;
      float values[kMine];
#pragma unroll
      for (int m = 0; m < kMine; ++m) values[m] = place < end ? to_float(rows[m][place]) : 0.0f;
      const float* const window = of_x + (run + lane) * kStride;
#pragma unroll
      for (int t = 0; t < kTaps; ++t) {
        const float value = window[t];
#pragma unroll
        for (int m = 0; m < kMine; ++m) sums[m][t] = fmaf(values[m], value, sums[m][t]);
      }
    }
  }
#pragma unroll
  for (int m = 0; m < kMine; ++m) {
    float mine = 0;
#pragma unroll
    for (int t = 0; t < kTaps; ++t) {
      const float sum = warp_sum(sums[m][t]);
      if (lane == t) mine = sum;
    }
    if (lane < kTaps && o0 + m < p.channels)
      parts[(int64_t{part} * p.channels + o0 + m) * kTaps + lane] = mine;
  }
}

int ceil_of(int64_t a, int64_t b) { return static_cast<int>((a + b - 1) / b); }

Wave wave_of(const Conv& conv) {
  const Axis& w = conv.axes[2];
  return {static_cast<int>(conv.y_channels), static_cast<int>(w.x), static_cast<int>(w.y),
          static_cast<int>(w.pad)};
}

}  // namespace

bool has_waveform(const Conv& conv) {
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  return conv.groups == 1 && conv.x_channels == 1 && conv.y_channels <= 2048 && h.x == 1 && h.y == 1 &&
         h.kernel == 1 && h.pad == 0 && w.kernel == kTaps && w.stride == kStride && w.dilation == 1 &&
         w.pad >= 0 && w.x < 1 << 28 && conv.batch <= 65535 && waveform_parts(conv) <= 65535;
}

void waveform_grad_input(const Conv& conv, Stream stream) {
  const Wave p = wave_of(conv);
  // Places whose first five taps reach x; what lies behind the last window is written too.
  const int places = ceil_of(int64_t{p.x} + p.pad, kStride);
  const dim3 grid(static_cast<unsigned>(ceil_of(places, kSpan)), static_cast<unsigned>(conv.batch));
  const int bytes = std::max(p.channels * 12, kWarps * kTaps * kRuns * 32) * 4;
  with_type(conv.x.dtype, [&](auto type) {
    using T = decltype(type);
    cudaFuncSetAttribute(grad_input_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    grad_input_kernel<T><<<grid, kThreads, static_cast<size_t>(bytes), stream>>>(
        p, static_cast<const T*>(conv.y.data), conv.w, static_cast<T*>(conv.x.data));
  });
}

int64_t waveform_parts(const Conv& conv) { return conv.batch * ceil_of(conv.axes[2].y, kPartPlaces); }

void waveform_grad_weight(const Conv& conv, float* workspace, Stream stream) {
  const Wave p = wave_of(conv);
  const auto parts = static_cast<int>(waveform_parts(conv));
  const dim3 grid(static_cast<unsigned>(ceil_of(p.channels, kWarps * kMine)), static_cast<unsigned>(parts));
  with_type(conv.x.dtype, [&](auto type) {
    using T = decltype(type);
    grad_weight_kernel<T><<<grid, kThreads, 0, stream>>>(p, static_cast<const T*>(conv.x.data),
                                                         static_cast<const T*>(conv.y.data),
                                                         ceil_of(p.y, kPartPlaces), workspace);
  });
  add_parts(conv, parts, workspace, stream);
}

}  // namespace retrograd::kernels::cuda
