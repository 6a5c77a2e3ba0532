// SPDX-License-Identifier: Apache-2.0
// w[kh,kw] = Σ_{n,o} x[n, S·o − P + (kh,kw)] · y[n, o] of each channel.
//
// A thread takes two channels, keeps their K² sums in registers and walks down strips of kCols columns: a row
// of x meets the last K rows of y, and the next rows are on their way meanwhile. At the end the block adds
// the sums of its threads, and a second kernel the parts, both in a fixed order. Bytes: x once, y once.
//
// Values beyond the edge count as zero; who adds the parts takes a sum that is NaN from the formula.
#include <algorithm>

#include "kernels/cuda/depthwise/depthwise_parts.h"
#include "kernels/cuda/depthwise_nhwc/depthwise_boxes.h"
#include "kernels/cuda/depthwise_nhwc/depthwise_last.cuh"
#include "kernels/cuda/depthwise_nhwc/depthwise_last.h"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = kLastWeightThreads;

template <class T, int kV>
using Vector = Pack<T, kV>;

// kCount places of a row from `column` on, zeros where there are none.
template <class T, int kV, int kCount>
__device__ void load_places(const T* image, int channels, int row, int row_begin, int row_end, int column,
                            int width, Vector<T, kV> (&places)[kCount]) {
  const bool live = row >= row_begin && row < row_end;
  const T* line = image + (static_cast<int64_t>(row) * width + column) * channels;
#pragma unroll
  for (int c = 0; c < kCount; ++c) {
    places[c] = Vector<T, kV>{};
    if (live && static_cast<unsigned>(column + c) < static_cast<unsigned>(width))
      places[c] = *reinterpret_cast<const Vector<T, kV>*>(line + c * channels);
  }
}

template <class T, int kV, int kCount>
__device__ void convert(const Vector<T, kV> (&places)[kCount], float (&values)[kCount][kV]) {
#pragma unroll
  for (int c = 0; c < kCount; ++c)
#pragma unroll
    for (int v = 0; v < kV; ++v) values[c][v] = to_float(places[c].values[v]);
}

template <class T, int kK, int kCols, int kV>
__device__ void walk(const T* x, const T* y, const LastBlocks& p, int column, int o_begin, int o_end,
                     float (&sums)[kK * kK][kV]) {
  constexpr int kP = kK / 2, kWide = kCols + kK - 1;
  float ring[kK][kCols][kV] = {};  // rows of y; the row of x that is i-th meets those of i + P − kh
  Vector<T, kV> next_x[kWide], next_y[kCols];
  const auto load = [&](int i) {
    load_places<T, kV>(x, p.channels, i, 0, p.xh, column - kP, p.xw, next_x);
    load_places<T, kV>(y, p.channels, i + kP, o_begin, o_end, column, p.yw, next_y);
  };
  const int end = o_end + kK - 1 - kP;
  load(o_begin - kP);
  for (int i = o_begin - kP; i < end; ++i) {
    float row[kWide][kV];
#pragma unroll
    for (int kh = kK - 1; kh > 0; --kh)
#pragma unroll
      for (int c = 0; c < kCols; ++c)
#pragma unroll
        for (int v = 0; v < kV; ++v) ring[kh][c][v] = ring[kh - 1][c][v];
    convert<T, kV>(next_x, row);
    convert<T, kV>(next_y, ring[0]);
    if (i + 1 < end) load(i + 1);
#pragma unroll
    for (int kh = 0; kh < kK; ++kh) {
      // Rows of y outside the band are zeros; many products are worth a branch.
      if (kK > 3 && (i + kP - kh < o_begin || i + kP - kh >= o_end)) continue;
#pragma unroll
      for (int c = 0; c < kCols; ++c)  // in this order neighbouring products go to different sums
#pragma unroll
        for (int kw = 0; kw < kK; ++kw)
#pragma unroll
          for (int v = 0; v < kV; ++v)
            sums[kh * kK + kw][v] = fmaf(row[c + kw][v], ring[kh][c][v], sums[kh * kK + kw][v]);
    }
  }
}

template <class T, int kK, int kS, int kCols, int kV>
__device__ void walk_strided(const T* x, const T* y, const LastBlocks& p, int column, int o_begin, int o_end,
                             float (&sums)[kK * kK][kV]) {
  constexpr int kP = kK / 2, kWide = (kCols - 1) * kS + kK;
  for (int o = o_begin; o < o_end; ++o) {
    Vector<T, kV> of_x[kK][kWide], of_y[kCols];
#pragma unroll
    for (int kh = 0; kh < kK; ++kh)
      load_places<T, kV>(x, p.channels, o * kS - kP + kh, 0, p.xh, column * kS - kP, p.xw, of_x[kh]);
    load_places<T, kV>(y, p.channels, o, o_begin, o_end, column, p.yw, of_y);
    float values[kCols][kV];
    convert<T, kV>(of_y, values);
#pragma unroll
    for (int kh = 0; kh < kK; ++kh) {
      float row[kWide][kV];
      convert<T, kV>(of_x[kh], row);
#pragma unroll
      for (int c = 0; c < kCols; ++c)
#pragma unroll
        for (int kw = 0; kw < kK; ++kw)
#pragma unroll
          for (int v = 0; v < kV; ++v)
            sums[kh * kK + kw][v] = fmaf(row[c * kS + kw][v], values[c][v], sums[kh * kK + kw][v]);
    }
  }
}

