// SPDX-License-Identifier: Apache-2.0
// x[q] = Σ_k y[(q + P − k)/S] · w[k] over the taps k for which the division leaves nothing, on one plane.
//
// A thread takes kRows·S rows of kCols·S columns of x. It reads each row of y that these need once, K values
// and a few, and adds it to all results that need it; weights and sums stay in registers, and since every
// index is known to the compiler no product is spent on a tap that does not match. Bytes: y once, x once; 3x3
// in FP32 is limited by them, 7x7 has 49 products a result, about as much time again.
//
// Windows are known to the compiler for a padding of kP, half a kernel or one more; every other padding is
// such a one with y moved by whole pixels, and with stride 2 tiles that begin a row above the first.
//
// Values beyond the edge count as zero. Zero times a weight that is not finite would be NaN, so a block that
// finds such a weight takes the formula as it stands for tiles at an edge.
#include "base/checked.h"
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/depthwise/depthwise.h"
#include "kernels/cuda/depthwise/depthwise_plan.h"
#include "kernels/cuda/depthwise/depthwise_row.cuh"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/launch.cuh"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 128;

struct Planes {
  uint32_t planes, channels;
  uint32_t of_plane;  // threads that a plane takes
  uint32_t in_block;  // planes that a block takes
  uint32_t columns;   // threads of a row of tiles
  FastDiv by_plane, by_column;
  int xh, xw, yh, yw;
  int first_row;         // of x that the first tile begins with, 0 or -1
  int shift_h, shift_w;  // rows and columns of y, on top of what kP says
  int pad_h, pad_w;
  int64_t w_channel, w_row, w_column;  // strides of the weights
};

template <int kK, int kS, int kP>
struct Reach {  // of a tile: which y its x need, counted from the tile's start divided by S
  __host__ __device__ static constexpr int first() { return static_cast<int>(ceil_div(kP - (kK - 1), kS)); }
  __host__ __device__ static constexpr int last(int size) {
    return static_cast<int>(floor_div(size - 1 + kP, kS));
  }
};

template <class T, int kK, int kS, int kH, int kW>
__device__ void tile_by_formula(const Planes& p, const float* w, float bias, const T* y, T* x, int h0,
                                int w0) {
  for (int h = max(h0, 0); h < min(h0 + kH, p.xh); ++h)
    for (int c = w0; c < min(w0 + kW, p.xw); ++c) {
      float sum = bias;
      for (int kh = 0; kh < kK; ++kh)
        for (int kw = 0; kw < kK; ++kw) {
          const int sh = h + p.pad_h - kh, sw = c + p.pad_w - kw;
          if (sh < 0 || sw < 0 || sh % kS != 0 || sw % kS != 0 || sh / kS >= p.yh || sw / kS >= p.yw)
            continue;
          sum = fmaf(to_float(y[sh / kS * p.yw + sw / kS]), w[kh * kK + kw], sum);
          if (isnan(sum)) kh = kw = kK;  // and stays so
        }
      x[static_cast<int64_t>(h) * p.xw + c] = from_float<T>(sum);
    }
}

