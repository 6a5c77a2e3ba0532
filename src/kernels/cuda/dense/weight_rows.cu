// SPDX-License-Identifier: Apache-2.0
// Tiles of 32 y channels, 32 x channels and up to nine taps go through shared memory: read along taps and x
// channels, as weights mostly lie, written along the rows' channels. Bytes: the weights once, the rows once.
#include <algorithm>

#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/layout/channel_rows.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 32, kTileTaps = 9;

struct Weights {
  Tensor source;
  OperandRounding rounding;
  bool by_y;
  int taps, kh, kw, tile_taps, across_taps, across_x, across_y;
  FastDiv by_tile_taps;
  int64_t x_channels, y_channels, filled;
};

template <class E>
__global__ void __launch_bounds__(kThreads) weight_rows_kernel(const __grid_constant__ Weights p, E* target) {
  __shared__ float tile[kTile][kTile * kTileTaps + 1];
  unsigned rest = blockIdx.x;
  const int t0 = static_cast<int>(rest % p.across_taps) * p.tile_taps;
  rest /= p.across_taps;
  const int64_t c0 = int64_t{rest % p.across_x} * kTile;
  rest /= p.across_x;
  const int64_t o0 = int64_t{rest % p.across_y} * kTile, group = rest / p.across_y;
  const int taps = min(p.tile_taps, p.taps - t0);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t* s = p.source.strides;
  for (int i = static_cast<int>(threadIdx.x); i < kTile * p.tile_taps; i += kThreads) {
    auto t = static_cast<uint32_t>(i);
    const uint32_t c = p.by_tile_taps.split(t);
    const int tap = t0 + static_cast<int>(t);
    const bool inside = static_cast<int>(t) < taps && c0 + c < p.x_channels;
    const int64_t at = group * p.y_channels * s[0] + (c0 + c) * s[1] + tap / (p.kh * p.kw) * s[2] +
                       tap / p.kw % p.kh * s[3] + tap % p.kw * s[4];
#pragma unroll 8
    for (int o = 0; o < kTile; ++o)
      tile[o][i] =
          inside && o0 + o < p.y_channels
              ? round_operand(p.rounding, load_any(p.source.dtype, p.source.data, at + (o0 + o) * s[0]))
              : 0.0f;
  }
  __syncthreads();
  const int64_t rows = p.by_y ? p.x_channels : p.y_channels, row0 = p.by_y ? c0 : o0,
                channel = (p.by_y ? o0 : c0) + lane;
  if (channel >= p.filled) return;
  for (int i = warp; i < kTile * taps; i += kThreads / 32) {
    const int t = i / kTile, row = i % kTile;
    if (row0 + row >= rows) continue;
    const float value = p.by_y ? tile[lane][row * p.tile_taps + t] : tile[row][lane * p.tile_taps + t];
    target[((group * p.taps + t0 + t) * rows + row0 + row) * p.filled + channel] = from_float<E>(value);
  }
}

template <class E>
void launch_weight_rows(const Conv& conv, bool by_y, RowType type, void* target, Stream stream) {
  const Axis(&a)[3] = conv.axes;
  const int64_t chunk = chunk_elements(type), channels = by_y ? conv.y_channels : conv.x_channels;
  Weights p;
  p.source = conv.w;
  p.rounding = conv.rounding;
  p.by_y = by_y;
  p.taps = static_cast<int>(a[0].kernel * a[1].kernel * a[2].kernel);
  p.kh = static_cast<int>(a[1].kernel);
  p.kw = static_cast<int>(a[2].kernel);
  p.tile_taps = std::min(p.taps, kTileTaps);
  p.by_tile_taps = FastDiv(p.tile_taps);
  p.x_channels = conv.x_channels;
  p.y_channels = conv.y_channels;
  p.filled = (channels + chunk - 1) / chunk * chunk;
  const auto tiles_of = [](int64_t count) { return static_cast<int>((count + kTile - 1) / kTile); };
  p.across_taps = (p.taps + p.tile_taps - 1) / p.tile_taps;
  p.across_x = tiles_of(p.x_channels);
  p.across_y = tiles_of(p.y_channels);
  const int64_t blocks = conv.groups * p.across_y * p.across_x * p.across_taps;
  weight_rows_kernel<E><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(p, static_cast<E*>(target));
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
