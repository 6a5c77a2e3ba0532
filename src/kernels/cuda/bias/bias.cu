// SPDX-License-Identifier: Apache-2.0
// grad_bias[c] = Σ grad_output[n, c, p], in two steps: blocks add up parts of channels, then a few threads
// add the parts of a channel, in order. Bytes: grad_output once, so everything is 16-byte loads, several in
// flight.
#include "base/checked.h"
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/bias/bias.h"
#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pack.cuh"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;

// Where a block's sums go: to the result where there is one part, else to the parts.
struct Sums {
  int64_t channels;
  float* parts;  // null: there is one
  Tensor result;

  __device__ void put(int64_t channel, float sum) const {
    if (parts == nullptr)
      store_any(result.dtype, result.data, channel * result.strides[1], sum);
    else
      parts[blockIdx.y * channels + channel] = sum;
  }
};

struct Planes {
  int64_t plane;                         // elements
  int64_t image_stride, channel_stride;  // from plane to plane
  uint32_t vectors;                      // of all planes of a channel
  uint32_t part;                         // of them in a part
  FastDiv of_plane;                      // vectors of a plane
};

template <class T, int kCount>
__global__ void __launch_bounds__(kThreads) planes_kernel(Planes p, const T* y, Sums target) {
  const int64_t channel = blockIdx.x;
  const uint32_t begin = blockIdx.y * p.part, end = min(begin + p.part, p.vectors);
  float sums[kCount] = {};
#pragma unroll 4
  for (uint32_t i = begin + threadIdx.x; i < end; i += kThreads) {
    uint32_t at = i;
    const int64_t image = p.of_plane.split(at);
    float values[kCount];
    load_pack<T, kCount>(y + image * p.image_stride + channel * p.channel_stride + at * kCount, values);
#pragma unroll
    for (int j = 0; j < kCount; ++j) sums[j] += values[j];
  }
#pragma unroll
  for (int j = 1; j < kCount; ++j) sums[0] += sums[j];
  const float sum = block_sum<kThreads>(sums[0]);
  if (threadIdx.x == 0) target.put(channel, sum);
}

// Planes that are no whole vectors: the aligned vectors that cover one, with what belongs to its neighbours
// left out.
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads)
    covering_kernel(Planes p, int64_t total, const T* y, Sums target) {
  const int64_t channel = blockIdx.x;
  const uint32_t begin = blockIdx.y * p.part, end = min(begin + p.part, p.vectors);
  float sum = 0;
#pragma unroll 4
  for (uint32_t i = begin + threadIdx.x; i < end; i += kThreads) {
    uint32_t at = i;
    const int64_t image = p.of_plane.split(at);
    const int64_t first = image * p.image_stride + channel * p.channel_stride, last = first + p.plane;
    const int64_t place = first / kCount * kCount + at * kCount;
    if (place + kCount <= total) {
      float values[kCount];
      load_pack<T, kCount>(y + place, values);
#pragma unroll
      for (int j = 0; j < kCount; ++j) sum += place + j >= first && place + j < last ? values[j] : 0.0f;
    } else {
      for (int64_t j = max(place, first); j < last; ++j) sum += to_float(y[j]);
    }
  }
  sum = block_sum<kThreads>(sum);
  if (threadIdx.x == 0) target.put(channel, sum);
}

// A block takes some vectors of channels, side by side, of all rows of a part: as many rows at once as its
// threads reach. Rows that are no whole vectors are read several as one, of which the last may end early:
// each of them is a part of its own.
struct Columns {
  int64_t channels, rows, part, total;  // total: elements
  uint32_t vectors, lines;              // of a block: vectors of a row, rows at once
};

template <class T, int kCount>
__global__ void __launch_bounds__(kThreads) channels_last_kernel(Columns p, const T* y, Sums target) {
  __shared__ float shared[kThreads * kCount];
  const uint32_t vector = threadIdx.x % p.vectors, line = threadIdx.x / p.vectors;
  const int64_t channel0 = blockIdx.x * int64_t{p.vectors * kCount};
  const int64_t channel = channel0 + vector * kCount;
  const int64_t end = min((blockIdx.y + 1) * p.part, p.rows);
  float sums[kCount] = {};
  if (channel < p.channels && line < p.lines) {
#pragma unroll 4
    for (int64_t row = blockIdx.y * p.part + line; row < end; row += p.lines) {
      const int64_t at = row * p.channels + channel;
      float values[kCount];
      if (at + kCount <= p.total) {
        load_pack<T, kCount>(y + at, values);
      } else {
        for (int j = 0; j < kCount; ++j) values[j] = at + j < p.total ? to_float(y[at + j]) : 0.0f;
      }
#pragma unroll
      for (int j = 0; j < kCount; ++j) sums[j] += values[j];
    }
  }
  if (line < p.lines) {
#pragma unroll
    for (int j = 0; j < kCount; ++j) shared[(line * p.vectors + vector) * kCount + j] = sums[j];
  }
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < p.vectors * kCount; i += kThreads) {
    if (channel0 + i >= p.channels) continue;
    float sum = 0;
    for (uint32_t r = 0; r < p.lines; ++r) sum += shared[r * p.vectors * kCount + i];
    target.put(channel0 + i, sum);
  }
}

