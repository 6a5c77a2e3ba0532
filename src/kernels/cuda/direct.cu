// SPDX-License-Identifier: Apache-2.0
// The sums of problem/pass.h as they stand there. forward, grad_input and pooling: a thread an element.
// grad_weight and grad_bias: a block an element, its threads share the positions and add up in a fixed tree.
#include "base/checked.h"
#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/direct.h"
#include "kernels/cuda/formulas.cuh"
#include "kernels/cuda/launch.cuh"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kSumThreads = 128;
constexpr int64_t kMostBlocks = 1 << 16;

__global__ void forward_kernel(Conv p, int64_t total) {
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < total;
       i += int64_t{gridDim.x} * kThreads) {
    const Index5 at = split(i, p.groups * p.y_channels, p.axes[0].y, p.axes[1].y, p.axes[2].y);
    store_any(p.y.dtype, p.y.data, offset_of(p.y, at), sum_of(p, Result::kForward, at));
  }
}

__global__ void grad_input_kernel(Conv p, int64_t total) {
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < total;
       i += int64_t{gridDim.x} * kThreads) {
    const Index5 at = split(i, p.groups * p.x_channels, p.axes[0].x, p.axes[1].x, p.axes[2].x);
    store_any(p.x.dtype, p.x.data, offset_of(p.x, at), sum_of(p, Result::kGradInput, at));
  }
}

__global__ void grad_weight_kernel(Conv p, int64_t total) {
  for (int64_t i = blockIdx.x; i < total; i += gridDim.x) {
    const Index5 at = split(i, p.x_channels, p.axes[0].kernel, p.axes[1].kernel, p.axes[2].kernel);
    const float sum = block_sum<kSumThreads>(sum_of(p, Result::kGradWeight, at, threadIdx.x, kSumThreads));
    if (threadIdx.x == 0) store_any(p.w.dtype, p.w.data, offset_of(p.w, at), sum);
  }
}

__global__ void bias_kernel(Bias p) {
  for (int64_t c = blockIdx.x; c < p.channels; c += gridDim.x) {
    const int64_t terms = p.batch * p.spatial[0] * p.spatial[1] * p.spatial[2];
    float sum = 0, part = 0;
    int added = 0;
    for (int64_t i = threadIdx.x; i < terms; i += kSumThreads) {
      Index5 at = split(i, 1, p.spatial[0], p.spatial[1], p.spatial[2]);
      at.c = c;
      part += load_any(p.grad_output.dtype, p.grad_output.data, offset_of(p.grad_output, at));
      if (++added % 64 == 0) {
        sum += part;
        part = 0;
      }
    }
    sum = block_sum<kSumThreads>(sum + part);
    if (threadIdx.x == 0) store_any(p.grad_bias.dtype, p.grad_bias.data, c * p.grad_bias.strides[1], sum);
  }
}

__device__ Range outputs_pooling(const PoolAxis& a, int64_t index) {
  return clamped(ceil_div(index + a.pad - a.kernel + 1, a.stride), floor_div(index + a.pad, a.stride) + 1,
                 a.y);
}
__device__ float pooled_count(const PoolAxis& a, int64_t output, bool with_pad) {
  const int64_t start = output * a.stride - a.pad;
  const int64_t end = min(start + a.kernel, with_pad ? a.x + a.pad : a.x);
  return static_cast<float>(end - (with_pad ? start : max(start, int64_t{0})));
}

__device__ float divisor_of(const Pool& p, int64_t d, int64_t h, int64_t w) {
  if (p.divisor_override != 0) return static_cast<float>(p.divisor_override);
  return pooled_count(p.axes[0], d, p.count_include_pad) * pooled_count(p.axes[1], h, p.count_include_pad) *
         pooled_count(p.axes[2], w, p.count_include_pad);
}