// kPacked: rows are whole and aligned packs, of kCols·S results and of kCols values of the source.
template <class T, int kK, int kS, int kP, int kRows, int kCols, bool kPacked>
__global__ void __launch_bounds__(kThreads)
    grad_input_kernel(Planes p, ChannelBias channel_bias, const T* y, const T* weights, T* x) {
  using R = Reach<kK, kS, kP>;
  constexpr int kH = kRows * kS, kW = kCols * kS, kTaps = kK * kK;
  extern __shared__ float shared[];  // in_block · kTaps
  const uint32_t first_plane = blockIdx.x * p.in_block;
  bool finite = true;
  for (uint32_t i = threadIdx.x; i < p.in_block * kTaps; i += kThreads) {
    const uint32_t plane = first_plane + i / kTaps, tap = i % kTaps;
    if (plane >= p.planes) break;
    const float value =
        to_float(weights[plane % p.channels * p.w_channel + tap / kK * p.w_row + tap % kK * p.w_column]);
    shared[i] = value;
    finite = finite && isfinite(value);
  }
  finite = __syncthreads_and(finite);

  uint32_t number = blockIdx.y * kThreads + threadIdx.x;
  const uint32_t plane_in_block = p.by_plane.split(number);
  if (plane_in_block >= p.in_block || first_plane + plane_in_block >= p.planes) return;
  const int band = static_cast<int>(p.by_column.split(number));
  const int w0 = static_cast<int>(number) * kW, h0 = band * kH + p.first_row;
  const int oh = band * kRows + p.shift_h, ow = static_cast<int>(number) * kCols + p.shift_w;
  const int64_t plane = first_plane + plane_in_block;
  y += plane * p.yh * p.yw;
  x += plane * p.xh * p.xw;
  const float* of_plane = shared + plane_in_block * kTaps;
  const float bias = channel_bias.data == nullptr ? 0.0f
                                                  : load_any(channel_bias.dtype, channel_bias.data,
                                                             plane % p.channels * channel_bias.stride);
  constexpr int kFirst = R::first(), kLastRow = R::last(kH), kLastCol = R::last(kW);
  if (!finite && (oh + kFirst < 0 || oh + kLastRow >= p.yh || ow + kFirst < 0 || ow + kLastCol >= p.yw))
    return tile_by_formula<T, kK, kS, kH, kW>(p, of_plane, bias, y, x, h0, w0);

  float w[kTaps];
#pragma unroll
  for (int i = 0; i < kTaps; ++i) w[i] = of_plane[i];
  float sums[kH][kW];
#pragma unroll
  for (int i = 0; i < kH * kW; ++i) sums[i / kW][i % kW] = bias;
#pragma unroll
  for (int r = kFirst; r <= kLastRow; ++r) {
    const bool live = static_cast<unsigned>(oh + r) < static_cast<unsigned>(p.yh);
    float row[kLastCol - kFirst + 1];
    if constexpr (kPacked) {
      load_row<T, -kFirst, kCols, kLastCol - kCols + 1>(y, oh + r, live, ow, p.yw, row);
    } else {
#pragma unroll
      for (int c = kFirst; c <= kLastCol; ++c)
        row[c - kFirst] = live && static_cast<unsigned>(ow + c) < static_cast<unsigned>(p.yw)
                              ? to_float(y[(oh + r) * p.yw + ow + c])
                              : 0.0f;
    }
#pragma unroll
    for (int a = 0; a < kH; ++a) {
      const int kh = a + kP - kS * r;
      if (kh < 0 || kh >= kK) continue;
#pragma unroll
      for (int c = kFirst; c <= kLastCol; ++c)  // in this order neighbouring products go to different sums
#pragma unroll
        for (int b = 0; b < kW; ++b) {
          const int kw = b + kP - kS * c;
          if (kw < 0 || kw >= kK) continue;
          sums[a][b] = fmaf(row[c - kFirst], w[kh * kK + kw], sums[a][b]);
        }
    }
  }
#pragma unroll
  for (int a = 0; a < kH; ++a) {
    if (h0 + a < 0) continue;
    if (h0 + a >= p.xh) return;
    T* row = x + static_cast<int64_t>(h0 + a) * p.xw + w0;
    if constexpr (kPacked) {
      store_pack<T, kW>(row, sums[a]);
    } else {
#pragma unroll
      for (int b = 0; b < kW; ++b)
        if (w0 + b < p.xw) row[b] = from_float<T>(sums[a][b]);
    }
  }
}

