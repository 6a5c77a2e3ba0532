// SPDX-License-Identifier: Apache-2.0
// For any strides and types: transposes through tiles of 64 pixels and 64 channels, and walks over weights.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/layout/channel_rows.h"
#include "kernels/cuda/layout/plane_rows.h"
#include "kernels/cuda/layout/relayout.h"
#include "kernels/cuda/terms.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 64;

unsigned blocks_for(int64_t items) {
  const int64_t blocks = (items + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < 16384 ? blocks : 16384);
}

struct Sizes {
  int64_t n, c, d, h, w;
};
Sizes sizes_of(const Conv& conv, Result result) {
  const Axis(&a)[3] = conv.axes;
  switch (result) {
    case Result::kForward:
      return {conv.batch, conv.groups * conv.y_channels, a[0].y, a[1].y, a[2].y};
    case Result::kGradInput:
      return {conv.batch, conv.groups * conv.x_channels, a[0].x, a[1].x, a[2].x};
    case Result::kGradWeight:
      break;
  }
  return {conv.groups * conv.y_channels, conv.x_channels, a[0].kernel, a[1].kernel, a[2].kernel};
}
const Tensor& tensor_of(const Conv& conv, Result result) {
  return result == Result::kForward ? conv.y : result == Result::kGradInput ? conv.x : conv.w;
}

bool is_dense_channels_last(const Tensor& t, const Sizes& s) {
  const int64_t sizes[5] = {s.n, s.d, s.h, s.w, s.c},
                strides[5] = {t.strides[0], t.strides[2], t.strides[3], t.strides[4], t.strides[1]};
  int64_t stride = 1;
  for (int i = 4; i >= 0; stride *= sizes[i--])
    if (sizes[i] != 1 && strides[i] != stride) return false;
  return true;
}

PlaneRows planes_of(const Sizes& s, int64_t filled_outer, int64_t filled_channels) {
  return {s.n, s.c, {s.d, s.h, s.w}, 0, 0, filled_outer, filled_channels};
}

// ---- weights

struct Filter {
  uint32_t total;
  int64_t rows, channels;
  FastDiv x_filled, kw, kh, kd;
};
Filter filter_of(const Conv& conv, int64_t y_filled, int64_t x_filled) {
  const Axis(&a)[3] = conv.axes;
  const int64_t taps = a[0].kernel * a[1].kernel * a[2].kernel;
  return {static_cast<uint32_t>(y_filled * taps * x_filled),
          conv.groups * conv.y_channels,
          conv.x_channels,
          FastDiv(x_filled),
          FastDiv(a[2].kernel),
          FastDiv(a[1].kernel),
          FastDiv(a[0].kernel)};
}
__device__ Index5 filter_index(const Filter& p, uint32_t channel) {
  uint32_t w = p.x_filled.split(channel);
  uint32_t h = p.kw.split(w);
  uint32_t d = p.kh.split(h);
  const uint32_t row = p.kd.split(d);
  return {row, channel, d, h, w};
}

template <class E>
__global__ void __launch_bounds__(kThreads) make_filter_kernel(Filter p, Tensor w, E* target) {
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < p.total; i += gridDim.x * kThreads) {
    const Index5 at = filter_index(p, i);
    const bool there = at.n < p.rows && at.c < p.channels;
    target[i] = from_float<E>(there ? load_any(w.dtype, w.data, offset_of(w, at)) : 0.0f);
  }
}

template <class E>
__global__ void __launch_bounds__(kThreads) take_filter_kernel(Filter p, Tensor w, const E* source) {
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < p.total; i += gridDim.x * kThreads) {
    const Index5 at = filter_index(p, i);
    if (at.n < p.rows && at.c < p.channels) store_any(w.dtype, w.data, offset_of(w, at), to_float(source[i]));
  }
}

// ---- rows

struct Places {
  int64_t places, channels, filled;
  FastDiv w, h, d;
};
__device__ Index5 place_index(const Places& p, int64_t place) {
  auto w = static_cast<uint32_t>(place);
  uint32_t h = p.w.split(w);
  uint32_t d = p.h.split(h);
  const uint32_t n = p.d.split(d);
  return {n, 0, d, h, w};
}

