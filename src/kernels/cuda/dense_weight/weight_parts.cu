// SPDX-License-Identifier: Apache-2.0
// A block makes a tile of y channels, taps and x channels. It reads 16 bytes a lane along the x channels, two
// such and up to four parts of each in flight, and writes through shared memory along whichever of taps and x
// channels is contiguous, 16 bytes a lane where they lie in whole vectors. Where the weights are few and the
// parts many, slices of a block add runs of parts, and the slices are added in order. Bytes: the parts once,
// the weights once. Columns with the taps inside are taken for x channels of one tap until they are written.
#include <algorithm>

#include "base/checked.h"
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/dense_weight/weight_parts.h"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/part_repair.cuh"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256, kTile = 2048, kMostTaps = 32;
constexpr int kInFlight = 4;  // parts

// What a lane writes: an element; 16 bytes of a tile that lies in the result as in shared memory, [y
// channel][x channel][tap]; or 16 bytes of neighbouring x channels of a tap.
enum class Write : unsigned char { kElements, kRun, kChannels };

struct Parts {
  Conv conv;
  WeightRepair repair;
  Write write;
  bool along_channels;  // neighbours of the result are channels, else taps
  bool side_by_side;    // the weights of a y channel are [x channel][tap]
  int inside;           // taps of a column, 1 where they are not inside
  int64_t channels;     // of a tile's tap: x channels, or columns
  int taps, kh, kw, tile_rows, tile_taps, tile_channels, across_taps, across_channels;
  int lanes;                             // threads of a slice
  int row_step, channel_step, tap_step;  // floats in shared memory
  int64_t rows, x_filled, weights, count, slice;
  FastDiv by_chunks, by_taps, by_channels;  // of a tile
  PartPlaces places[kMostPartPlaces];
  int place_orders;
};

__device__ void operator+=(float4& a, const float4& b) { a.x += b.x, a.y += b.y, a.z += b.z, a.w += b.w; }

struct TileOf {
  int64_t row0;
  int t0, c0, rows, taps, channels;  // that are there
};
__device__ TileOf tile_of(const Parts& p) {
  unsigned rest = blockIdx.x;
  TileOf tile;
  tile.t0 = static_cast<int>(rest % p.across_taps) * p.tile_taps;
  rest /= p.across_taps;
  tile.c0 = static_cast<int>(rest % p.across_channels) * p.tile_channels;
  tile.row0 = int64_t{rest / p.across_channels} * p.tile_rows;
  tile.rows = static_cast<int>(min(int64_t{p.tile_rows}, p.rows - tile.row0));
  tile.taps = min(p.tile_taps, p.taps - tile.t0);
  tile.channels = min(p.tile_channels, static_cast<int>(p.channels) - tile.c0);
  return tile;
}

// Where four channels of a tap are in the tile, and in the parts; −1: nowhere.
struct Chunk {
  int at;
  int64_t from;
};
__device__ Chunk chunk_of(const Parts& p, const TileOf& tile, int i) {
  auto c = static_cast<uint32_t>(i);
  uint32_t t = p.by_chunks.split(c);
  const uint32_t row = p.by_taps.split(t);
  if (static_cast<int>(row) >= tile.rows || static_cast<int>(t) >= tile.taps ||
      static_cast<int>(c * 4) >= tile.channels)
    return {-1, 0};
  return {static_cast<int>(row * p.row_step + c * 4 * p.channel_step + t * p.tap_step),
          ((tile.row0 + row) * p.taps + tile.t0 + t) * p.x_filled + tile.c0 + c * 4};
}