template <class T, int kK, int kS, int kP, int kRows, int kCols, bool kPacked>
void launch(const Conv& conv, Stream stream) {
  constexpr int kH = kRows * kS, kW = kCols * kS;
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  Planes p;
  p.planes = static_cast<uint32_t>(conv.batch * conv.groups);
  p.channels = static_cast<uint32_t>(conv.groups);
  const RowsShift rows = rows_shift(h, kP), columns = rows_shift(w, kP);
  p.first_row = static_cast<int>(-rows.odd);
  p.shift_h = static_cast<int>(rows.shift);
  p.shift_w = static_cast<int>(columns.shift);
  p.pad_h = static_cast<int>(h.pad);
  p.pad_w = static_cast<int>(w.pad);
  p.columns = static_cast<uint32_t>((w.x + kW - 1) / kW);
  p.of_plane = p.columns * static_cast<uint32_t>((h.x + rows.odd + kH - 1) / kH);
  p.in_block = p.of_plane < kThreads ? kThreads / p.of_plane : 1;
  p.by_plane = FastDiv(p.of_plane);
  p.by_column = FastDiv(p.columns);
  p.xh = static_cast<int>(h.x);
  p.xw = static_cast<int>(w.x);
  p.yh = static_cast<int>(h.y);
  p.yw = static_cast<int>(w.y);
  p.w_channel = conv.w.strides[0];
  p.w_row = conv.w.strides[3];
  p.w_column = conv.w.strides[4];
  start(grad_input_kernel<T, kK, kS, kP, kRows, kCols, kPacked>,
        {(p.planes + p.in_block - 1) / p.in_block, (p.of_plane + kThreads - 1) / kThreads}, kThreads,
        p.in_block * kK * kK * sizeof(float), stream, p, conv.bias, conv.y.data, conv.w.data, conv.x.data);
}

bool has_packs(const Tensor& tensor, int64_t width, int count) {
  const size_t bytes = static_cast<size_t>(count) * size_of(tensor.dtype);
  return width % count == 0 && is_aligned(tensor.data, bytes < 16 ? bytes : 16);
}

template <class T, int kK>
void launch_stride(const Conv& conv, Stream stream) {
  constexpr int kP = kK / 2;
  const auto aligned = [&](int x_count, int y_count, int pad = kK / 2) {
    return has_packs(conv.x, conv.axes[2].x, x_count) && has_packs(conv.y, conv.axes[2].y, y_count) &&
           rows_shift(conv.axes[2], pad).is_multiple(y_count);
  };
  constexpr int kWide = 16 / sizeof(T);
  constexpr int kRows = kK == 3 && kWide == 4 ? 8 : 4;  // registers are left for no more
  if (conv.axes[2].stride == 2) {
    if (aligned(kWide, kWide / 2)) return launch<T, kK, 2, kP, 4, kWide / 2, true>(conv, stream);
    if (aligned(2, 1)) return launch<T, kK, 2, kP, 4, 1, true>(conv, stream);
    if (aligned(2, 1, kP + 1)) return launch<T, kK, 2, kP + 1, 4, 1, true>(conv, stream);
    return aligned(1, 1) ? launch<T, kK, 2, kP, 4, 1, false>(conv, stream)
                         : launch<T, kK, 2, kP + 1, 4, 1, false>(conv, stream);
  }
  if constexpr (kK == 7) {
    if (aligned(8, 8)) return launch<T, kK, 1, kP, (kWide == 4 ? 4 : 2), 8, true>(conv, stream);
  }
  if (aligned(kWide, kWide)) return launch<T, kK, 1, kP, kRows, kWide, true>(conv, stream);
  if (kWide > 4 && aligned(4, 4)) return launch<T, kK, 1, kP, kRows, 4, true>(conv, stream);
  // Narrow packs: high tiles make up for what a thread spends besides.
  if constexpr (kK == 3) {
    const bool high = conv.axes[1].x >= 16;
    if (high && aligned(2, 2)) return launch<T, kK, 1, kP, 8, 2, true>(conv, stream);
    if (high && aligned(2, 2, kP + 1)) return launch<T, kK, 1, kP + 1, 8, 2, true>(conv, stream);
  }
  if (aligned(2, 2)) return launch<T, kK, 1, kP, kRows, 2, true>(conv, stream);
  if (aligned(2, 2, kP + 1)) return launch<T, kK, 1, kP + 1, kRows, 2, true>(conv, stream);
  launch<T, kK, 1, kP, 8, 2, false>(conv, stream);
}

}  // namespace

void depthwise_grad_input(const Conv& conv, DepthwiseKernel kernel, Stream stream) {
  if (kernel == DepthwiseKernel::kSmall) return depthwise_small_grad_input(conv, stream);
  if (kernel == DepthwiseKernel::kBands) return depthwise_bands_grad_input(conv, stream);
  with_type(conv.x.dtype, [&](auto type) {
    using T = decltype(type);
    with_one_of<3, 5, 7>(conv.axes[2].kernel, [&](auto taps) { launch_stride<T, taps()>(conv, stream); });
  });
}

}  // namespace retrograd::kernels::cuda