template <class T, int kK, int kS, int kCols, int kV>
__global__ void __launch_bounds__(kThreads)
    grad_weight_kernel(const __grid_constant__ LastBlocks p, int band_rows, const T* x, const T* y,
                       float* parts) {
  constexpr int kTaps = kK * kK;
  __shared__ float shared[kK * kV][kThreads];
  const int lane = static_cast<int>(threadIdx.x) % p.lanes, strip = static_cast<int>(threadIdx.x) / p.lanes;
  const int first = static_cast<int>(blockIdx.y) * p.lanes * kV, channel = first + lane * kV;
  float sums[kTaps][kV] = {};
  if (channel < p.channels) {
    for (uint32_t tile = blockIdx.x * p.strips + strip; tile < p.tiles; tile += gridDim.x * p.strips) {
      uint32_t column = tile;
      uint32_t band = p.columns.split(column);
      const int64_t image = p.bands.split(band);
      const int o_begin = static_cast<int>(band) * band_rows, o_end = min(o_begin + band_rows, p.yh);
      const T* of_x = x + image * p.xh * p.xw * p.channels + channel;
      const T* of_y = y + image * p.yh * p.yw * p.channels + channel;
      const int from = static_cast<int>(column) * kCols;
      if constexpr (kS == 1) {
        walk<T, kK, kCols, kV>(of_x, of_y, p, from, o_begin, o_end, sums);
      } else {
        walk_strided<T, kK, kS, kCols, kV>(of_x, of_y, p, from, o_begin, o_end, sums);
      }
    }
  }
  const int wide = p.lanes * kV;
#pragma unroll
  for (int kh = 0; kh < kK; ++kh) {
    __syncthreads();
#pragma unroll
    for (int kw = 0; kw < kK; ++kw)
#pragma unroll
      for (int v = 0; v < kV; ++v) shared[kw * kV + v][threadIdx.x] = sums[kh * kK + kw][v];
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < kK * wide; i += static_cast<int>(blockDim.x)) {
      const int kw = i / wide, c = i % wide;
      if (first + c >= p.channels) continue;
      float sum = 0;
      for (int s = 0; s < p.strips; ++s) sum += shared[kw * kV + c % kV][s * p.lanes + c / kV];
      parts[(static_cast<int64_t>(blockIdx.x) * kTaps + kh * kK + kw) * p.channels + first + c] = sum;
    }
  }
}

template <class T, int kK, int kS, int kCols, int kV>
void launch(const Conv& conv, float* workspace, Stream stream) {
  const LastCut c = last_cut(conv, kCols, kV);
  const dim3 grid(static_cast<unsigned>(c.parts), static_cast<unsigned>(c.blocks.channel_blocks));
  grad_weight_kernel<T, kK, kS, kCols, kV>
      <<<grid, static_cast<unsigned>(c.blocks.lanes * c.blocks.strips), 0, stream>>>(
          c.blocks, c.band_rows, static_cast<const T*>(conv.x.data), static_cast<const T*>(conv.y.data),
          workspace);
  add_parts(conv, c.parts, PartOrder::kChannelsOfTap, {}, workspace, stream);
}

template <class T, int kK, int kS>
void launch_vector(const Conv& conv, float* workspace, Stream stream) {
  if constexpr (may_be_wide(kK, kS)) {
    if (has_vectors(conv, 4)) return launch<T, kK, kS, columns_of(kK, kS, 4), 4>(conv, workspace, stream);
  }
  constexpr int kV = narrow_vector(kK, kS);
  launch<T, kK, kS, columns_of(kK, kS, kV), kV>(conv, workspace, stream);
}

template <class T, int kK>
void launch_stride(const Conv& conv, float* workspace, Stream stream) {
  conv.axes[2].stride == 2 ? launch_vector<T, kK, 2>(conv, workspace, stream)
                           : launch_vector<T, kK, 1>(conv, workspace, stream);
}

}  // namespace

void depthwise_last_grad_weight(const Conv& conv, LastKernel kernel, float* workspace, Stream stream) {
  if (kernel == LastKernel::kBoxes) {
    depthwise_boxes_grad_weight(conv, workspace, stream);
    return add_parts(conv, depthwise_boxes_parts(conv), PartOrder::kChannelsOfTap, {}, workspace, stream);
  }
  with_type(conv.x.dtype, [&](auto type) {
    using T = decltype(type);
    switch (conv.axes[2].kernel) {
      case 3:
        return launch_stride<T, 3>(conv, workspace, stream);
      case 5:
        return launch_stride<T, 5>(conv, workspace, stream);
      default:
        return launch_stride<T, 7>(conv, workspace, stream);
    }
  });
}

}  // namespace retrograd::kernels::cuda
