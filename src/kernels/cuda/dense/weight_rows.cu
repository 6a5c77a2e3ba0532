// SPDX-License-Identifier: Apache-2.0
// Tiles of some y channels, x channels and taps go through shared memory: read along taps and x channels, as
// weights mostly lie, written along 32 of the rows' channels. Tiles are small, so that few weights are many
// blocks. Bytes: the weights once, the rows once.
#include <algorithm>
#include <type_traits>

#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/layout/channel_rows.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kLong = 32, kShort = 8, kTileTaps = 9;  // channels: of the rows, and of which there are rows

struct Weights {
  Tensor source;
  OperandRounding rounding;
  int taps, kh, kw, tile_taps, across_taps, across_x, across_y;
  FastDiv by_tile_taps, by_pairs;  // pairs: of x channel and tap of a tile
  int64_t x_channels, y_channels, filled;
};

// kSame: the source is of type E.
template <class E, bool kByY, bool kSame>
__global__ void __launch_bounds__(kThreads) weight_rows_kernel(const __grid_constant__ Weights p, E* target) {
  constexpr int kY = kByY ? kLong : kShort, kX = kByY ? kShort : kLong;
  __shared__ float tile[kY * (kX * kTileTaps + 1)];
  unsigned rest = blockIdx.x;
  const int t0 = static_cast<int>(rest % p.across_taps) * p.tile_taps;
  rest /= p.across_taps;
  const int64_t c0 = int64_t{rest % p.across_x} * kX;
  rest /= p.across_x;
  const int64_t o0 = int64_t{rest % p.across_y} * kY, group = rest / p.across_y;
  const int pitch = kX * p.tile_taps + 1;
  const int64_t* s = p.source.strides;
  const int64_t first = group * p.y_channels * s[0];
#pragma unroll 4
  for (uint32_t i = threadIdx.x; i < kY * p.by_pairs.divisor; i += kThreads) {
    uint32_t pair = i;
    const uint32_t o = p.by_pairs.split(pair);
    uint32_t t = pair;
    const uint32_t c = p.by_tile_taps.split(t);
    const int tap = t0 + static_cast<int>(t);
    float value = 0;
    if (tap < p.taps && c0 + c < p.x_channels && o0 + o < p.y_channels) {
      const int64_t at = first + (o0 + o) * s[0] + (c0 + c) * s[1] + tap / (p.kh * p.kw) * s[2] +
                         tap / p.kw % p.kh * s[3] + tap % p.kw * s[4];
      if constexpr (kSame)
        value = to_float(static_cast<const E*>(p.source.data)[at]);
      else
        value = load_any(p.source.dtype, p.source.data, at);
    }
    tile[o * pitch + pair] = round_operand(p.rounding, value);
  }
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t rows = kByY ? p.x_channels : p.y_channels, row0 = kByY ? c0 : o0,
                channel = (kByY ? o0 : c0) + lane;
  if (channel >= p.filled) return;
  const int taps = min(p.tile_taps, p.taps - t0);
  for (int i = warp; i < kShort * taps; i += kThreads / 32) {
    const int t = i / kShort, row = i % kShort;
    if (row0 + row >= rows) continue;
    const float value =
        kByY ? tile[lane * pitch + row * p.tile_taps + t] : tile[row * pitch + lane * p.tile_taps + t];
    target[((group * p.taps + t0 + t) * rows + row0 + row) * p.filled + channel] = from_float<E>(value);
  }
}

template <class E, bool kByY>
void launch_weight_rows(const Conv& conv, RowType type, void* target, Stream stream) {
  constexpr int kY = kByY ? kLong : kShort, kX = kByY ? kShort : kLong;
  const Axis(&a)[3] = conv.axes;
  const int64_t chunk = chunk_elements(type), channels = kByY ? conv.y_channels : conv.x_channels;
  Weights p;
  p.source = conv.w;
  p.rounding = conv.rounding;
  p.taps = static_cast<int>(a[0].kernel * a[1].kernel * a[2].kernel);
  p.kh = static_cast<int>(a[1].kernel);
  p.kw = static_cast<int>(a[2].kernel);
  p.tile_taps = std::min(p.taps, kTileTaps);
  p.by_tile_taps = FastDiv(p.tile_taps);
  p.by_pairs = FastDiv(p.tile_taps * kX);
  p.x_channels = conv.x_channels;
  p.y_channels = conv.y_channels;
  p.filled = (channels + chunk - 1) / chunk * chunk;
  p.across_taps = (p.taps + p.tile_taps - 1) / p.tile_taps;
  p.across_x = static_cast<int>((p.x_channels + kX - 1) / kX);
  p.across_y = static_cast<int>((p.y_channels + kY - 1) / kY);
  const auto blocks = static_cast<unsigned>(conv.groups * p.across_y * p.across_x * p.across_taps);
  const bool same = conv.w.dtype == (std::is_same_v<E, float>    ? DType::kF32
                                     : std::is_same_v<E, __half> ? DType::kF16
                                                                 : DType::kBF16);
  const auto kernel = same ? weight_rows_kernel<E, kByY, true> : weight_rows_kernel<E, kByY, false>;
  kernel<<<blocks, kThreads, 0, stream>>>(p, static_cast<E*>(target));
}

template <class E>
void launch_weight_rows(const Conv& conv, bool by_y, RowType type, void* target, Stream stream) {
  by_y ? launch_weight_rows<E, true>(conv, type, target, stream)
       : launch_weight_rows<E, false>(conv, type, target, stream);
}

}  // namespace

void make_weight_rows(const Conv& conv, bool by_y, RowType type, void* target, Stream stream) {
  switch (type) {
    case RowType::kF16:
      return launch_weight_rows<__half>(conv, by_y, type, target, stream);
    case RowType::kBF16:
      return launch_weight_rows<__nv_bfloat16>(conv, by_y, type, target, stream);
    case RowType::kF32:
      return launch_weight_rows<float>(conv, by_y, type, target, stream);
  }
}

}  // namespace retrograd::kernels::cuda
