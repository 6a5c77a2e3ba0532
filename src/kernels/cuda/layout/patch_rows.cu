// SPDX-License-Identifier: Apache-2.0
// rows[n, p, c, tap] = x[n, c, place(p, tap)]
//
// A thread writes the same 16 bytes of kPlaces rows: where its columns lie in x it finds out once.
// Neighbouring lanes write neighbouring chunks of a row, then of the next row; reads that lie apart meet in
// L1, since the windows of a block's rows are neighbours. Bytes: the rows once, x about once.
#include <algorithm>

#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/layout/patch_rows.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPlaces = 8;      // rows of a thread
constexpr int kMostLanes = 32;  // along a row

struct Patches {
  const void* data;
  DType dtype;
  OperandRounding rounding;
  int64_t strides[5];
  FastDiv outputs[3];
  int stride[3], dilation[3], pad[3], source[3], kernel[3];
  uint32_t places;
  int taps, columns, chunks, groups, lanes;  // chunks: of a group
  int64_t x_channels, row;                   // row: elements from place to place
};

template <class S>
__device__ float read(const Patches& p, int64_t offset) {
  return round_operand(p.rounding, to_float(static_cast<const S*>(p.data)[offset]));
}
struct Any {};
template <>
__device__ inline float read<Any>(const Patches& p, int64_t offset) {
  return round_operand(p.rounding, load_any(p.dtype, p.data, offset));
}

template <class S, class E>
__global__ void __launch_bounds__(kThreads) patches_kernel(const __grid_constant__ Patches p, E* target) {
  constexpr int kChunk = 16 / sizeof(E);
  const int chunk = static_cast<int>(blockIdx.y) * p.lanes + static_cast<int>(threadIdx.x) % p.lanes;
  const int64_t group = blockIdx.z;
  if (chunk >= p.chunks) return;
  // Of a column: its tap's distance from tap 0 along the axes, and in memory; dead ones read nothing.
  int shift[kChunk][3];
  int64_t offset[kChunk];
#pragma unroll
  for (int e = 0; e < kChunk; ++e) {
    const int column = chunk * kChunk + e, channel = column / p.taps, tap = column % p.taps;
    // Beyond every edge for columns that are not there.
    shift[e][0] = column < p.columns ? tap / (p.kernel[1] * p.kernel[2]) * p.dilation[0] : -(1 << 30);
    shift[e][1] = tap / p.kernel[2] % p.kernel[1] * p.dilation[1];
    shift[e][2] = tap % p.kernel[2] * p.dilation[2];
    offset[e] = (group * p.x_channels + channel) * p.strides[1] + shift[e][0] * p.strides[2] +
                shift[e][1] * p.strides[3] + shift[e][2] * p.strides[4];
  }
  const uint32_t down = kThreads / p.lanes;
  uint32_t place = blockIdx.x * (down * kPlaces) + threadIdx.x / p.lanes;
  E* to = target + place * p.row + (group * p.chunks + chunk) * kChunk;
  for (int i = 0; i < kPlaces && place < p.places; ++i, place += down, to += down * p.row) {
    uint32_t w = place;
    uint32_t h = p.outputs[2].split(w);
    uint32_t d = p.outputs[1].split(h);
    const uint32_t n = p.outputs[0].split(d);
    const int sd = static_cast<int>(d) * p.stride[0] - p.pad[0],
              sh = static_cast<int>(h) * p.stride[1] - p.pad[1],
              sw = static_cast<int>(w) * p.stride[2] - p.pad[2];
    const int64_t at = n * p.strides[0] + sd * p.strides[2] + sh * p.strides[3] + sw * p.strides[4];
    __align__(16) E values[kChunk];
#pragma unroll
    for (int e = 0; e < kChunk; ++e) {
      const bool inside = static_cast<unsigned>(sd + shift[e][0]) < static_cast<unsigned>(p.source[0]) &&
                          static_cast<unsigned>(sh + shift[e][1]) < static_cast<unsigned>(p.source[1]) &&
                          static_cast<unsigned>(sw + shift[e][2]) < static_cast<unsigned>(p.source[2]);
      values[e] = from_float<E>(inside ? read<S>(p, at + offset[e]) : 0.0f);
    }
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(values);
  }
}

template <class E>
void launch(const Conv& conv, RowType type, void* target, Stream stream) {
  Patches p;
  p.data = conv.x.data;
  p.dtype = conv.x.dtype;
  p.rounding = conv.rounding;
  std::copy(conv.x.strides, conv.x.strides + 5, p.strides);
  int64_t places = conv.batch, taps = 1;
  for (int a = 0; a < 3; ++a) {
    const Axis& axis = conv.axes[a];
    p.outputs[a] = FastDiv(axis.y);
    p.stride[a] = static_cast<int>(axis.stride);
    p.dilation[a] = static_cast<int>(axis.dilation);
    p.pad[a] = static_cast<int>(axis.pad);
    p.source[a] = static_cast<int>(axis.x);
    p.kernel[a] = static_cast<int>(axis.kernel);
    places *= axis.y;
    taps *= axis.kernel;
  }
  const int64_t chunk = chunk_elements(type);
  p.places = static_cast<uint32_t>(places);
  p.taps = static_cast<int>(taps);
  p.columns = static_cast<int>(conv.x_channels * taps);
  p.chunks = static_cast<int>((p.columns + chunk - 1) / chunk);
  p.groups = static_cast<int>(conv.groups);
  p.x_channels = conv.x_channels;
  p.row = p.groups * p.chunks * chunk;
  p.lanes = 1;
  while (p.lanes < kMostLanes && p.lanes < p.chunks) p.lanes *= 2;
  const int64_t rows = kThreads / p.lanes * int64_t{kPlaces};
  const dim3 grid(static_cast<unsigned>((places + rows - 1) / rows),
                  static_cast<unsigned>((p.chunks + p.lanes - 1) / p.lanes), static_cast<unsigned>(p.groups));
  E* to = static_cast<E*>(target);
  switch (conv.x.dtype) {
    case DType::kF32:
      return patches_kernel<float, E><<<grid, kThreads, 0, stream>>>(p, to);
    case DType::kF16:
      return patches_kernel<__half, E><<<grid, kThreads, 0, stream>>>(p, to);
    case DType::kBF16:
      return patches_kernel<__nv_bfloat16, E><<<grid, kThreads, 0, stream>>>(p, to);
    case DType::kHiF8:
    case DType::kE4M3:
      return patches_kernel<Any, E><<<grid, kThreads, 0, stream>>>(p, to);
  }
}

}  // namespace

void make_patch_rows(const Conv& conv, RowType type, void* target, Stream stream) {
  switch (type) {
    case RowType::kF16:
      return launch<__half>(conv, type, target, stream);
    case RowType::kBF16:
      return launch<__nv_bfloat16>(conv, type, target, stream);
    case RowType::kF32:
      return launch<float>(conv, type, target, stream);
  }
}

}  // namespace retrograd::kernels::cuda