// Every slice has its own tile in shared memory.
__device__ void add(const Parts& p, const TileOf& tile, const float* parts, float* sums) {
  const int lane = static_cast<int>(threadIdx.x) % p.lanes, slice = static_cast<int>(threadIdx.x) / p.lanes;
  const int chunks = p.tile_rows * p.tile_taps * (p.tile_channels / 4);
  const int64_t begin = slice * p.slice, end = min(begin + p.slice, p.count);
  sums += slice * p.tile_rows * p.row_step;
  for (int i = lane; i < chunks; i += 2 * p.lanes) {
    const Chunk first = chunk_of(p, tile, i),
                second = i + p.lanes < chunks ? chunk_of(p, tile, i + p.lanes) : Chunk{-1, 0};
    float4 a{}, b{};
    const auto* of_a = reinterpret_cast<const float4*>(parts + begin * p.weights + first.from);
    const auto* of_b = reinterpret_cast<const float4*>(parts + begin * p.weights + second.from);
    const int64_t step = p.weights / 4;
    for (int64_t part = begin; part < end; part += kInFlight) {
      float4 more_a[kInFlight], more_b[kInFlight];
#pragma unroll
      for (int j = 0; j < kInFlight; ++j) {
        more_a[j] = first.at >= 0 && part + j < end ? __ldcs(of_a + j * step) : float4{};
        more_b[j] = second.at >= 0 && part + j < end ? __ldcs(of_b + j * step) : float4{};
      }
#pragma unroll
      for (int j = 0; j < kInFlight; ++j) a += more_a[j], b += more_b[j];
      of_a += kInFlight * step, of_b += kInFlight * step;
    }
    const auto put = [&](int at, const float4& value) {
      if (at < 0) return;
      if (p.channel_step == 1) {
        *reinterpret_cast<float4*>(sums + at) = value;
        return;
      }
      sums[at] = value.x, sums[at + p.channel_step] = value.y, sums[at + 2 * p.channel_step] = value.z;
      sums[at + 3 * p.channel_step] = value.w;
    };
    put(first.at, a);
    put(second.at, b);
  }
}

// Of w[at] in a part.
__device__ int64_t part_offset(const Parts& p, const Index5& at) {
  const int64_t tap = (at.d * p.kh + at.h) * p.kw + at.w;
  return p.inside == 1 ? (at.n * p.taps + tap) * p.x_filled + at.c
                       : at.n * p.x_filled + at.c * p.inside + tap;
}

// The share of a lane of the sum of a weight (part_repair.cuh).
__device__ float share_of_weight(const Parts& p, const float* parts, const Index5& at, int number,
                                 int lanes) {
  const int64_t tap = (at.d * p.kh + at.h) * p.kw + at.w;
  const PartPlaces* order = p.places;
  while (tap < order->first_tap || tap >= order->first_tap + order->taps) ++order;
  const PlaceGrid grid{{order->first[0], order->first[1], order->first[2]},
                       {order->count[0], order->count[1], order->count[2]}};
  const int64_t all = p.conv.batch * grid.count[0] * grid.count[1] * grid.count[2];
  parts += part_offset(p, at);
  return share_of_parts(
      p.conv, at, grid, p.count, number, lanes, [&](int64_t i) { return parts[i * p.weights]; },
      [&](int64_t i) { return min(i * order->places, all); });
}

// How many values of a y channel are not finite, or are rounded to an infinity; if it is one, which, and its
// place in the order of all places.
struct SpecialPlace {
  int64_t channel = -1;  // none looked at yet
  int count = 0;
  float value = 0;
  int64_t place = 0;
};
// Every lane of the warp gets it.
__device__ __noinline__ SpecialPlace special_place(const Conv& conv, int64_t channel) {
  constexpr int kAhead = 8;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Axis(&a)[3] = conv.axes;
  const int64_t* const s = conv.y.strides;
  const Terms places =
      joined({{conv.batch, a[0].y, a[1].y, a[2].y}, {}, channel * s[1], 0, {s[0], s[2], s[3], s[4]}, {}});
  const int64_t all = most_terms(conv, Result::kGradWeight);
  SpecialPlace mine;
  const Source y(conv.y, conv.rounding);
  with_loads(y, y, [&](auto value_at, auto) {
    TermWalk walk(places, lane, 32);
#pragma unroll 1
    for (int64_t i = lane; i < all;) {
      float values[kAhead];
#pragma unroll
      for (int j = 0; j < kAhead; ++j, walk.next()) values[j] = i + 32 * j < all ? value_at(walk.a) : 0.0f;
#pragma unroll
      for (int j = 0; j < kAhead; ++j, i += 32)
        if (!(fabsf(values[j]) < 0x1.ffcp127f)) ++mine.count, mine.value = values[j], mine.place = i;
    }
    return 0.0f;
  });
  __syncwarp();
  const int owner = max(__ffs(static_cast<int>(__ballot_sync(~0u, mine.count > 0))) - 1, 0);
  return {channel, __reduce_add_sync(~0u, mine.count), __shfl_sync(~0u, mine.value, owner),
          static_cast<int64_t>(__shfl_sync(~0u, static_cast<long long>(mine.place), owner))};
}

