// SPDX-License-Identifier: Apache-2.0
// w[kh,kw] = Σ_{n,o} x[n, S·o − P + (kh,kw)] · y[n, o] of one channel.
//
// A block takes one channel and a part of the images. A thread keeps one column of y and all K² sums, and
// walks down rows of x: K values of a row of x meet the last K values of its column of y. At the end the
// block adds the sums of its threads, and a second kernel the parts, both in a fixed order. Bytes: x once, y
// once.
//
// Values of x beyond the edge count as zero, and zero times a y that is not finite is NaN. A column beyond
// the edge is always the same tap of a thread, whose sum is dropped at the end; rows beyond the edge are not
// multiplied.
#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/depthwise.h"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kBandRows = 32;  // of y that a thread walks at a time

struct Planes {
  int channels, images, images_in_part;
  int width;   // threads of a row of y, at most kThreads
  int groups;  // rows that the block walks at once
  int bands;   // of a plane
  int xh, xw, yh, yw;
};

template <class T, int kK, int kS>
__device__ void walk(const T* x, const T* y, const Planes& p, int column, int o_begin, int o_end,
                     float (&sums)[kK][kK]) {
  constexpr int kP = kK / 2;
  const int x0 = column * kS - kP;
  const auto load_row = [&](int i, float(&row)[kK]) {
    const T* at = x + static_cast<int64_t>(i) * p.xw;
#pragma unroll
    for (int k = 0; k < kK; ++k)
      row[k] = static_cast<unsigned>(x0 + k) < static_cast<unsigned>(p.xw) ? to_float(at[x0 + k]) : 0.0f;
  };
  if constexpr (kS == 1) {
    float ring[kK] = {};  // y of rows i + P − kh
    for (int i = o_begin - kP; i < o_end + kK - 1 - kP; ++i) {
#pragma unroll
      for (int kh = kK - 1; kh > 0; --kh) ring[kh] = ring[kh - 1];
      const int newest = i + kP;
      ring[0] = newest < o_end ? to_float(y[static_cast<int64_t>(newest) * p.yw + column]) : 0.0f;
      if (static_cast<unsigned>(i) >= static_cast<unsigned>(p.xh)) continue;
      float row[kK];
      load_row(i, row);
      if (newest < o_end && newest - (kK - 1) >= o_begin) {
#pragma unroll
        for (int kh = 0; kh < kK; ++kh)
#pragma unroll
          for (int kw = 0; kw < kK; ++kw) sums[kh][kw] = fmaf(row[kw], ring[kh], sums[kh][kw]);
      } else {
#pragma unroll
        for (int kh = 0; kh < kK; ++kh) {
          if (newest - kh >= o_end || newest - kh < o_begin) continue;
#pragma unroll
          for (int kw = 0; kw < kK; ++kw) sums[kh][kw] = fmaf(row[kw], ring[kh], sums[kh][kw]);
        }
      }
    }
  } else {
    for (int o = o_begin; o < o_end; ++o) {
      const float value = to_float(y[static_cast<int64_t>(o) * p.yw + column]);
#pragma unroll
      for (int kh = 0; kh < kK; ++kh) {
        const int i = o * kS - kP + kh;
        if (static_cast<unsigned>(i) >= static_cast<unsigned>(p.xh)) continue;
        float row[kK];
        load_row(i, row);
#pragma unroll
        for (int kw = 0; kw < kK; ++kw) sums[kh][kw] = fmaf(row[kw], value, sums[kh][kw]);
      }
    }
  }
}

