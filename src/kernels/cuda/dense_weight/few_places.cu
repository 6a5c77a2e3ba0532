// SPDX-License-Identifier: Apache-2.0
// w[o, (tap, c)] = Σ_p y[p, o] · x[place(p, tap), c]
//
// A thread keeps its four columns of x for all pixels in registers and walks over 32 y channels, whose values
// lie in shared memory: a product or two for a byte of the result, which is written once. A product beyond
// the edge is left out, not multiplied by zero.
#include "base/checked.h"
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/dense_weight/few_places.h"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/launch.cuh"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = kFewThreads, kRows = kFewRows, kWidth = kFewColumns;

__device__ int64_t offset_of(const Tensor& tensor, const FewPlace& place, int64_t channel,
                             const int64_t (&position)[3]) {
  const int64_t* s = tensor.strides;
  return place.image * s[0] + channel * s[1] + position[0] * s[2] + position[1] * s[3] + position[2] * s[4];
}

template <class T>
__device__ float load(const FewPlaces& p, const Tensor& tensor, int64_t offset) {
  return round_operand(p.conv.rounding, to_float(static_cast<const T*>(tensor.data)[offset]));
}

template <class T>
__device__ uint32_t pack(float low, float high) {
  const T both[2] = {from_float<T>(low), from_float<T>(high)};
  uint32_t word;
  memcpy(&word, both, sizeof(word));
  return word;
}

// Four columns of w; vectors: they lie aligned.
__device__ void store(const Tensor& w, int64_t offset, int columns, bool vectors,
                      const float (&sums)[kWidth]) {
  if (vectors && w.dtype == DType::kF32) {
    *reinterpret_cast<float4*>(static_cast<float*>(w.data) + offset) =
        float4{sums[0], sums[1], sums[2], sums[3]};
  } else if (vectors) {
    const bool half = w.dtype == DType::kF16;
    *reinterpret_cast<uint2*>(static_cast<uint16_t*>(w.data) + offset) =
        half ? uint2{pack<__half>(sums[0], sums[1]), pack<__half>(sums[2], sums[3])}
             : uint2{pack<__nv_bfloat16>(sums[0], sums[1]), pack<__nv_bfloat16>(sums[2], sums[3])};
  } else {
#pragma unroll
    for (int v = 0; v < kWidth; ++v)
      if (v < columns) store_any(w.dtype, w.data, offset + v, sums[v]);
  }
}

template <class T, int kPlaces, bool kPadded>
__global__ void __launch_bounds__(kThreads)
    product_kernel(const __grid_constant__ FewPlaces p, bool vectors) {
  __shared__ __align__(16) float y[kRows][kPlaces];
  const int64_t group = blockIdx.z, rows = p.conv.y_channels, row0 = blockIdx.y * int64_t{kRows};
  const int64_t column0 = (blockIdx.x * int64_t{kThreads} + threadIdx.x) * kWidth;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kPlaces; i += kThreads) {
    const int number = i % kPlaces;
    const int64_t o = row0 + i / kPlaces;
    float value = 0;
    if (number < p.places && o < rows) {
      const FewPlace place = place_of(p, number);
      value = load<T>(p, p.conv.y, offset_of(p.conv.y, place, group * rows + o, place.output));
    }
    y[i / kPlaces][number] = value;
  }

  float x[kPlaces][kWidth];
  uint32_t live[kWidth] = {};
#pragma unroll
  for (int v = 0; v < kWidth; ++v) {
    const bool there = column0 + v < p.columns;
    const FewColumn column = column_of(p, there ? static_cast<int>(column0) + v : 0);
#pragma unroll
    for (int i = 0; i < kPlaces; ++i) {
      x[i][v] = 0;
      if (i >= p.places) continue;
      const FewPlace place = place_of(p, i);
      int64_t position[3];
      if (!there || !meets(p, place, column, position)) continue;
      live[v] |= 1u << i;
      x[i][v] = load<T>(p, p.conv.x,
                        offset_of(p.conv.x, place, group * p.conv.x_channels + column.channel, position));
    }
  }
  __syncthreads();
  if (column0 >= p.columns) return;
  const int columns = static_cast<int>(min(p.columns - column0, int64_t{kWidth}));
  const int64_t count = min(rows - row0, int64_t{kRows});
  int64_t offset = (group * rows + row0) * p.columns + column0;
  for (int r = 0; r < count; ++r, offset += p.columns) {
    float sums[kWidth] = {};
#pragma unroll
    for (int i = 0; i < kPlaces; ++i)
#pragma unroll
      for (int v = 0; v < kWidth; ++v)
        if (!kPadded || (live[v] >> i & 1u) != 0) sums[v] = fmaf(y[r][i], x[i][v], sums[v]);
    store(p.conv.w, offset, columns, vectors, sums);
  }
}

template <class T, int kPlaces>
void launch(const FewPlaces& p, Stream stream) {
  const bool vectors = p.columns % kWidth == 0 && is_aligned(p.conv.w.data);
  const auto kernel = p.padded ? product_kernel<T, kPlaces, true> : product_kernel<T, kPlaces, false>;
  start(kernel, {ceil_div(p.columns, kThreads * kWidth), ceil_div(p.conv.y_channels, kRows), p.conv.groups},
        kThreads, 0, stream, p, vectors);
}

}  // namespace

void few_places(const FewPlaces& p, Stream stream) {
  with_type(p.conv.x.dtype, [&](auto element) {
    using T = decltype(element);
    if (p.places <= 1) return launch<T, 1>(p, stream);
    if (p.places <= 2) return launch<T, 2>(p, stream);
    if (p.places <= 4) return launch<T, 4>(p, stream);
    if (p.places <= 8) return launch<T, 8>(p, stream);
    launch<T, kMostFewPlaces>(p, stream);
  });
}

}  // namespace retrograd::kernels::cuda
