// SPDX-License-Identifier: Apache-2.0
// result[q] = Σ_t source[q − offset + t] · w[t] along lines; grad_input is the same with the kernel turned
// around.
//
// A block keeps pieces of a few lines in shared memory as FP32; a thread makes twelve results in a row with
// the weights in registers: 12 products a value read. Twelve floats are three chunks of 16 bytes, an odd
// number, so neighbouring threads read from different banks. Bytes: source once, result once; 31 taps are
// about as many products as the FP32 units make in the time of a 16-bit copy.
//
// Values beyond the edge and weights beyond the kernel are zeros. A result that is NaN, where a zero may have
// met an infinity, is taken from the formula.
#include "kernels/cuda/depthwise/depthwise_lines.cuh"
#include "kernels/cuda/depthwise/depthwise_lines.h"
#include "kernels/cuda/formulas.cuh"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kEach = 12;
constexpr int kMostThreads = 288;
constexpr int kMostPerLine = 192;  // threads

struct Lines {
  Conv conv;
  bool forward;
  int lines, channels;
  int length, result_length, taps, offset;
  int pieces, of_piece;  // pieces of a line; threads of a piece
  int in_block;          // lines
  FastDiv by_pitch;      // of a line in shared memory
};

__device__ __noinline__ float by_formula(const Lines& p, int line, int at) {
  const Index5 index{line / p.channels, line % p.channels, 0, 0, at};
  return sum_of(p.conv, p.forward ? Result::kForward : Result::kGradInput, index);
}

template <class T, int kTaps>
__global__ void __launch_bounds__(kMostThreads, kTaps == 64 ? 1 : 2)
    gather_kernel(const __grid_constant__ Lines p, const T* source, const T* weights, T* result) {
  extern __shared__ __align__(16) float shared[];
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int pitch = p.of_piece * kEach + kTaps;
  float* const kernels = shared + p.in_block * pitch;  // [line][kTaps]
  const int first = static_cast<int>(blockIdx.x) * p.in_block;
  const int begin = static_cast<int>(blockIdx.y) * p.of_piece * kEach;
  const int lines = min(p.in_block, p.lines - first);
  load_together(
      lines * pitch,
      [&](int i) {
        const int l = static_cast<int>(p.by_pitch.quotient(static_cast<uint32_t>(i)));
        return load_inside(source + static_cast<int64_t>(first + l) * p.length,
                           begin - p.offset + i - l * pitch, p.length);
      },
      [&](int i, float value) { shared[i] = value; });
  for (int i = thread; i < lines * kTaps; i += threads) {
    const int tap = i % kTaps, channel = (first + i / kTaps) % p.channels;
    const int from = p.forward ? tap : p.taps - 1 - tap;
    kernels[i] =
        tap < p.taps ? to_float(weights[channel * p.conv.w.strides[0] + from * p.conv.w.strides[4]]) : 0.0f;
  }
  __syncthreads();

  const int line = thread / p.of_piece, at = thread % p.of_piece * kEach;
  float sums[kEach] = {};
  if (line < lines) {
    float w[kTaps];
#pragma unroll
    for (int i = 0; i < kTaps; i += 4) load_four(kernels + line * kTaps + i, w + i);
#pragma unroll
    for (int i = 0; i < kEach + kTaps; i += 4) {
      float values[4];
      load_four(shared + line * pitch + at + i, values);
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int o = 0; o < kEach; ++o)
          if (i + j - o >= 0 && i + j - o < kTaps) sums[o] = fmaf(values[j], w[i + j - o], sums[o]);
    }
  }
  __syncthreads();
  if (line < lines)
#pragma unroll
    for (int o = 0; o < kEach; o += 4)
      *reinterpret_cast<float4*>(shared + line * pitch + at + o) =
          make_float4(sums[o], sums[o + 1], sums[o + 2], sums[o + 3]);
  __syncthreads();
  const int count = min(p.of_piece * kEach, p.result_length - begin);
  for (int l = 0; l < lines; ++l) {
    const float bias = bias_of(p.conv, (first + l) % p.channels);
    T* out = result + static_cast<int64_t>(first + l) * p.result_length + begin;
#pragma unroll 4
    for (int i = thread; i < count; i += threads) {
      float sum = shared[l * pitch + i] + bias;
      if (isnan(sum)) sum = by_formula(p, first + l, begin + i);
      out[i] = from_float<T>(sum);
    }
  }
}

template <class T, int kTaps>
void launch(Lines p, Stream stream) {
  p.by_pitch = FastDiv(p.of_piece * kEach + kTaps);
  const int threads = (p.in_block * p.of_piece + 31) / 32 * 32;
  const size_t bytes = static_cast<size_t>(p.in_block) * (p.of_piece * kEach + kTaps + kTaps) * sizeof(float);
  const dim3 grid(static_cast<unsigned>((p.lines + p.in_block - 1) / p.in_block),
                  static_cast<unsigned>(p.pieces));
  const Tensor& source = p.forward ? p.conv.x : p.conv.y;
  const Tensor& result = p.forward ? p.conv.y : p.conv.x;
  gather_kernel<T, kTaps><<<grid, static_cast<unsigned>(threads), bytes, stream>>>(
      p, static_cast<const T*>(source.data), static_cast<const T*>(p.conv.w.data),
      static_cast<T*>(result.data));
}

}  // namespace

void depthwise_lines_gather(const Conv& conv, bool forward, Stream stream) {
  const Axis& w = conv.axes[2];
  Lines p;
  p.conv = conv;
  p.forward = forward;
  p.lines = static_cast<int>(conv.batch * conv.groups);
  p.channels = static_cast<int>(conv.groups);
  p.length = static_cast<int>(forward ? w.x : w.y);
  p.result_length = static_cast<int>(forward ? w.y : w.x);
  p.taps = static_cast<int>(w.kernel);
  p.offset = static_cast<int>(forward ? w.pad : w.kernel - 1 - w.pad);
  const int of_line = (p.result_length + kEach - 1) / kEach;
  p.pieces = (of_line + kMostPerLine - 1) / kMostPerLine;
  p.of_piece = (of_line + p.pieces - 1) / p.pieces;
  p.in_block = kMostThreads / p.of_piece;
  if (p.in_block < 1) p.in_block = 1;
  if (p.in_block > 16) p.in_block = 16;
  with_type(conv.x.dtype, [&](auto type) {
    using T = decltype(type);
    if (p.taps <= 8) return launch<T, 8>(p, stream);
    if (p.taps <= 16) return launch<T, 16>(p, stream);
    if (p.taps <= 32) return launch<T, 32>(p, stream);
    launch<T, 64>(p, stream);
  });
}

}  // namespace retrograd::kernels::cuda
