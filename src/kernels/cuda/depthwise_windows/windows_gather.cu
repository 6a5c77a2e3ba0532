// SPDX-License-Identifier: Apache-2.0
// forward     y[n,o,p] = Σ_{i,t} x[n,i,position(p,t)] · w[o,i,t]
// grad_input  x[n,i,q] = Σ_{o,t} y[n,o,output_reading(q,t)] · w[o,i,t]
//
// A block keeps the weights of its channels in shared memory and takes items (windows_plan.h), four results a
// thread, up to four taps along slide at once: 9 loads for 12 products of three taps, 11 for 16 of four, 5
// for 4 of one. Neighbouring threads read neighbouring values, each from memory about once, then from L1.
#include "kernels/cuda/depthwise_windows/windows_item.h"
#include "kernels/cuda/depthwise_windows/windows_plan.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pack.cuh"

namespace retrograd::kernels::cuda {
namespace {

// [source][tap][channel] or [channel][source][tap], as the pitches say.
template <class T>
__device__ void load_weights(const DepthwiseWindows& p, int first, int width, const T* weights,
                             float* shared) {
  const int count = min(width, p.channels - first), of_channel = p.sources * p.taps;
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  for (int i = thread; i < count * of_channel; i += static_cast<int>(blockDim.x * blockDim.y)) {
    const int channel = i / of_channel, rest = i % of_channel;
    auto result = static_cast<uint32_t>(first + channel);
    const uint32_t group = p.by_source.split(result);
    const int64_t at = p.kernels.offset(group, result, rest / p.taps, static_cast<uint32_t>(rest % p.taps));
    shared[rest * p.tap_pitch + channel * p.channel_pitch] = to_float(weights[at]);
  }
  __syncthreads();
}

template <class T, int kPack>
__global__ void __launch_bounds__(kWindowsThreads, 2)
    gather_kernel(const __grid_constant__ DepthwiseWindows p, const T* source, const T* weights,
                  const ChannelBias bias, T* result) {
  extern __shared__ __align__(16) float shared[];
  const bool inside = p.channels_inside;
  const uint32_t tile = inside ? blockIdx.x % p.channel_tiles : blockIdx.x / p.item_blocks;
  const uint32_t block = inside ? blockIdx.x / p.channel_tiles : blockIdx.x % p.item_blocks;
  const int width = static_cast<int>(inside ? blockDim.x : blockDim.y) * kPack;
  const int first = static_cast<int>(tile) * width;
  load_weights(p, first, width, weights, shared);

  const auto own = static_cast<int>(inside ? threadIdx.x : threadIdx.y) * kPack;
  const auto channel = static_cast<uint32_t>(first + own);
  if (first + own >= p.channels) return;
  source += int64_t{p.by_source.quotient(channel)} * p.sources * p.source_channel;
  result += int64_t{channel} * p.result_channel;
  const auto load = [](const T* address, float(&values)[kPack]) { load_pack<T, kPack>(address, values); };
  const float* const of_channel = shared + own * p.channel_pitch;
  const auto weight = [&](int tap, float(&values)[kPack]) {
    load_pack<float, kPack>(of_channel + tap, values);
  };

  float of_bias[kPack] = {};
  if (bias.data != nullptr)
    for (int k = 0; k < kPack; ++k)
      of_bias[k] = load_any(bias.dtype, bias.data, (int64_t{channel} + k) * bias.stride);

  const uint32_t at_once = inside ? blockDim.y : blockDim.x;
  for (uint32_t item = block * at_once + (inside ? threadIdx.y : threadIdx.x); item < p.items;
       item += p.item_blocks * at_once) {
    const WindowPlace at = place_of(p, item);
    T* const first_result = result + result_offset(p, at);
    const auto emit = [&](int place, float(&sums)[kSlide][kPack]) {
      T* const to = first_result + int64_t{place - at.begin} * p.run.result_pitch;
#pragma unroll
      for (int v = 0; v < kSlide; ++v)
        if (at.slide + v * p.spacing < p.slide.results) {
          if (bias.data != nullptr)
            for (int k = 0; k < kPack; ++k) sums[v][k] += of_bias[k];
          store_pack<T, kPack>(to + v * p.spaced_pitch, sums[v]);
        }
    };
    gather_run<kPack>(p, at, source, load, weight, emit);
  }
}

template <class T, int kPack>
void launch(const Conv& conv, bool forward, const GatherWindows& plan, Stream stream) {
  const DepthwiseWindows& p = plan.windows;
  const int floats = p.channels_inside ? p.taps * p.sources * p.tap_pitch : p.rows * p.channel_pitch;
  const Tensor &source = forward ? conv.x : conv.y, &result = forward ? conv.y : conv.x;
  start(gather_kernel<T, kPack>, plan.blocks, {p.lanes, p.rows}, static_cast<size_t>(floats) * sizeof(float),
        stream, p, source.data, conv.w.data, conv.bias, result.data);
}

}  // namespace

void windows_gather(const Conv& conv, bool forward, const GatherWindows& plan, Stream stream) {
  with_type(conv.x.dtype, [&](auto type) {
    using T = decltype(type);
    if constexpr (sizeof(T) == 2)
      if (plan.windows.pack == 2) return launch<T, 2>(conv, forward, plan, stream);
    launch<T, 1>(conv, forward, plan, stream);
  });
}

}  // namespace retrograd::kernels::cuda
