// SPDX-License-Identifier: Apache-2.0
// result[q] = Σ_t source[q − offset + t] · w[t] on one plane; grad_input is the same with the kernel turned
// around.
//
// A block keeps a tile of the source and the kernel in shared memory as FP32; a thread makes eight results in
// a row. For four taps it reads four more values of the source and four weights, and makes 32 products: 31 x
// 31 is limited by the FP32 units, not by memory of any kind.
//
// Values beyond the edge and weights beyond the kernel are zeros. A result that is NaN, where a zero
// may have met an infinity, is taken from the formula.
#include "kernels/cuda/depthwise/depthwise.h"
#include "kernels/cuda/depthwise/depthwise_plan.h"
#include "kernels/cuda/depthwise/depthwise_tile.cuh"
#include "kernels/cuda/formulas.cuh"
#include "kernels/cuda/launch.cuh"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kEach = 8;

struct Planes {
  Conv conv;
  bool forward;
  int channels;
  int height, width;  // of the source
  int result_height, result_width;
  int kh, kw, offset_h, offset_w;
  int column_tiles;
};

__device__ __noinline__ float by_formula(const Planes& p, int64_t plane, int h, int w) {
  const Index5 at{plane / p.channels, plane % p.channels, 0, h, w};
  return sum_of(p.conv, p.forward ? Result::kForward : Result::kGradInput, at);
}

template <class T, int kRows, int kChunks>
__global__ void __launch_bounds__(kThreads, 5)  // whatever the formula wants
    gather_kernel(const __grid_constant__ Planes p, const T* source, const T* weights, T* result) {
  constexpr int kColumns = kThreads / kRows * kEach, kTaps = kChunks * 4;
  constexpr int kPitch = tile_pitch(kColumns + kTaps);
  extern __shared__ __align__(16) float shared[];
  float* const kernel = shared;               // kh rows of kTaps
  float* const tile = shared + p.kh * kTaps;  // kRows + kh − 1 rows of kPitch
  const int64_t plane = blockIdx.x;
  const int h0 = static_cast<int>(blockIdx.y) / p.column_tiles * kRows;
  const int w0 = static_cast<int>(blockIdx.y) % p.column_tiles * kColumns;
  const int64_t channel = plane % p.channels;
  const float start = bias_of(p.conv, channel);
  for (int i = static_cast<int>(threadIdx.x); i < p.kh * kTaps; i += kThreads) {
    int h = i / kTaps, w = i % kTaps;
    const bool inside = w < p.kw;
    if (!p.forward) h = p.kh - 1 - h, w = p.kw - 1 - w;
    kernel[i] =
        inside
            ? to_float(
                  weights[channel * p.conv.w.strides[0] + h * p.conv.w.strides[3] + w * p.conv.w.strides[4]])
            : 0.0f;
  }
  load_tile(tile, kPitch, kRows + p.kh - 1, kColumns + kTaps, source + plane * p.height * p.width, p.height,
            p.width, h0 - p.offset_h, w0 - p.offset_w);
  __syncthreads();

  const int row = static_cast<int>(threadIdx.x) / (kColumns / kEach);
  const int column = static_cast<int>(threadIdx.x) % (kColumns / kEach) * kEach;
  float sums[kEach];
#pragma unroll
  for (float& sum : sums) sum = start;
  for (int h = 0; h < p.kh; ++h) {
    const float* line = tile + (row + h) * kPitch + column;
    float values[kEach + kTaps];
    load_four(line, values);
    load_four(line + 4, values + 4);
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      float w[4];
      load_four(line + 8 + chunk * 4, values + 8 + chunk * 4);
      load_four(kernel + h * kTaps + chunk * 4, w);
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < kEach; ++j) sums[j] = fmaf(values[chunk * 4 + i + j], w[i], sums[j]);
    }
  }
  if (h0 + row >= p.result_height) return;
  T* out = result + (plane * p.result_height + h0 + row) * p.result_width;
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int w = w0 + column + j;
    if (w >= p.result_width) break;
    const float sum = isnan(sums[j]) ? by_formula(p, plane, h0 + row, w) : sums[j];
    out[w] = from_float<T>(sum);
  }
}

template <class T, int kRows, int kChunks>
void launch(Planes p, Stream stream) {
  constexpr int kColumns = kThreads / kRows * kEach;
  const int bytes = (p.kh * kChunks * 4 + (kRows + p.kh - 1) * tile_pitch(kColumns + kChunks * 4)) * 4;
  p.column_tiles = (p.result_width + kColumns - 1) / kColumns;
  const int row_tiles = (p.result_height + kRows - 1) / kRows;
  const Tensor& source = p.forward ? p.conv.x : p.conv.y;
  const Tensor& result = p.forward ? p.conv.y : p.conv.x;
  start(gather_kernel<T, kRows, kChunks>, {p.conv.batch * p.conv.groups, p.column_tiles * row_tiles},
        kThreads, bytes, stream, p, source.data, p.conv.w.data, result.data);
}

template <class T, int kRows>
void launch_width(const Planes& p, Stream stream) {
  if (p.kw <= 8) return launch<T, kRows, 2>(p, stream);
  if (p.kw <= 16) return launch<T, kRows, 4>(p, stream);
  if (p.kw <= 32) return launch<T, kRows, 8>(p, stream);
  launch<T, kRows, 16>(p, stream);
}

}  // namespace

void depthwise_tiles_gather(const Conv& conv, bool forward, TilesKernel kernel, Stream stream) {
  if (kernel == TilesKernel::kSpans) return depthwise_spans_gather(conv, forward, stream);
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  Planes p;
  p.conv = conv;
  p.forward = forward;
  p.channels = static_cast<int>(conv.groups);
  p.height = static_cast<int>(forward ? h.x : h.y);
  p.width = static_cast<int>(forward ? w.x : w.y);
  p.result_height = static_cast<int>(forward ? h.y : h.x);
  p.result_width = static_cast<int>(forward ? w.y : w.x);
  p.kh = static_cast<int>(h.kernel);
  p.kw = static_cast<int>(w.kernel);
  p.offset_h = static_cast<int>(forward ? h.pad : h.kernel - 1 - h.pad);
  p.offset_w = static_cast<int>(forward ? w.pad : w.kernel - 1 - w.pad);
  with_type(conv.x.dtype, [&](auto type) {
    using T = decltype(type);
    launch_width<T, 32>(p, stream);
  });
}

}  // namespace retrograd::kernels::cuda