// Whether w[at] is one term, whatever the others are, and then what: its y channel has one value that is not
// finite, and the finite sums of its neighbour, another y channel of the group, show that x has none.
__device__ bool is_one_term(const Parts& p, const float* parts, const Index5& at, const SpecialPlace& y,
                            float& term) {
  const Conv& conv = p.conv;
  if (at.n != y.channel || y.count != 1 || isfinite(y.value) || conv.y_channels == 1) return false;
  const Index5 o = split(y.place, 1, conv.axes[0].y, conv.axes[1].y, conv.axes[2].y);
  const int64_t d = position(conv.axes[0], o.d, at.d), h = position(conv.axes[1], o.h, at.h),
                w = position(conv.axes[2], o.w, at.w);
  if (d < 0 || h < 0 || w < 0) return false;
  const int64_t group = quotient(at.n, conv.y_channels);
  parts += part_offset(p, {at.n + (at.n == group * conv.y_channels ? 1 : -1), at.c, at.d, at.h, at.w});
  bool finite = true;
#pragma unroll 4
  for (int64_t i = 0; i < p.count; ++i) finite = finite && isfinite(parts[i * p.weights]);
  const Source x(conv.x, conv.rounding);
  term = y.value * x(offset_of(conv.x, {o.n, group * conv.x_channels + at.c, d, h, w}));
  return finite;
}

// What the block has written and is NaN, once more. Kept out of the kernel's registers.
__device__ __noinline__ void repair_tile(const Parts& p, const TileOf& tile, const float* parts) {
  const int lane = static_cast<int>(threadIdx.x) % 32, all = tile.rows * tile.channels * tile.taps;
  const int64_t terms = quotient(most_terms(p.conv, Result::kGradWeight), p.count);
  SpecialPlace special;
  for (int first = static_cast<int>(threadIdx.x) - lane; first < all; first += kThreads) {
    const int i = first + lane, column = tile.c0 + i / tile.taps % tile.channels;
    const int tap = tile.t0 + i % tile.taps + column % p.inside;
    const Index5 at{tile.row0 + i / tile.taps / tile.channels, column / p.inside, tap / (p.kh * p.kw),
                    tap / p.kw % p.kh, tap % p.kw};
    const int64_t offset = offset_of(p.conv.w, at);
    bool suspect = i < all && isnan(load_any(p.conv.w.dtype, p.conv.w.data, offset)) &&
                   (p.repair == WeightRepair::kAll || reaches_edge(p.conv, Result::kGradWeight, at)) &&
                   !begins_with_nan(p.conv, Result::kGradWeight, at);
    const unsigned open = __ballot_sync(~0u, suspect);
    if (open == 0) continue;
    const int owner = __ffs(static_cast<int>(open)) - 1;
    const auto channel = static_cast<int64_t>(__shfl_sync(~0u, static_cast<long long>(at.n), owner));
    // 32 lanes are through a whole y channel before one is through a part of it, unless parts are many.
    if (p.repair == WeightRepair::kAll && p.count < 32 && __popc(open) > 1 && channel != special.channel)
      special = special_place(p.conv, channel);
    float term = 0;
    if (suspect && is_one_term(p, parts, at, special, term)) {
      store_any(p.conv.w.dtype, p.conv.w.data, offset, term);
      suspect = false;
    }
    __syncwarp();
    in_turn(
        suspect, at, terms, p.count,
        [&](const Index5& index, int number, int lanes) {
          return share_of_weight(p, parts, index, number, lanes);
        },
        [&](float sum) { store_any(p.conv.w.dtype, p.conv.w.data, offset, sum); });
  }
}

__device__ int64_t tap_offset(const Parts& p, int tap) {
  const int64_t* s = p.conv.w.strides;
  return tap / (p.kh * p.kw) * s[2] + tap / p.kw % p.kh * s[3] + tap % p.kw * s[4];
}
// Of a column from its y channel.
__device__ int64_t column_offset(const Parts& p, int column) {
  if (p.inside == 1) return column * p.conv.w.strides[1];
  if (p.side_by_side) return column;
  return column / p.inside * p.conv.w.strides[1] + tap_offset(p, column % p.inside);
}

template <class E>
inline constexpr int kVector = 16 / static_cast<int>(sizeof(E));

// A vector of sums, its slices added in order. Returns whether one of them is NaN.
template <class E>
__device__ bool write_vector(const Parts& p, const float* from, int in_slice, E* to) {
  bool suspect = false;
  float values[kVector<E>];
#pragma unroll
  for (int j = 0; j < kVector<E>; j += 4) {
    float4 sum = *reinterpret_cast<const float4*>(from + j);
    for (int slice = 1; slice < kThreads / p.lanes; ++slice)
      sum += *reinterpret_cast<const float4*>(from + j + slice * in_slice);
    suspect = suspect || isnan(sum.x) || isnan(sum.y) || isnan(sum.z) || isnan(sum.w);
    values[j] = sum.x, values[j + 1] = sum.y, values[j + 2] = sum.z, values[j + 3] = sum.w;
  }
  store_pack(to, values);
  return suspect;
}