template <class T, int kK, int kS>
__global__ void __launch_bounds__(kThreads)
    grad_weight_kernel(Planes p, const T* x, const T* y, float* parts) {
  constexpr int kTaps = kK * kK;
  const int channel = static_cast<int>(blockIdx.x), part = static_cast<int>(blockIdx.y);
  const int column = static_cast<int>(blockIdx.z) * p.width + static_cast<int>(threadIdx.x) % p.width;
  const int group = static_cast<int>(threadIdx.x) / p.width;
  const int first = part * p.images_in_part, last = min(first + p.images_in_part, p.images);
  float sums[kK][kK] = {};
  if (group < p.groups && column < p.yw) {
    for (int item = group; item < (last - first) * p.bands; item += p.groups) {
      const int64_t plane = static_cast<int64_t>(first + item / p.bands) * p.channels + channel;
      const int o_begin = item % p.bands * kBandRows;
      walk<T, kK, kS>(x + plane * p.xh * p.xw, y + plane * p.yh * p.yw, p, column, o_begin,
                      min(o_begin + kBandRows, p.yh), sums);
    }
  }
  __shared__ float of_warps[kThreads / 32][kTaps];
#pragma unroll
  for (int kh = 0; kh < kK; ++kh)
#pragma unroll
    for (int kw = 0; kw < kK; ++kw) {
      const bool inside = static_cast<unsigned>(column * kS - kK / 2 + kw) < static_cast<unsigned>(p.xw);
      const float sum = warp_sum(inside ? sums[kh][kw] : 0.0f);
      if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32][kh * kK + kw] = sum;
    }
  __syncthreads();
  if (threadIdx.x >= kTaps) return;
  float sum = 0;
  for (int i = 0; i < kThreads / 32; ++i) sum += of_warps[i][threadIdx.x];
  const int64_t slot = static_cast<int64_t>(part) * gridDim.z + blockIdx.z;
  parts[(slot * p.channels + channel) * kTaps + threadIdx.x] = sum;
}

__global__ void finish_kernel(int64_t weights, int64_t parts, int taps, int kernel, const float* sums,
                              Tensor w) {
  const int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (i >= weights) return;
  float sum = 0;
  for (int64_t part = 0; part < parts; ++part) sum += sums[part * weights + i];
  const int64_t channel = i / taps, tap = i % taps;
  store_any(w.dtype, w.data,
            channel * w.strides[0] + tap / kernel * w.strides[3] + tap % kernel * w.strides[4], sum);
}

int64_t column_tiles(const Conv& conv) { return (conv.axes[2].y + kThreads - 1) / kThreads; }

// So that there are enough blocks, and each has enough rows to make up for its final sums.
int64_t image_parts(const Conv& conv) {
  const int64_t wanted = (1056 + conv.groups * column_tiles(conv) - 1) / (conv.groups * column_tiles(conv));
  const int64_t places =
      conv.batch * conv.axes[1].y * (conv.axes[2].y < kThreads ? conv.axes[2].y : kThreads);
  const int64_t most = places / (kThreads * 16);
  int64_t parts = wanted < most ? wanted : most;
  if (parts > conv.batch) parts = conv.batch;
  return parts < 1 ? 1 : parts;
}

template <class T, int kK, int kS>
void launch(const Conv& conv, float* workspace, Stream stream) {
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  const int64_t parts = image_parts(conv), tiles = column_tiles(conv);
  Planes p;
  p.channels = static_cast<int>(conv.groups);
  p.images = static_cast<int>(conv.batch);
  p.images_in_part = static_cast<int>((conv.batch + parts - 1) / parts);
  p.width = static_cast<int>((w.y + tiles - 1) / tiles);
  p.groups = kThreads / p.width;
  p.bands = static_cast<int>((h.y + kBandRows - 1) / kBandRows);
  p.xh = static_cast<int>(h.x);
  p.xw = static_cast<int>(w.x);
  p.yh = static_cast<int>(h.y);
  p.yw = static_cast<int>(w.y);
  const dim3 grid(static_cast<unsigned>(conv.groups), static_cast<unsigned>(parts),
                  static_cast<unsigned>(tiles));
  grad_weight_kernel<T, kK, kS><<<grid, kThreads, 0, stream>>>(p, static_cast<const T*>(conv.x.data),
                                                               static_cast<const T*>(conv.y.data), workspace);
  const int64_t weights = conv.groups * kK * kK;
  finish_kernel<<<static_cast<unsigned>((weights + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      weights, parts * tiles, kK * kK, kK, workspace, conv.w);
}

template <class T, int kK>
void launch_stride(const Conv& conv, float* workspace, Stream stream) {
  return conv.axes[2].stride == 1 ? launch<T, kK, 1>(conv, workspace, stream)
                                  : launch<T, kK, 2>(conv, workspace, stream);
}

}  // namespace

int64_t depthwise_parts(const Conv& conv) { return image_parts(conv) * column_tiles(conv); }

void depthwise_grad_weight(const Conv& conv, float* workspace, Stream stream) {
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
