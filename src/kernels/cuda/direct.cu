// SPDX-License-Identifier: Apache-2.0
// The sums of problem/pass.h as they stand there. forward, grad_input and pooling: a thread an element.
// grad_weight and grad_bias: a block an element, its threads share the positions and add up in a fixed tree.
// Sums over channels or rows are kept apart before they are added, which keeps FP32 accurate over long sums.
#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/direct.h"
#include "kernels/cuda/elements.cuh"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kSumThreads = 128;
constexpr int64_t kMostBlocks = 1 << 16;

struct Source {
  const void* data;
  DType dtype;
  OperandRounding rounding;
  __device__ Source(const Tensor& tensor, OperandRounding r)
      : data(tensor.data), dtype(tensor.dtype), rounding(r) {}
  __device__ float operator()(int64_t offset) const {
    return round_operand(rounding, load_any(dtype, data, offset));
  }
};

struct Range {
  int64_t begin, end;
};

__device__ int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }
__device__ int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

__device__ Range clamped(int64_t begin, int64_t end, int64_t highest) {
  begin = max(int64_t{0}, min(begin, highest));
  return {begin, max(begin, min(end, highest))};
}
__device__ Range live_taps(const Axis& a, int64_t output) {
  const int64_t start = output * a.stride - a.pad;
  return clamped(ceil_div(-start, a.dilation), ceil_div(a.x - start, a.dilation), a.kernel);
}
__device__ Range live_outputs(const Axis& a, int64_t tap) {
  const int64_t shift = tap * a.dilation - a.pad;
  return clamped(ceil_div(-shift, a.stride), ceil_div(a.x - shift, a.stride), a.y);
}
// −1: none
__device__ int64_t output_reading(const Axis& a, int64_t index, int64_t tap) {
  const int64_t scaled = index + a.pad - tap * a.dilation;
  if (scaled < 0 || scaled % a.stride != 0) return -1;
  const int64_t output = scaled / a.stride;
  return output < a.y ? output : -1;
}

struct Index5 {
  int64_t n, c, d, h, w;
};
__device__ Index5 split(int64_t flat, int64_t c, int64_t d, int64_t h, int64_t w) {
  Index5 i;
  i.w = flat % w;
  flat /= w;
  i.h = flat % h;
  flat /= h;
  i.d = flat % d;
  flat /= d;
  i.c = flat % c;
  i.n = flat / c;
  return i;
}
__device__ int64_t offset_of(const Tensor& t, const Index5& i) {
  return i.n * t.strides[0] + i.c * t.strides[1] + i.d * t.strides[2] + i.h * t.strides[3] +
         i.w * t.strides[4];
}

__global__ void forward_kernel(Conv p, int64_t total) {
  const Source x(p.x, p.rounding), w(p.w, p.rounding);
  const auto& [ad, ah, aw] = p.axes;
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < total;
       i += int64_t{gridDim.x} * kThreads) {
    const Index5 at = split(i, p.groups * p.y_channels, ad.y, ah.y, aw.y);
    const Range td = live_taps(ad, at.d), th = live_taps(ah, at.h), tw = live_taps(aw, at.w);
    const int64_t first = at.c / p.y_channels * p.x_channels;
    float sum = 0;
    for (int64_t d = td.begin; d < td.end; ++d)
      for (int64_t h = th.begin; h < th.end; ++h)
        for (int64_t k = tw.begin; k < tw.end; ++k) {
          const int64_t xo = offset_of(p.x, {at.n, first, at.d * ad.stride - ad.pad + d * ad.dilation,
                                             at.h * ah.stride - ah.pad + h * ah.dilation,
                                             at.w * aw.stride - aw.pad + k * aw.dilation});
          const int64_t wo = offset_of(p.w, {at.c, 0, d, h, k});
          float over_channels = 0;
          for (int64_t c = 0; c < p.x_channels; ++c)
            over_channels = fmaf(x(xo + c * p.x.strides[1]), w(wo + c * p.w.strides[1]), over_channels);
          sum += over_channels;
        }
    store_any(p.y.dtype, p.y.data, offset_of(p.y, at), sum);
  }
}

