// SPDX-License-Identifier: Apache-2.0
// w[t] = Σ_{n,o} x[n, o − P + t] · y[n, o] of one channel, along lines.
//
// A block takes a channel and some of its images: pieces of x and y in shared memory as FP32. A thread owns
// sixteen taps and 28 places: 16 products for each value of y that it reads, 448 in all for 18 reads of 16
// bytes. 28 floats are seven chunks of 16 bytes, an odd number, so neighbouring threads read from different
// banks. In the end the block adds what its threads have, in a fixed order.
//
// Values beyond the edge are zeros; who adds the parts takes a sum that is not finite from the formula.
#include "kernels/cuda/depthwise/depthwise_lines.cuh"
#include "kernels/cuda/depthwise/depthwise_lines.h"
#include "kernels/cuda/depthwise/depthwise_plan.h"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

using namespace lines_weight;

template <class T>
__global__ void __launch_bounds__(kMostThreads)
    grad_weight_kernel(const __grid_constant__ Lines p, const T* x, const T* y, float* parts) {
  extern __shared__ __align__(16) float shared[];
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int channel = static_cast<int>(blockIdx.x), part = static_cast<int>(blockIdx.y);
  const int places = p.shares * kPlaces, wide = places + p.strips * kTaps;
  const int share = thread % p.shares, strip = thread / p.shares % p.strips,
            slot = thread / p.shares / p.strips;
  const int last = min((part + 1) * p.items_in_part, p.items);
  float* const of_y = shared + p.in_block * wide;
  float sums[kTaps] = {};
  for (int item0 = part * p.items_in_part; item0 < last; item0 += p.in_block) {
    const int items = min(p.in_block, last - item0);
    for (int i = 0; i < items; ++i) {
      const int image = (item0 + i) / p.pieces, begin = (item0 + i) % p.pieces * places;
      const int64_t line = static_cast<int64_t>(image) * p.channels + channel;
      load_line(shared + i * wide, wide, x + line * p.xw, begin - p.pad, p.xw, thread, threads);
      load_line(of_y + i * places, places, y + line * p.yw, begin, p.yw, thread, threads);
    }
    __syncthreads();
    if (slot < items) {
      const float* from_x = shared + slot * wide + share * kPlaces + strip * kTaps;
      const float* from_y = of_y + slot * places + share * kPlaces;
      float values[kPlaces + kTaps];
#pragma unroll
      for (int i = 0; i < kTaps; i += 4) load_four(from_x + i, values + i);
#pragma unroll
      for (int c = 0; c < kPlaces; c += 4) {
        float g[4];
        load_four(from_x + kTaps + c, values + kTaps + c);
        load_four(from_y + c, g);
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int t = 0; t < kTaps; ++t) sums[t] = fmaf(values[c + i + t], g[i], sums[t]);
      }
    }
    __syncthreads();
  }
  // [thread][kTaps + 1]
#pragma unroll
  for (int t = 0; t < kTaps; ++t) shared[thread * (kTaps + 1) + t] = sums[t];
  __syncthreads();
  // A warp a tap: its lanes share the threads, then add up in a tree.
  for (int tap = thread / 32; tap < p.taps; tap += threads / 32) {
    float sum = 0;
    const int begin = tap / kTaps * p.shares;
    for (int i = thread % 32; i < p.in_block * p.shares; i += 32) {
      const int from = i / p.shares * p.strips * p.shares + begin + i % p.shares;
      sum += shared[from * (kTaps + 1) + tap % kTaps];
    }
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
    if (thread % 32 == 0) parts[(static_cast<int64_t>(part) * p.channels + channel) * p.taps + tap] = sum;
  }
}

}  // namespace

void depthwise_lines_grad_weight(const Conv& conv, float* workspace, Stream stream) {
  const Lines p = lines_of(conv);
  const int threads = (p.in_block * p.shares * p.strips + 31) / 32 * 32;
  const int places = p.shares * kPlaces;
  const int tiles = p.in_block * (2 * places + p.strips * kTaps), at_end = threads * (kTaps + 1);
  const int bytes = (tiles > at_end ? tiles : at_end) * 4;
  const dim3 grid(static_cast<unsigned>(p.channels), static_cast<unsigned>(depthwise_lines_parts(conv)));
  with_type(conv.x.dtype, [&](auto type) {
    using T = decltype(type);
    if (bytes > 48 << 10)
      cudaFuncSetAttribute(grad_weight_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    grad_weight_kernel<T><<<grid, static_cast<unsigned>(threads), static_cast<size_t>(bytes), stream>>>(
        p, static_cast<const T*>(conv.x.data), static_cast<const T*>(conv.y.data), workspace);
  });
}

}  // namespace retrograd::kernels::cuda