__global__ void pool_kernel(Pool p, int64_t total) {
  const auto& [ad, ah, aw] = p.axes;
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < total;
       i += int64_t{gridDim.x} * kThreads) {
    const Index5 at = split(i, p.channels, ad.x, ah.x, aw.x);
    const Range rd = outputs_pooling(ad, at.d), rh = outputs_pooling(ah, at.h),
                rw = outputs_pooling(aw, at.w);
    float sum = 0;
    for (int64_t d = rd.begin; d < rd.end; ++d)
      for (int64_t h = rh.begin; h < rh.end; ++h)
        for (int64_t w = rw.begin; w < rw.end; ++w) {
          const float value = load_any(p.y.dtype, p.y.data, offset_of(p.y, {at.n, at.c, d, h, w}));
          sum += value / divisor_of(p, d, h, w);
        }
    store_any(p.x.dtype, p.x.data, offset_of(p.x, at), sum);
  }
}

__device__ Range places_pooled(const PoolAxis& a, int64_t output) {
  const int64_t start = output * a.stride - a.pad;
  return clamped(start, start + a.kernel, a.x);
}

__global__ void pool_forward_kernel(Pool p, int64_t total) {
  const auto& [ad, ah, aw] = p.axes;
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < total;
       i += int64_t{gridDim.x} * kThreads) {
    const Index5 at = split(i, p.channels, ad.y, ah.y, aw.y);
    const Range rd = places_pooled(ad, at.d), rh = places_pooled(ah, at.h), rw = places_pooled(aw, at.w);
    float sum = 0;
    for (int64_t d = rd.begin; d < rd.end; ++d)
      for (int64_t h = rh.begin; h < rh.end; ++h) {
        float row = 0;
        for (int64_t w = rw.begin; w < rw.end; ++w)
          row += load_any(p.x.dtype, p.x.data, offset_of(p.x, {at.n, at.c, d, h, w}));
        sum += row;
      }
    const bool empty = rd.begin == rd.end || rh.begin == rh.end || rw.begin == rw.end;
    // A window may hold no place, and divide by none; what is added makes no negative zeros.
    const float average = empty ? 0.0f : sum / divisor_of(p, at.d, at.h, at.w) + 0.0f;
    store_any(p.y.dtype, p.y.data, offset_of(p.y, at), average);
  }
}

unsigned blocks_for(int64_t items, int64_t each) {
  const int64_t blocks = (items + each - 1) / each;
  return static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
}

}  // namespace

void direct_forward(const Conv& p, Stream stream) {
  const int64_t total = p.batch * p.groups * p.y_channels * p.axes[0].y * p.axes[1].y * p.axes[2].y;
  if (total > 0) start(forward_kernel, blocks_for(total, kThreads), kThreads, 0, stream, p, total);
}

void direct_grad_input(const Conv& p, Stream stream) {
  const int64_t total = p.batch * p.groups * p.x_channels * p.axes[0].x * p.axes[1].x * p.axes[2].x;
  if (total > 0) start(grad_input_kernel, blocks_for(total, kThreads), kThreads, 0, stream, p, total);
}

void direct_grad_weight(const Conv& p, Stream stream) {
  const int64_t total =
      p.groups * p.y_channels * p.x_channels * p.axes[0].kernel * p.axes[1].kernel * p.axes[2].kernel;
  if (total > 0) start(grad_weight_kernel, blocks_for(total, 1), kSumThreads, 0, stream, p, total);
}

void direct_bias(const Bias& p, Stream stream) {
  if (p.channels > 0) start(bias_kernel, blocks_for(p.channels, 1), kSumThreads, 0, stream, p);
}

void direct_pool(const Pool& p, Stream stream) {
  const int64_t total = p.batch * p.channels * p.axes[0].x * p.axes[1].x * p.axes[2].x;
  if (total > 0) start(pool_kernel, blocks_for(total, kThreads), kThreads, 0, stream, p, total);
}

void direct_pool_forward(const Pool& p, Stream stream) {
  const int64_t total = p.batch * p.channels * p.axes[0].y * p.axes[1].y * p.axes[2].y;
  if (total > 0) start(pool_forward_kernel, blocks_for(total, kThreads), kThreads, 0, stream, p, total);
}

}  // namespace retrograd::kernels::cuda