__global__ void grad_input_kernel(Conv p, int64_t total) {
  const Source y(p.y, p.rounding), w(p.w, p.rounding);
  const auto& [ad, ah, aw] = p.axes;
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < total;
       i += int64_t{gridDim.x} * kThreads) {
    const Index5 at = split(i, p.groups * p.x_channels, ad.x, ah.x, aw.x);
    const int64_t first = at.c / p.x_channels * p.y_channels, in_group = at.c % p.x_channels;
    float sum = 0;
    for (int64_t d = 0; d < ad.kernel; ++d) {
      const int64_t od = output_reading(ad, at.d, d);
      if (od < 0) continue;
      for (int64_t h = 0; h < ah.kernel; ++h) {
        const int64_t oh = output_reading(ah, at.h, h);
        if (oh < 0) continue;
        for (int64_t k = 0; k < aw.kernel; ++k) {
          const int64_t ow = output_reading(aw, at.w, k);
          if (ow < 0) continue;
          const int64_t yo = offset_of(p.y, {at.n, first, od, oh, ow});
          const int64_t wo = offset_of(p.w, {first, in_group, d, h, k});
          float over_channels = 0;
          for (int64_t c = 0; c < p.y_channels; ++c)
            over_channels = fmaf(y(yo + c * p.y.strides[1]), w(wo + c * p.w.strides[0]), over_channels);
          sum += over_channels;
        }
      }
    }
    store_any(p.x.dtype, p.x.data, offset_of(p.x, at), sum);
  }
}

__global__ void grad_weight_kernel(Conv p, int64_t total) {
  const Source x(p.x, p.rounding), y(p.y, p.rounding);
  const auto& [ad, ah, aw] = p.axes;
  for (int64_t i = blockIdx.x; i < total; i += gridDim.x) {
    const Index5 at = split(i, p.x_channels, ad.kernel, ah.kernel, aw.kernel);
    const int64_t x_channel = at.n / p.y_channels * p.x_channels + at.c;
    const Range rd = live_outputs(ad, at.d), rh = live_outputs(ah, at.h), rw = live_outputs(aw, at.w);
    const int64_t rows = p.batch * (rd.end - rd.begin) * (rh.end - rh.begin), width = rw.end - rw.begin;
    float sum = 0, part = 0;
    int terms = 0;
    for (int64_t at_place = threadIdx.x; at_place < rows * width; at_place += kSumThreads) {
      const Index5 o = split(at_place, 1, rd.end - rd.begin, rh.end - rh.begin, width);
      const int64_t od = rd.begin + o.d, oh = rh.begin + o.h, ow = rw.begin + o.w;
      const float xv = x(offset_of(
          p.x, {o.n, x_channel, od * ad.stride - ad.pad + at.d * ad.dilation,
                oh * ah.stride - ah.pad + at.h * ah.dilation, ow * aw.stride - aw.pad + at.w * aw.dilation}));
      part = fmaf(xv, y(offset_of(p.y, {o.n, at.n, od, oh, ow})), part);
      if (++terms % 64 == 0) {
        sum += part;
        part = 0;
      }
    }
    sum = block_sum<kSumThreads>(sum + part);
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
          const float divisor = p.divisor_override != 0 ? static_cast<float>(p.divisor_override)
                                                        : pooled_count(ad, d, p.count_include_pad) *
                                                              pooled_count(ah, h, p.count_include_pad) *
                                                              pooled_count(aw, w, p.count_include_pad);
          sum += load_any(p.grad_output.dtype, p.grad_output.data,
                          offset_of(p.grad_output, {at.n, at.c, d, h, w})) /
                 divisor;
        }
    store_any(p.grad_input.dtype, p.grad_input.data, offset_of(p.grad_input, at), sum);
  }
}

unsigned blocks_for(int64_t items, int64_t each) {
  const int64_t blocks = (items + each - 1) / each;
  return static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
}

}  // namespace

void direct_forward(const Conv& p, Stream stream) {
  const int64_t total = p.batch * p.groups * p.y_channels * p.axes[0].y * p.axes[1].y * p.axes[2].y;
  if (total > 0) forward_kernel<<<blocks_for(total, kThreads), kThreads, 0, stream>>>(p, total);
}

void direct_grad_input(const Conv& p, Stream stream) {
  const int64_t total = p.batch * p.groups * p.x_channels * p.axes[0].x * p.axes[1].x * p.axes[2].x;
  if (total > 0) grad_input_kernel<<<blocks_for(total, kThreads), kThreads, 0, stream>>>(p, total);
}

void direct_grad_weight(const Conv& p, Stream stream) {
  const int64_t total =
      p.groups * p.y_channels * p.x_channels * p.axes[0].kernel * p.axes[1].kernel * p.axes[2].kernel;
  if (total > 0) grad_weight_kernel<<<blocks_for(total, 1), kSumThreads, 0, stream>>>(p, total);
}

void direct_bias(const Bias& p, Stream stream) {
  if (p.channels > 0) bias_kernel<<<blocks_for(p.channels, 1), kSumThreads, 0, stream>>>(p);
}

void direct_pool(const Pool& p, Stream stream) {
  const int64_t total = p.batch * p.channels * p.axes[0].x * p.axes[1].x * p.axes[2].x;
  if (total > 0) pool_kernel<<<blocks_for(total, kThreads), kThreads, 0, stream>>>(p, total);
}

}  // namespace retrograd::kernels::cuda
