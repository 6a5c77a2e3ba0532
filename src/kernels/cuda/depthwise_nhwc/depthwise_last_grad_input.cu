// SPDX-License-Identifier: Apache-2.0
// x[q] = Σ_k y[(q + P − k)/S] · w[k] over the taps k for which the division leaves nothing, of each channel.
//
// A thread keeps the weights of a few channels in registers and takes tile after tile of kRows·S rows and
// kCols·S columns of x. Of every row of y it reads the values that the tile needs once and adds them to all
// results that need them; every index is known to the compiler, so no product is spent on a tap that does not
// match. Bytes: y once, x once. Products: 9, 25 or 49 a result and pass; at 60 TFLOP/s 7x7 in 16 bits takes
// 1.7 times as long as its bytes.
//
// Values beyond the edge count as zero. Zero times a weight that is not finite would be NaN, so where a block
// finds such a weight, results that are NaN are taken from the formula in tiles at an edge.
#include "kernels/cuda/depthwise_nhwc/depthwise_boxes.h"
#include "kernels/cuda/depthwise_nhwc/depthwise_last.cuh"
#include "kernels/cuda/depthwise_nhwc/depthwise_last.h"
#include "kernels/cuda/repair.cuh"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;

__host__ __device__ constexpr int floored(int a, int b) { return a / b - (a % b < 0 ? 1 : 0); }

template <int kK, int kS>
struct Reach {  // of a tile: which y its x need, counted from the tile's start divided by S
  static constexpr int kP = kK / 2;
  __host__ __device__ static constexpr int first() { return -floored(kK - 1 - kP, kS); }
  __host__ __device__ static constexpr int last(int size) { return floored(size - 1 + kP, kS); }
};

// The weights of the block's channels as [tap][channel]; whether all are finite.
template <class T, int kTaps, int kK>
__device__ bool load_weights(const Tensor& w, int first, int count, int pitch, float* shared) {
  bool finite = true;
  for (int i = static_cast<int>(threadIdx.x); i < count * kTaps; i += static_cast<int>(blockDim.x)) {
    const int channel = i / kTaps, tap = i % kTaps;
    const float value = to_float(static_cast<const T*>(
        w.data)[(first + channel) * w.strides[0] + tap / kK * w.strides[3] + tap % kK * w.strides[4]]);
    shared[tap * pitch + channel] = value;
    finite = finite && isfinite(value);
  }
  return __syncthreads_and(finite);
}

template <class T, int kH, int kW, int kV>
__device__ __noinline__ void repair_tile(const Conv& conv, const LastBlocks& p, int64_t image, int channel,
                                         int h0, int w0) {
  for (int h = h0; h < min(h0 + kH, p.xh); ++h)
    for (int w = w0; w < min(w0 + kW, p.xw); ++w)
      for (int c = channel; c < channel + kV; ++c) {
        const Index5 at{image, c, 0, h, w};
        T& result = static_cast<T*>(conv.x.data)[offset_of(conv.x, at)];
        if (isnan(to_float(result)) && !begins_with_nan(conv, Result::kGradInput, at))
          result = from_float<T>(grad_input_sum(conv, at));
      }
}

