// SPDX-License-Identifier: Apache-2.0
// Transposes through tiles of 64 places and 64 channels, and walks over weights.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/formulas.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/results.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 64;

__device__ __noinline__ float by_formula(const Conv& conv, Result result, const Index5& at) {
  switch (result) {
    case Result::kForward:
      return forward_sum(conv, at);
    case Result::kGradInput:
      return grad_input_sum(conv, at);
    case Result::kGradWeight:
      return grad_weight_sum(conv, at, 0, 1);
  }
  return 0;
}

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
__global__ void __launch_bounds__(kThreads)
    take_filter_kernel(const __grid_constant__ Conv conv, Filter p, const E* source, bool repair) {
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < p.total; i += gridDim.x * kThreads) {
    const Index5 at = filter_index(p, i);
    if (at.n >= p.rows || at.c >= p.channels) continue;
    float value = to_float(source[i]);
    if (repair && !isfinite(value)) value = by_formula(conv, Result::kGradWeight, at);
    store_any(conv.w.dtype, conv.w.data, offset_of(conv.w, at), value);
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

// kPairs: the target is of the rows' 16-bit type, and two neighbouring places of it are one aligned word.
template <class E, bool kPairs>
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
  if constexpr (kPairs) {
    const int pair = static_cast<int>(threadIdx.x) % 32 * 2;
    if (place0 + pair >= p.places) return;
    Index5 place = place_index(p, place0 + pair);
    auto* out = static_cast<E*>(target.data) + offset_of(target, place);
#pragma unroll 8
    for (int c = static_cast<int>(threadIdx.x) / 32; c < kTile; c += kThreads / 32) {
      if (channel0 + c >= p.channels) break;
      Pack<E, 2> values{tile[pair][c], tile[pair + 1][c]};
      for (int j = 0; j < 2; ++j)
        if (repair && !isfinite(to_float(values.values[j]))) {
          Index5 at = place_index(p, place0 + pair + j);
          at.c = channel0 + c;
          values.values[j] = from_float<E>(by_formula(conv, result, at));
        }
      *reinterpret_cast<Pack<E, 2>*>(out + (channel0 + c) * target.strides[1]) = values;
    }
    return;
  }
  const int minor = static_cast<int>(threadIdx.x) % kTile, major = static_cast<int>(threadIdx.x) / kTile;
  const bool along_places = target.strides[1] != 1;
  Index5 at{};
  int64_t offset = 0;
  if (along_places) {
    if (place0 + minor >= p.places) return;
    at = place_index(p, place0 + minor);
    offset = offset_of(target, at);
  }
#pragma unroll 8
  for (int i = major; i < kTile; i += kThreads / kTile) {
    const int row = along_places ? minor : i, column = along_places ? i : minor;
    if (place0 + row >= p.places || channel0 + column >= p.channels) continue;
    if (!along_places) {
      at = place_index(p, place0 + row);
      offset = offset_of(target, at);
    }
    float value = to_float(tile[row][column]);
    if (repair && !isfinite(value)) {
      at.c = channel0 + column;
      value = by_formula(conv, result, at);
      at.c = 0;
    }
    store_any(target.dtype, target.data, offset + (channel0 + column) * target.strides[1], value);
  }
}

__global__ void __launch_bounds__(kThreads)
    repair_kernel(const __grid_constant__ Conv conv, Result result, Tensor tensor, Sizes s, int64_t total) {
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < total;
       i += int64_t{gridDim.x} * kThreads) {
    const Index5 at = split(i, s.c, s.d, s.h, s.w);
    const int64_t offset = offset_of(tensor, at);
    if (!isfinite(load_any(tensor.dtype, tensor.data, offset)))
      store_any(tensor.dtype, tensor.data, offset, by_formula(conv, result, at));
  }
}

// Dense tensors: the element at a place of the memory is found only for what is not finite.
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads)
    scan_kernel(const __grid_constant__ Conv conv, Result result, Tensor tensor, Sizes s, int64_t vectors,
                bool channels_last) {
  auto* data = static_cast<T*>(tensor.data);
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < vectors;
       i += int64_t{gridDim.x} * kThreads) {
    float values[kCount];
    load_pack<T, kCount>(data + i * kCount, values);
    bool finite = true;
#pragma unroll
    for (int j = 0; j < kCount; ++j) finite = finite && isfinite(values[j]);
    if (finite) continue;
    for (int j = 0; j < kCount; ++j) {
      if (isfinite(values[j])) continue;
      const int64_t flat = i * kCount + j;
      Index5 at = split(channels_last ? flat / s.c : flat, channels_last ? 1 : s.c, s.d, s.h, s.w);
      if (channels_last) at.c = flat % s.c;
      data[flat] = from_float<T>(by_formula(conv, result, at));
    }
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

bool has_pairs(const Tensor& t, const Sizes& s) {
  return t.strides[4] == 1 && s.d * s.h * s.w % 2 == 0 && (s.h == 1 || t.strides[3] == s.w) &&
         (s.d == 1 || t.strides[2] == s.h * s.w) && t.strides[0] % 2 == 0 && t.strides[1] % 2 == 0 &&
         reinterpret_cast<uintptr_t>(t.data) % 4 == 0;
}

DType dtype_of(RowType type) {
  return type == RowType::kF16 ? DType::kF16 : type == RowType::kBF16 ? DType::kBF16 : DType::kF32;
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
  if (total % kWide == 0 && reinterpret_cast<uintptr_t>(tensor.data) % 16 == 0)
    return scan_kernel<T, kWide><<<blocks_for(total / kWide), kThreads, 0, stream>>>(
        conv, result, tensor, s, total / kWide, channels_last);
  scan_kernel<T, 1>
      <<<blocks_for(total), kThreads, 0, stream>>>(conv, result, tensor, s, total, channels_last);
}

}  // namespace

void make_filter(const Conv& conv, int64_t y_filled, int64_t x_filled, RowType type, void* target,
                 Stream stream) {
  const Filter p = filter_of(conv, y_filled, x_filled);
  if (type == RowType::kF16)
    make_filter_kernel<<<blocks_for(p.total), kThreads, 0, stream>>>(p, conv.w, static_cast<__half*>(target));
  else
    make_filter_kernel<<<blocks_for(p.total), kThreads, 0, stream>>>(p, conv.w,
                                                                     static_cast<__nv_bfloat16*>(target));
}

void take_filter(const Conv& conv, int64_t y_filled, int64_t x_filled, RowType type, const void* source,
                 bool repair, Stream stream) {
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
  Places p;
  p.places = s.n * s.d * s.h * s.w;
  p.channels = s.c;
  p.filled = filled;
  p.w = FastDiv(s.w);
  p.h = FastDiv(s.h);
  p.d = FastDiv(s.d);
  const Tensor& target = tensor_of(conv, result);
  const dim3 grid(static_cast<unsigned>((p.places + kTile - 1) / kTile),
                  static_cast<unsigned>((p.channels + kTile - 1) / kTile));
  with_row_type(type, [&](auto element) {
    using E = decltype(element);
    if (sizeof(E) == 2 && target.dtype == dtype_of(type) && has_pairs(target, s))
      return take_rows_kernel<E, sizeof(E) == 2>
          <<<grid, kThreads, 0, stream>>>(conv, result, target, p, static_cast<const E*>(rows), repair);
    take_rows_kernel<E, false>
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
