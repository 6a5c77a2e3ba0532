// SPDX-License-Identifier: Apache-2.0
// For any strides and types: transposes through tiles of 64 places and 64 channels, and walks over weights.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/layout/plane_rows.h"
#include "kernels/cuda/layout/results.h"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/repair.cuh"

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

__device__ const Tensor& stored_in(const Conv& conv, Result result) {
  return result == Result::kForward ? conv.y : result == Result::kGradInput ? conv.x : conv.w;
}
// All lanes of a warp must call it; suspect: what this lane has stored is NaN.
__device__ __noinline__ void repair_stored(const Conv& conv, Result result, bool suspect, const Index5& at) {
  const Tensor& t = stored_in(conv, result);
  repair_in_warp(conv, result, suspect, at,
                 [&](float sum) { store_any(t.dtype, t.data, offset_of(t, at), sum); });
}

template <class E>
__global__ void __launch_bounds__(kThreads)
    take_filter_kernel(const __grid_constant__ Conv conv, Filter p, const E* source, bool repair) {
  for (uint32_t first = blockIdx.x * kThreads; first < p.total; first += gridDim.x * kThreads) {
    const uint32_t i = first + threadIdx.x;
    const Index5 at = filter_index(p, i);
    const bool there = i < p.total && at.n < p.rows && at.c < p.channels;
    const float value = there ? to_float(source[i]) : 0.0f;
    if (there) store_any(conv.w.dtype, conv.w.data, offset_of(conv.w, at), value);
    if (repair && __any_sync(~0u, isnan(value))) repair_stored(conv, Result::kGradWeight, isnan(value), at);
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
__global__ void __launch_bounds__(kThreads)
    take_rows_kernel(const __grid_constant__ Conv conv, Result result, Tensor target, Places p, const E* rows,
                     bool repair) {
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
  Index5 at{};
  int64_t offset = 0;
  if (along_places) {
    at = place_index(p, min(place0 + minor, p.places - 1));
    offset = offset_of(target, at);
  }
#pragma unroll 8
  for (int i = major; i < kTile; i += kThreads / kTile) {
    const int row = along_places ? minor : i, column = along_places ? i : minor;
    const bool there = place0 + row < p.places && channel0 + column < p.channels;
    if (!along_places) {
      at = place_index(p, min(place0 + row, p.places - 1));
      offset = offset_of(target, at);
    }
    const float value = there ? to_float(tile[row][column]) : 0.0f;
    if (there) store_any(target.dtype, target.data, offset + (channel0 + column) * target.strides[1], value);
    if (repair && __any_sync(~0u, isnan(value)))
      repair_stored(conv, result, isnan(value), {at.n, channel0 + column, at.d, at.h, at.w});
  }
}

__global__ void __launch_bounds__(kThreads)
    repair_kernel(const __grid_constant__ Conv conv, Result result, Tensor tensor, Sizes s, int64_t total) {
  for (int64_t first = blockIdx.x * int64_t{kThreads}; first < total;
       first += int64_t{gridDim.x} * kThreads) {
    const int64_t i = first + threadIdx.x;
    const Index5 at = split(i, s.c, s.d, s.h, s.w);
    const bool suspect = i < total && isnan(load_any(tensor.dtype, tensor.data, offset_of(tensor, at)));
    if (__any_sync(~0u, suspect)) repair_stored(conv, result, suspect, at);
  }
}

// Dense tensors: the element at a place of the memory is found only for what is NaN. All lanes of a warp must
// call it; count: of this lane.
template <class T, int kMost>
__device__ __noinline__ void repair_places(const Conv& conv, Result result, const Sizes& s, const T* data,
                                           int64_t first, int count, bool channels_last) {
  for (int j = 0; j < kMost; ++j) {
    const int64_t flat = first + j;
    const bool suspect = j < count && isnan(to_float(data[flat]));
    if (!__any_sync(~0u, suspect)) continue;
    Index5 at = split(channels_last ? flat / s.c : flat, channels_last ? 1 : s.c, s.d, s.h, s.w);
    if (channels_last) at.c = flat % s.c;
    repair_stored(conv, result, suspect, at);
  }
}

// Eight blocks a multiprocessor, whatever the formula wants.
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads, 8)
    scan_kernel(const __grid_constant__ Conv conv, Result result, const __grid_constant__ Sizes s, T* data,
                int64_t vectors, bool channels_last) {
  for (int64_t first = blockIdx.x * int64_t{kThreads}; first < vectors;
       first += int64_t{gridDim.x} * kThreads) {
    const int64_t i = first + threadIdx.x;
    float values[kCount] = {};
    if (i < vectors) load_pack<T, kCount>(data + i * kCount, values);
    bool suspect = false;
#pragma unroll
    for (int j = 0; j < kCount; ++j) suspect = suspect || isnan(values[j]);
    if (__any_sync(~0u, suspect))
      repair_places<T, kCount>(conv, result, s, data, i * kCount, suspect ? kCount : 0, channels_last);
  }
}

bool is_dense(const Tensor& t, const Sizes& s, bool channels_last) {
  const int64_t sizes[5] = {s.n, s.c, s.d, s.h, s.w};
  const int first[5] = {4, 3, 2, 1, 0}, last[5] = {1, 4, 3, 2, 0};
  int64_t stride = 1;
  for (int axis : channels_last ? last : first) {
    if (sizes[axis] != 1 && t.strides[axis] != stride) return false;
    stride *= sizes[axis];
  }
  return true;
}

template <class Function>
void with_row_type(RowType type, Function&& function) {
  switch (type) {
    case RowType::kF16:
      return function(__half{});
    case RowType::kBF16:
      return function(__nv_bfloat16{});
    case RowType::kF32:
      return function(float{});
  }
}

template <class T>
void launch_scan(const Conv& conv, Result result, bool channels_last, Stream stream) {
  const Tensor& tensor = tensor_of(conv, result);
  const Sizes s = sizes_of(conv, result);
  const int64_t total = s.n * s.c * s.d * s.h * s.w;
  constexpr int kWide = 16 / sizeof(T);
  T* data = static_cast<T*>(tensor.data);
  const bool wide = total % kWide == 0 && reinterpret_cast<uintptr_t>(tensor.data) % 16 == 0;
  const int64_t vectors = wide ? total / kWide : total;
  const auto kernel = wide ? scan_kernel<T, kWide> : scan_kernel<T, 1>;
  kernel<<<blocks_for(vectors), kThreads, 0, stream>>>(conv, result, s, data, vectors, channels_last);
}

}  // namespace