template <class E>
__device__ bool write_vectors(const Parts& p, const TileOf& tile, const float* sums,
                              const int64_t* tap_offsets) {
  const int in_slice = p.tile_rows * p.row_step;
  const int all = p.write == Write::kRun ? tile.rows * tile.channels * p.taps
                                         : p.tile_rows * p.tile_taps * p.tile_channels;
  E* const weights = static_cast<E*>(p.conv.w.data) + tile.row0 * p.conv.w.strides[0];
  bool suspect = false;
  for (int i = static_cast<int>(threadIdx.x) * kVector<E>; i < all; i += kThreads * kVector<E>) {
    int64_t to = int64_t{tile.c0} * p.taps + i;
    if (p.write == Write::kChannels) {
      auto c = static_cast<uint32_t>(i);
      uint32_t t = p.by_channels.split(c);
      const uint32_t row = p.by_taps.split(t);
      if (static_cast<int>(row) >= tile.rows || static_cast<int>(t) >= tile.taps ||
          static_cast<int>(c) >= tile.channels)
        continue;
      to = row * p.conv.w.strides[0] + tap_offsets[t] + tile.c0 + c;
    }
    suspect = write_vector(p, sums + i, in_slice, weights + to) || suspect;
  }
  return suspect;
}

__device__ bool write_elements(const Parts& p, const TileOf& tile, const float* sums,
                               const int64_t* tap_offsets) {
  const int64_t* s = p.conv.w.strides;
  const int all = p.tile_rows * p.tile_channels * p.tile_taps, slices = kThreads / p.lanes,
            in_slice = p.tile_rows * p.row_step;
  bool suspect = false;
  for (int i = static_cast<int>(threadIdx.x); i < all; i += kThreads) {
    uint32_t t, c, row;
    if (p.along_channels) {
      c = static_cast<uint32_t>(i);
      t = p.by_channels.split(c);
      row = p.by_taps.split(t);
    } else {
      t = static_cast<uint32_t>(i);
      c = p.by_taps.split(t);
      row = p.by_channels.split(c);
    }
    if (static_cast<int>(row) >= tile.rows || static_cast<int>(t) >= tile.taps ||
        static_cast<int>(c) >= tile.channels)
      continue;
    const float* at = sums + row * p.row_step + c * p.channel_step + t * p.tap_step;
    float sum = *at;
    for (int slice = 1; slice < slices; ++slice) sum += at[slice * in_slice];
    suspect = suspect || isnan(sum);
    const int64_t offset =
        (tile.row0 + row) * s[0] + column_offset(p, tile.c0 + static_cast<int>(c)) + tap_offsets[t];
    if (p.conv.w.dtype == DType::kF32)
      static_cast<float*>(p.conv.w.data)[offset] = sum;
    else
      store_any(p.conv.w.dtype, p.conv.w.data, offset, sum);
  }
  return suspect;
}

__device__ bool write(const Parts& p, const TileOf& tile, const float* sums, const int64_t* tap_offsets) {
  if (p.write == Write::kElements) return write_elements(p, tile, sums, tap_offsets);
  switch (p.conv.w.dtype) {
    case DType::kF16:
      return write_vectors<__half>(p, tile, sums, tap_offsets);
    case DType::kBF16:
      return write_vectors<__nv_bfloat16>(p, tile, sums, tap_offsets);
    default:
      return write_vectors<float>(p, tile, sums, tap_offsets);
  }
}

__global__ void __launch_bounds__(kThreads, 4)
    parts_kernel(const __grid_constant__ Parts p, const float* parts) {
  extern __shared__ __align__(16) float sums[];
  __shared__ int64_t tap_offsets[kMostTaps];
  const TileOf tile = tile_of(p);
  if (static_cast<int>(threadIdx.x) < tile.taps)
    tap_offsets[threadIdx.x] = tap_offset(p, tile.t0 + static_cast<int>(threadIdx.x));
  add(p, tile, parts, sums);
  __syncthreads();
  const bool suspect = write(p, tile, sums, tap_offsets);
  if (p.repair != WeightRepair::kNone && __syncthreads_or(suspect)) repair_tile(p, tile, parts);
}

bool lies_side_by_side(const Parts& p) {
  const int64_t* s = p.conv.w.strides;
  const int64_t kd = p.conv.axes[0].kernel;
  return (p.kw == 1 || s[4] == 1) && (p.kh == 1 || s[3] == p.kw) && (kd == 1 || s[2] == p.kh * p.kw) &&
         (p.conv.x_channels == 1 || s[1] == kd * p.kh * p.kw);
}

