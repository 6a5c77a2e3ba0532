// SPDX-License-Identifier: Apache-2.0
// Tiles of some y channels, x channels and taps go through shared memory: read along taps or x channels,
// whichever lie side by side, written along 32 of the rows' channels. Tiles are small, so that few weights
// are many blocks. Bytes: the weights once, the rows once.
#include <algorithm>
#include <type_traits>

#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/layout/channel_rows.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kLong = 32, kShort = 8;  // y channels of a tile: where rows have them, and where they are rows
constexpr int kTileTaps = 9, kMostPairs = kLong * kTileTaps;  // pairs: of x channel and tap

struct Weights {
  Tensor source;
  OperandRounding rounding;
  int taps, kh, kw, tile_x, tile_taps, across_taps, across_x, across_y;
  bool taps_fast;                      // in a tile
  FastDiv by_fast, by_pairs, by_rows;  // by_rows: of a tile and tap that are written
  int64_t x_channels, y_channels, filled;
};

// kSame: the source is of type E.
template <class E, bool kByY, bool kSame>
__global__ void __launch_bounds__(kThreads) weight_rows_kernel(const __grid_constant__ Weights p, E* target) {
  constexpr int kY = kByY ? kLong : kShort;
  __shared__ float tile[kByY ? kLong * (kMostPairs / 4 + 1) : kShort * (kMostPairs + 1)];
  __shared__ int64_t tap_at[kTileTaps];  // where a tap's weights lie behind the first's
  unsigned rest = blockIdx.x;
  const int t0 = static_cast<int>(rest % p.across_taps) * p.tile_taps;
  rest /= p.across_taps;
  const int64_t c0 = int64_t{rest % p.across_x} * p.tile_x;
  rest /= p.across_x;
  const int64_t o0 = int64_t{rest % p.across_y} * kY, group = rest / p.across_y;
  const int pitch = static_cast<int>(p.by_pairs.divisor) + 1;
  const int64_t* s = p.source.strides;
  const int64_t first = (group * p.y_channels + o0) * s[0] + c0 * s[1];
  const auto live_x = static_cast<uint32_t>(min(p.x_channels - c0, int64_t{p.tile_x})),
             live_y = static_cast<uint32_t>(min(p.y_channels - o0, int64_t{kY}));
  const auto live_taps = static_cast<uint32_t>(min(p.tile_taps, p.taps - t0));
  if (static_cast<int>(threadIdx.x) < p.tile_taps) {
    const int tap = t0 + static_cast<int>(threadIdx.x);
    tap_at[threadIdx.x] = tap / (p.kh * p.kw) * s[2] + tap / p.kw % p.kh * s[3] + tap % p.kw * s[4];
  }
  __syncthreads();
#pragma unroll 4
  for (uint32_t i = threadIdx.x; i < kY * p.by_pairs.divisor; i += kThreads) {
    uint32_t pair = i;
    const uint32_t o = p.by_pairs.split(pair);
    uint32_t fast = pair;
    const uint32_t slow = p.by_fast.split(fast);
    const uint32_t c = p.taps_fast ? slow : fast, tap = p.taps_fast ? fast : slow;
    float value = 0;
    if (tap < live_taps && c < live_x && o < live_y) {
      const int64_t at = first + o * s[0] + c * s[1] + tap_at[tap];
      if constexpr (kSame)
        value = to_float(static_cast<const E*>(p.source.data)[at]);
      else
        value = load_any(p.source.dtype, p.source.data, at);
    }
    tile[o * pitch + pair] = round_operand(p.rounding, value);
  }
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t rows = kByY ? p.x_channels : p.y_channels, row0 = kByY ? c0 : o0;
  const int tile_rows = kByY ? p.tile_x : kShort;
  const int64_t channel0 = kByY ? o0 : c0;
  for (int i = warp; i < tile_rows * static_cast<int>(live_taps); i += kThreads / 32) {
    auto in_tap = static_cast<uint32_t>(i);
    const auto t = static_cast<int>(p.by_rows.split(in_tap)), row = static_cast<int>(in_tap);
    if (row0 + row >= rows) continue;
    E* const to = target + ((group * p.taps + t0 + t) * rows + row0 + row) * p.filled + channel0;
    for (int channel = lane; channel < (kByY ? kLong : p.tile_x); channel += 32) {
      if (channel0 + channel >= p.filled) break;
      const int c = kByY ? row : channel, o = kByY ? channel : row;
      to[channel] = from_float<E>(tile[o * pitch + (p.taps_fast ? c * p.tile_taps + t : t * p.tile_x + c)]);
    }
  }
}

template <class E, bool kByY>
void launch_weight_rows(const Conv& conv, RowType type, void* target, Stream stream) {
  constexpr int kY = kByY ? kLong : kShort, kPairs = kByY ? kMostPairs / 4 : kMostPairs;
  const Axis(&a)[3] = conv.axes;
  const int64_t chunk = chunk_elements(type), channels = kByY ? conv.y_channels : conv.x_channels;
  Weights p;
  p.source = conv.w;
  p.rounding = conv.rounding;
  p.taps = static_cast<int>(a[0].kernel * a[1].kernel * a[2].kernel);
  p.kh = static_cast<int>(a[1].kernel);
  p.kw = static_cast<int>(a[2].kernel);
  p.taps_fast = conv.w.strides[1] != 1 || conv.x_channels == 1;
  p.tile_taps = std::min(p.taps, p.taps_fast ? kTileTaps : kByY ? 2 : kTileTaps);
  // Whole sixteens of bytes, as rows are filled up with zeros here.
  p.tile_x = kPairs / p.tile_taps / 8 * 8;
  p.by_fast = FastDiv(p.taps_fast ? p.tile_taps : p.tile_x);
  p.by_pairs = FastDiv(p.tile_taps * p.tile_x);
  p.by_rows = FastDiv(kByY ? p.tile_x : kShort);
  p.x_channels = conv.x_channels;
  p.y_channels = conv.y_channels;
  p.filled = (channels + chunk - 1) / chunk * chunk;
  p.across_taps = (p.taps + p.tile_taps - 1) / p.tile_taps;
  p.across_x = static_cast<int>((p.x_channels + p.tile_x - 1) / p.tile_x);
  p.across_y = static_cast<int>((p.y_channels + kY - 1) / kY);
  const auto blocks = static_cast<unsigned>(conv.groups * p.across_y * p.across_x * p.across_taps);
  const bool same = conv.w.dtype == (std::is_same_v<E, float>    ? DType::kF32
                                     : std::is_same_v<E, __half> ? DType::kF16
                                                                 : DType::kBF16);
  const auto kernel = same ? weight_rows_kernel<E, kByY, true> : weight_rows_kernel<E, kByY, false>;
  start(kernel, blocks, kThreads, 0, stream, p, target);
}

}  // namespace

void make_weight_rows(const Conv& conv, bool by_y, RowType type, void* target, Stream stream) {
  with_type(dtype_of(type), [&](auto element) {
    using E = decltype(element);
    by_y ? launch_weight_rows<E, true>(conv, type, target, stream)
         : launch_weight_rows<E, false>(conv, type, target, stream);
  });
}

}  // namespace retrograd::kernels::cuda