void make_filter(const Conv& conv, int64_t y_filled, int64_t x_filled, RowType type, void* target,
                 Stream stream) {
  PlaneRows planes = planes_of(sizes_of(conv, Result::kGradWeight), y_filled, x_filled);
  if (has_planes(conv.w, type, planes)) return planes_to_rows(planes, conv.w.data, target, stream);
  const Filter p = filter_of(conv, y_filled, x_filled);
  if (type == RowType::kF16)
    make_filter_kernel<<<blocks_for(p.total), kThreads, 0, stream>>>(p, conv.w, static_cast<__half*>(target));
  else
    make_filter_kernel<<<blocks_for(p.total), kThreads, 0, stream>>>(p, conv.w,
                                                                     static_cast<__nv_bfloat16*>(target));
}

void take_filter(const Conv& conv, int64_t y_filled, int64_t x_filled, RowType type, const void* source,
                 bool repair, Stream stream) {
  PlaneRows planes = planes_of(sizes_of(conv, Result::kGradWeight), y_filled, x_filled);
  if (has_planes(conv.w, type, planes))
    return rows_to_planes(planes, conv, Result::kGradWeight, source, repair, stream);
  const Filter p = filter_of(conv, y_filled, x_filled);
  if (type == RowType::kF16)
    take_filter_kernel<<<blocks_for(p.total), kThreads, 0, stream>>>(
        conv, p, static_cast<const __half*>(source), repair);
  else
    take_filter_kernel<<<blocks_for(p.total), kThreads, 0, stream>>>(
        conv, p, static_cast<const __nv_bfloat16*>(source), repair);
}

void take_rows(const Conv& conv, Result result, int64_t filled, RowType type, const void* rows, bool repair,
               Stream stream) {
  const Sizes s = sizes_of(conv, result);
  const Tensor& target = tensor_of(conv, result);
  PlaneRows planes = planes_of(s, s.n, filled);
  if (has_planes(target, type, planes)) return rows_to_planes(planes, conv, result, rows, repair, stream);
  Places p;
  p.places = s.n * s.d * s.h * s.w;
  p.channels = s.c;
  p.filled = filled;
  p.w = FastDiv(s.w);
  p.h = FastDiv(s.h);
  p.d = FastDiv(s.d);
  const dim3 grid(static_cast<unsigned>((p.places + kTile - 1) / kTile),
                  static_cast<unsigned>((p.channels + kTile - 1) / kTile));
  with_row_type(type, [&](auto element) {
    using E = decltype(element);
    take_rows_kernel<E>
        <<<grid, kThreads, 0, stream>>>(conv, result, target, p, static_cast<const E*>(rows), repair);
  });
}

void repair_result(const Conv& conv, Result result, Stream stream) {
  const Sizes s = sizes_of(conv, result);
  const Tensor& tensor = tensor_of(conv, result);
  const bool planes = is_dense(tensor, s, false);
  if (planes || is_dense(tensor, s, true)) {
    if (tensor.dtype == DType::kF32) return launch_scan<float>(conv, result, !planes, stream);
    if (tensor.dtype == DType::kF16) return launch_scan<__half>(conv, result, !planes, stream);
    if (tensor.dtype == DType::kBF16) return launch_scan<__nv_bfloat16>(conv, result, !planes, stream);
  }
  const int64_t total = s.n * s.c * s.d * s.h * s.w;
  repair_kernel<<<blocks_for(total), kThreads, 0, stream>>>(conv, result, tensor, s, total);
}

}  // namespace retrograd::kernels::cuda