Write write_of(const Parts& p) {
  const int64_t* s = p.conv.w.strides;
  const DType dtype = p.conv.w.dtype;
  if (dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kBF16) return Write::kElements;
  const int64_t size = dtype == DType::kF32 ? 4 : 8;
  const auto leads_to_vectors = [&](int64_t steps, int64_t stride) {
    return steps == 1 || stride % size == 0;
  };
  if (p.channels % size != 0 || !is_aligned(p.conv.w.data) || !leads_to_vectors(p.rows, s[0]))
    return Write::kElements;
  const bool channels_lie = p.inside == 1 ? s[1] == 1 : p.side_by_side;
  const bool taps_lead = p.inside != 1 || (leads_to_vectors(p.conv.axes[0].kernel, s[2]) &&
                                           leads_to_vectors(p.kh, s[3]) && leads_to_vectors(p.kw, s[4]));
  if (channels_lie && taps_lead) return Write::kChannels;
  const bool is_run = p.inside == 1 && p.tile_taps == p.taps && p.side_by_side &&
                      (p.rows == 1 || s[0] == p.channels * p.taps);
  return is_run ? Write::kRun : Write::kElements;
}

// About 512 tiles, if they are no smaller than 128 sums and no larger than kTile.
void cut_tiles(Parts& p) {
  const int64_t sums = std::clamp<int64_t>(p.weights / 512, 128, kTile);
  p.tile_taps = std::min(p.taps, kMostTaps);
  p.tile_channels = static_cast<int>(
      std::min(std::max<int64_t>(sums / p.tile_taps / 32 * 32, 32), ceil_div(p.channels, 4) * 4));
  p.tile_rows = p.tile_channels < p.channels || p.tile_taps < p.taps
                    ? 1
                    : static_cast<int>(std::max<int64_t>(1, sums / (p.tile_taps * p.tile_channels)));
  p.across_taps = static_cast<int>(ceil_div(p.taps, p.tile_taps));
  p.across_channels = static_cast<int>(ceil_div(p.channels, p.tile_channels));
  p.write = write_of(p);
  if (p.write == Write::kChannels) {
    p.channel_step = 1;
    p.tap_step = p.tile_channels;
    p.row_step = p.tile_taps * p.tile_channels;
  } else {
    p.channel_step = p.write == Write::kRun ? p.taps : p.tile_taps | 1;
    p.tap_step = 1;
    p.row_step = p.tile_channels * p.channel_step;
  }
  p.by_chunks = FastDiv(p.tile_channels / 4);
  p.by_taps = FastDiv(p.tile_taps);
  p.by_channels = FastDiv(p.tile_channels);
  const int chunks = p.tile_rows * p.tile_taps * p.tile_channels / 4;
  p.lanes = kThreads;
  while (p.lanes > 32 && p.lanes / 2 >= chunks && kThreads / p.lanes * 4 <= p.count) p.lanes /= 2;
  p.slice = ceil_div(p.count, kThreads / p.lanes);
}

}  // namespace

void add_weight_parts(const WeightParts& parts, Stream stream) {
  const Conv& conv = parts.conv;
  Parts p;
  p.conv = conv;
  p.repair = parts.repair;
  p.along_channels = parts.taps_inside || conv.w.strides[1] == 1;
  const int64_t taps = conv.axes[0].kernel * conv.axes[1].kernel * conv.axes[2].kernel;
  p.inside = parts.taps_inside ? static_cast<int>(taps) : 1;
  p.taps = parts.taps_inside ? 1 : static_cast<int>(taps);
  p.channels = conv.x_channels * p.inside;
  p.kh = static_cast<int>(conv.axes[1].kernel);
  p.kw = static_cast<int>(conv.axes[2].kernel);
  p.side_by_side = lies_side_by_side(p);
  p.rows = conv.groups * conv.y_channels;
  p.x_filled = parts.x_filled;
  p.weights = p.rows * p.taps * p.x_filled;
  p.count = parts.count;
  std::copy(parts.places, parts.places + parts.place_orders, p.places);
  p.place_orders = parts.place_orders;
  cut_tiles(p);
  const int64_t blocks = ceil_div(p.rows, p.tile_rows) * p.across_taps * p.across_channels;
  const size_t bytes = sizeof(float) * p.tile_rows * p.row_step * (kThreads / p.lanes);
  start(parts_kernel, blocks, kThreads, bytes, stream, p, parts.parts);
}

}  // namespace retrograd::kernels::cuda