// Eight channels a block, 32 threads a channel.
constexpr int kFinishChannels = kThreads / 32;

__global__ void __launch_bounds__(kThreads)
    finish_kernel(int64_t channels, int64_t parts, const float* sums, Tensor result) {
  __shared__ float shared[32][kFinishChannels];
  const int column = threadIdx.x % kFinishChannels, line = threadIdx.x / kFinishChannels;
  const int64_t c = blockIdx.x * int64_t{kFinishChannels} + column;
  float sum = 0;
  if (c < channels) {
#pragma unroll 8
    for (int64_t i = line; i < parts; i += 32) sum += sums[i * channels + c];
  }
  shared[line][column] = sum;
  __syncthreads();
  if (line != 0 || c >= channels) return;
  for (int i = 1; i < 32; ++i) sum += shared[i][column];
  store_any(result.dtype, result.data, c * result.strides[1], sum);
}

void finish(const Bias& bias, int64_t parts, const float* sums, Stream stream) {
  if (parts == 1) return;
  start(finish_kernel, ceil_div(bias.channels, kFinishChannels), kThreads, 0, stream, bias.channels, parts,
        sums, bias.grad_bias);
}

Planes planes_of(const Bias& bias, int64_t vectors_a_plane, int64_t parts) {
  Planes p;
  p.plane = bias.spatial[0] * bias.spatial[1] * bias.spatial[2];
  p.image_stride = bias.grad_output.strides[0];
  p.channel_stride = bias.grad_output.strides[1];
  p.of_plane = FastDiv(vectors_a_plane);
  p.vectors = static_cast<uint32_t>(bias.batch * vectors_a_plane);
  p.part = static_cast<uint32_t>((p.vectors + parts - 1) / parts);
  return p;
}

template <class T, int kCount>
void launch_planes(const Bias& bias, float* sums, Stream stream) {
  const int64_t parts = bias_cut(bias).parts, plane = bias.spatial[0] * bias.spatial[1] * bias.spatial[2];
  const Extent grid(bias.channels, parts);
  const auto* y = static_cast<const T*>(bias.grad_output.data);
  const Sums target{bias.channels, parts > 1 ? sums : nullptr, bias.grad_bias};
  const int64_t image = bias.grad_output.strides[0], channel = bias.grad_output.strides[1];
  if (plane % kCount == 0 && image % kCount == 0 && channel % kCount == 0)
    start(planes_kernel<T, kCount>, grid, kThreads, 0, stream, planes_of(bias, plane / kCount, parts), y,
          target);
  else
    start(covering_kernel<T, kCount>, grid, kThreads, 0, stream,
          planes_of(bias, (plane + 2 * kCount - 2) / kCount, parts),
          (bias.batch - 1) * image + (bias.channels - 1) * channel + plane, y, target);
  finish(bias, parts, sums, stream);
}

template <class T, int kCount>
void launch_channels_last(const Bias& bias, float* sums, Stream stream) {
  const BiasCut cut = bias_cut(bias);
  const int64_t rows = bias.batch * bias.spatial[0] * bias.spatial[1] * bias.spatial[2], parts = cut.parts;
  Columns p;
  p.channels = bias.channels * cut.rows;
  p.rows = (rows + cut.rows - 1) / cut.rows;
  p.total = rows * bias.channels;
  p.part = (p.rows + parts - 1) / parts;
  const int64_t vectors = (p.channels + kCount - 1) / kCount;
  p.vectors = static_cast<uint32_t>(vectors < kThreads ? vectors : kThreads);
  p.lines = kThreads / p.vectors;
  const Sums target{p.channels, cut.sums() > 1 ? sums : nullptr, bias.grad_bias};
  start(channels_last_kernel<T, kCount>, {(vectors + p.vectors - 1) / p.vectors, parts}, kThreads, 0, stream,
        p, bias.grad_output.data, target);
  finish(bias, cut.sums(), sums, stream);
}

}  // namespace

void bias_planes(const Bias& bias, float* workspace, Stream stream) {
  with_type(bias.grad_output.dtype, [&](auto type) {
    using T = decltype(type);
    constexpr int kWide = 16 / sizeof(T);
    if (is_aligned(bias.grad_output.data)) return launch_planes<T, kWide>(bias, workspace, stream);
    launch_planes<T, 1>(bias, workspace, stream);
  });
}

void bias_channels_last(const Bias& bias, float* workspace, Stream stream) {
  with_type(bias.grad_output.dtype, [&](auto type) {
    using T = decltype(type);
    constexpr int kWide = 16 / sizeof(T);
    if (bias.channels * bias_cut(bias).rows % kWide == 0 && is_aligned(bias.grad_output.data))
      return launch_channels_last<T, kWide>(bias, workspace, stream);
    launch_channels_last<T, 1>(bias, workspace, stream);
  });
}

}  // namespace retrograd::kernels::cuda