template <class E>
__global__ void __launch_bounds__(kThreads) take_rows_kernel(Tensor target, Places p, const E* rows) {
  constexpr int kChunk = 16 / sizeof(E);
  constexpr int kPitch = kTile + 4 / sizeof(E);
  __shared__ __align__(16) E tile[kTile][kPitch];
  const int64_t place0 = blockIdx.x * int64_t{kTile}, channel0 = blockIdx.y * int64_t{kTile};
  for (int i = threadIdx.x; i < kTile * (kTile / kChunk); i += kThreads) {
    const int chunk = i % (kTile / kChunk), row = i / (kTile / kChunk);
    const int64_t place = place0 + row, channel = channel0 + chunk * kChunk;
    if (place >= p.places || channel >= p.filled) continue;
    const auto pack = *reinterpret_cast<const uint4*>(rows + place * p.filled + channel);
    auto* words = reinterpret_cast<uint32_t*>(&tile[row][chunk * kChunk]);
    words[0] = pack.x, words[1] = pack.y, words[2] = pack.z, words[3] = pack.w;
  }
  __syncthreads();
  const int minor = static_cast<int>(threadIdx.x) % kTile, major = static_cast<int>(threadIdx.x) / kTile;
  const bool along_places = target.strides[1] != 1;
  int64_t offset = along_places ? offset_of(target, place_index(p, min(place0 + minor, p.places - 1))) : 0;
#pragma unroll 8
  for (int i = major; i < kTile; i += kThreads / kTile) {
    const int row = along_places ? minor : i, column = along_places ? i : minor;
    if (place0 + row >= p.places || channel0 + column >= p.channels) continue;
    if (!along_places) offset = offset_of(target, place_index(p, place0 + row));
    store_any(target.dtype, target.data, offset + (channel0 + column) * target.strides[1],
              to_float(tile[row][column]));
  }
}

}  // namespace

void make_filter(const Conv& conv, int64_t y_filled, int64_t x_filled, RowType type, void* target,
                 Stream stream) {
  PlaneRows planes = planes_of(sizes_of(conv, Result::kGradWeight), y_filled, x_filled);
  if (has_planes(conv.w, type, planes)) return planes_to_rows(planes, conv.w.data, target, stream);
  const Filter p = filter_of(conv, y_filled, x_filled);
  with_half(dtype_of(type), [&](auto e) {
    start(make_filter_kernel<decltype(e)>, blocks_for(p.total), kThreads, 0, stream, p, conv.w, target);
  });
}

void take_filter(const Conv& conv, int64_t y_filled, int64_t x_filled, RowType type, const void* source,
                 Stream stream) {
  PlaneRows planes = planes_of(sizes_of(conv, Result::kGradWeight), y_filled, x_filled);
  if (has_planes(conv.w, type, planes)) return rows_to_planes(planes, source, conv.w.data, stream);
  const Filter p = filter_of(conv, y_filled, x_filled);
  with_half(dtype_of(type), [&](auto e) {
    start(take_filter_kernel<decltype(e)>, blocks_for(p.total), kThreads, 0, stream, p, conv.w, source);
  });
}

void take_rows(const Conv& conv, Result result, int64_t filled, RowType type, const void* rows,
               Stream stream) {
  const Sizes s = sizes_of(conv, result);
  const Tensor& target = tensor_of(conv, result);
  PlaneRows planes = planes_of(s, s.n, filled);
  if (has_planes(target, type, planes)) return rows_to_planes(planes, rows, target.data, stream);
  const int64_t places = s.n * s.d * s.h * s.w;
  if (is_dense_channels_last(target, s) && target.dtype == dtype_of(type) &&
      change_row_pitch({places, s.c, filled, s.c}, target.dtype, rows, target.data, stream))
    return;
  Places p;
  p.places = places;
  p.channels = s.c;
  p.filled = filled;
  p.w = FastDiv(s.w);
  p.h = FastDiv(s.h);
  p.d = FastDiv(s.d);
  with_type(dtype_of(type), [&](auto element) {
    using E = decltype(element);
    start(take_rows_kernel<E>, {(p.places + kTile - 1) / kTile, (p.channels + kTile - 1) / kTile}, kThreads,
          0, stream, target, p, rows);
  });
}

}  // namespace retrograd::kernels::cuda
