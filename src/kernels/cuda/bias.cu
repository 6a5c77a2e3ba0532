// SPDX-License-Identifier: Apache-2.0
// grad_bias[c] = Σ grad_output[n, c, p], in two steps: blocks add up parts of channels, then a thread adds
// the parts of its channel, in order. Bytes: grad_output once, so everything is 16-byte loads, several in
// flight.
#include "kernels/cuda/bias.h"
#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kWantedBlocks = 1024;     // some eight a multiprocessor
constexpr int64_t kFewestTerms = 4 * 2048;  // of a part

struct Planes {
  int64_t channels, plane;  // elements
  uint32_t vectors;         // of all planes of a channel
  uint32_t part;            // of them in a part
  FastDiv of_plane;         // vectors of a plane
};

template <class T, int kCount>
__global__ void __launch_bounds__(kThreads) planes_kernel(Planes p, const T* y, float* parts) {
  const int64_t channel = blockIdx.x;
  const uint32_t begin = blockIdx.y * p.part, end = min(begin + p.part, p.vectors);
  float sums[kCount] = {};
#pragma unroll 4
  for (uint32_t i = begin + threadIdx.x; i < end; i += kThreads) {
    uint32_t at = i;
    const int64_t image = p.of_plane.split(at);
    float values[kCount];
    load_pack<T, kCount>(y + (image * p.channels + channel) * p.plane + at * kCount, values);
#pragma unroll
    for (int j = 0; j < kCount; ++j) sums[j] += values[j];
  }
#pragma unroll
  for (int j = 1; j < kCount; ++j) sums[0] += sums[j];
  const float sum = block_sum<kThreads>(sums[0]);
  if (threadIdx.x == 0) parts[blockIdx.y * p.channels + channel] = sum;
}

constexpr int kLanes = 32, kRows = kThreads / kLanes;

template <class T, int kCount>
__global__ void __launch_bounds__(kThreads)
    channels_last_kernel(int64_t channels, int64_t rows, int64_t part, const T* y, float* parts) {
  __shared__ float shared[kRows][kLanes * kCount + 1];
  const int lane = threadIdx.x % kLanes, line = threadIdx.x / kLanes;
  const int64_t channel = (blockIdx.x * int64_t{kLanes} + lane) * kCount;
  const int64_t begin = blockIdx.y * part, end = min(begin + part, rows);
  float sums[kCount] = {};
  if (channel < channels) {
#pragma unroll 4
    for (int64_t row = begin + line; row < end; row += kRows) {
      float values[kCount];
      load_pack<T, kCount>(y + row * channels + channel, values);
#pragma unroll
      for (int j = 0; j < kCount; ++j) sums[j] += values[j];
    }
  }
#pragma unroll
  for (int j = 0; j < kCount; ++j) shared[line][lane * kCount + j] = sums[j];
  __syncthreads();
  for (int i = threadIdx.x; i < kLanes * kCount; i += kThreads) {
    const int64_t c = blockIdx.x * int64_t{kLanes * kCount} + i;
    if (c >= channels) continue;
    float sum = 0;
    for (int r = 0; r < kRows; ++r) sum += shared[r][i];
    parts[blockIdx.y * channels + c] = sum;
  }
}

__global__ void finish_kernel(int64_t channels, int64_t parts, const float* sums, Tensor result) {
  const int64_t c = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (c >= channels) return;
  float sum = 0;
  for (int64_t i = 0; i < parts; ++i) sum += sums[i * channels + c];
  store_any(result.dtype, result.data, c * result.strides[1], sum);
}

void finish(const Bias& bias, int64_t parts, const float* sums, Stream stream) {
  const auto blocks = static_cast<unsigned>((bias.channels + kThreads - 1) / kThreads);
  finish_kernel<<<blocks, kThreads, 0, stream>>>(bias.channels, parts, sums, bias.grad_bias);
}

bool is_aligned(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }

template <class T, int kCount>
void launch_planes(const Bias& bias, float* sums, Stream stream) {
  Planes p;
  p.channels = bias.channels;
  p.plane = bias.spatial[0] * bias.spatial[1] * bias.spatial[2];
  p.of_plane = FastDiv(p.plane / kCount);
  p.vectors = static_cast<uint32_t>(bias.batch * (p.plane / kCount));
  const int64_t parts = bias_parts(bias);
  p.part = static_cast<uint32_t>((p.vectors + parts - 1) / parts);
  const dim3 grid(static_cast<unsigned>(bias.channels), static_cast<unsigned>(parts));
  planes_kernel<T, kCount>
      <<<grid, kThreads, 0, stream>>>(p, static_cast<const T*>(bias.grad_output.data), sums);
  finish(bias, parts, sums, stream);
}

template <class T, int kCount>
void launch_channels_last(const Bias& bias, float* sums, Stream stream) {
  const int64_t rows = bias.batch * bias.spatial[0] * bias.spatial[1] * bias.spatial[2];
  const int64_t parts = bias_parts(bias);
  const dim3 grid(static_cast<unsigned>((bias.channels + kLanes * kCount - 1) / (kLanes * kCount)),
                  static_cast<unsigned>(parts));
  channels_last_kernel<T, kCount><<<grid, kThreads, 0, stream>>>(
      bias.channels, rows, (rows + parts - 1) / parts, static_cast<const T*>(bias.grad_output.data), sums);
  finish(bias, parts, sums, stream);
}

}  // namespace

int64_t bias_parts(const Bias& bias) {
  const int64_t terms = bias.batch * bias.spatial[0] * bias.spatial[1] * bias.spatial[2];
  const bool rows = bias.grad_output.strides[1] != 1 || bias.channels == 1;
  // Channels-last: a block takes up to 256 channels, so there are more parts, each of fewer terms.
  const int64_t blocks = rows ? bias.channels : (bias.channels + 255) / 256;
  const int64_t wanted = (kWantedBlocks + blocks - 1) / blocks;
  const int64_t most = (terms + (rows ? kFewestTerms : 64) - 1) / (rows ? kFewestTerms : 64);
  const int64_t parts = wanted < most ? wanted : most;
  return parts < 1 ? 1 : parts > 1024 ? 1024 : parts;
}

void bias_planes(const Bias& bias, float* workspace, Stream stream) {
  with_type(bias.grad_output.dtype, [&](auto type) {
    using T = decltype(type);
    constexpr int kWide = 16 / sizeof(T);
    const int64_t plane = bias.spatial[0] * bias.spatial[1] * bias.spatial[2];
    if (plane % kWide == 0 && is_aligned(bias.grad_output.data))
      return launch_planes<T, kWide>(bias, workspace, stream);
    launch_planes<T, 1>(bias, workspace, stream);
  });
}

void bias_channels_last(const Bias& bias, float* workspace, Stream stream) {
  with_type(bias.grad_output.dtype, [&](auto type) {
    using T = decltype(type);
    constexpr int kWide = 8 / sizeof(T);
    if (bias.channels % kWide == 0 && is_aligned(bias.grad_output.data))
      return launch_channels_last<T, kWide>(bias, workspace, stream);
    launch_channels_last<T, 1>(bias, workspace, stream);
  });
}

}  // namespace retrograd::kernels::cuda