template <class T, int kK, int kS, int kRows, int kCols, int kV>
__global__ void __launch_bounds__(kThreads)
    grad_input_kernel(const __grid_constant__ Conv conv, const __grid_constant__ LastBlocks p, const T* y,
                      T* x) {
  using R = Reach<kK, kS>;
  constexpr int kP = R::kP, kH = kRows * kS, kW = kCols * kS, kTaps = kK * kK;
  constexpr int kFirst = R::first(), kLastRow = R::last(kH), kLastCol = R::last(kW);
  extern __shared__ float shared[];
  const int first = static_cast<int>(blockIdx.y) * p.lanes * kV, pitch = p.lanes * kV;
  const bool finite =
      load_weights<T, kTaps, kK>(conv.w, first, min(pitch, p.channels - first), pitch, shared);
  const int lane = static_cast<int>(threadIdx.x) % p.lanes, strip = static_cast<int>(threadIdx.x) / p.lanes;
  const int channel = first + lane * kV;
  if (channel >= p.channels) return;
  float w[kTaps][kV];
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap)
#pragma unroll
    for (int v = 0; v < kV; ++v) w[tap][v] = shared[tap * pitch + lane * kV + v];

  for (uint32_t tile = blockIdx.x * p.strips + strip; tile < p.tiles; tile += gridDim.x * p.strips) {
    uint32_t column = tile;
    uint32_t band = p.columns.split(column);
    const int64_t image = p.bands.split(band);
    const int h0 = static_cast<int>(band) * kH, w0 = static_cast<int>(column) * kW;
    const int oh = h0 / kS, ow = w0 / kS;
    const T* source = y + image * p.yh * p.yw * p.channels + channel;
    float sums[kH][kW][kV] = {};
#pragma unroll
    for (int r = kFirst; r <= kLastRow; ++r) {
      const bool live = static_cast<unsigned>(oh + r) < static_cast<unsigned>(p.yh);
      float row[kLastCol - kFirst + 1][kV];
#pragma unroll
      for (int c = kFirst; c <= kLastCol; ++c) {
        Pack<T, kV> pack{};
        if (live && static_cast<unsigned>(ow + c) < static_cast<unsigned>(p.yw))
          pack = *reinterpret_cast<const Pack<T, kV>*>(source + ((oh + r) * p.yw + ow + c) * p.channels);
#pragma unroll
        for (int v = 0; v < kV; ++v) row[c - kFirst][v] = to_float(pack.values[v]);
      }
#pragma unroll
      for (int a = 0; a < kH; ++a) {
        const int kh = a + kP - kS * r;
        if (kh < 0 || kh >= kK) continue;
#pragma unroll
        for (int b = 0; b < kW; ++b)
#pragma unroll
          for (int c = kFirst; c <= kLastCol; ++c) {
            const int kw = b + kP - kS * c;
            if (kw < 0 || kw >= kK) continue;
#pragma unroll
            for (int v = 0; v < kV; ++v)
              sums[a][b][v] = fmaf(row[c - kFirst][v], w[kh * kK + kw][v], sums[a][b][v]);
          }
      }
    }
    T* target = x + image * p.xh * p.xw * p.channels + channel;
#pragma unroll
    for (int a = 0; a < kH; ++a)
#pragma unroll
      for (int b = 0; b < kW; ++b)
        if (h0 + a < p.xh && w0 + b < p.xw)
          store_pack<T, kV>(target + ((h0 + a) * p.xw + w0 + b) * p.channels, sums[a][b]);
  }
  if (finite) return;
  for (uint32_t tile = blockIdx.x * p.strips + strip; tile < p.tiles; tile += gridDim.x * p.strips) {
    uint32_t column = tile;
    uint32_t band = p.columns.split(column);
    const int64_t image = p.bands.split(band);
    const int oh = static_cast<int>(band) * kRows, ow = static_cast<int>(column) * kCols;
    if (oh + kFirst < 0 || oh + kLastRow >= p.yh || ow + kFirst < 0 || ow + kLastCol >= p.yw)
      repair_tile<T, kH, kW, kV>(conv, p, image, channel, oh * kS, ow * kS);
  }
}

template <class T, int kK, int kS, int kRows, int kCols, int kV>
void launch(const Conv& conv, int64_t most_blocks, Stream stream) {
  constexpr int kH = kRows * kS, kW = kCols * kS;
  const LastBlocks p =
      last_blocks(conv, kThreads, kV, (conv.axes[2].x + kW - 1) / kW, (conv.axes[1].x + kH - 1) / kH);
  int64_t blocks = (p.tiles + p.strips - 1) / p.strips;
  if (blocks > most_blocks / p.channel_blocks) blocks = most_blocks / p.channel_blocks + 1;
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(p.channel_blocks));
  const size_t bytes = static_cast<size_t>(p.lanes) * kV * kK * kK * sizeof(float);
  grad_input_kernel<T, kK, kS, kRows, kCols, kV>
      <<<grid, static_cast<unsigned>(p.lanes * p.strips), bytes, stream>>>(
          conv, p, static_cast<const T*>(conv.y.data), static_cast<T*>(conv.x.data));
}

template <class T, int kK>
void launch_stride(const Conv& conv, Stream stream) {
  // Many blocks load weights many times; few leave multiprocessors idle at the end.
  constexpr int64_t kBlocks = kK == 5 ? 1056 : 2112;
  const bool fours = has_vectors(conv, 4);
  if (conv.axes[2].stride == 2)
    return fours ? launch<T, kK, 2, 2, 2, 4>(conv, kBlocks, stream)
                 : launch<T, kK, 2, 2, 2, 2>(conv, kBlocks, stream);
  if constexpr (kK == 3) {
    fours ? launch<T, kK, 1, 8, 2, 4>(conv, kBlocks, stream)
          : launch<T, kK, 1, 8, 4, 2>(conv, kBlocks, stream);
  } else if constexpr (kK == 5) {
    launch<T, kK, 1, 7, 2, 2>(conv, kBlocks, stream);
  } else {
    launch<T, kK, 1, 7, 4, 1>(conv, kBlocks, stream);
  }
}

}  // namespace

void depthwise_last_grad_input(const Conv& conv, LastKernel kernel, Stream stream) {
  if (kernel == LastKernel::kBoxes) return depthwise_boxes_grad_input(conv, stream);
  with_type(conv.x.dtype, [&](auto type) {
    using T = decltype(type);
    switch (conv.axes[2].kernel) {
      case 3:
        return launch_stride<T, 3>(conv, stream);
      case 5:
        return launch_stride<T, 5>(conv, stream);
      default:
        return launch_stride<T, 7>(conv, stream);
    }
  });
}

}  // namespace retrograd::kernels::cuda
