// SPDX-License-Identifier: Apache-2.0
// planes[n, c, p] = rows[n, p, c]. Bytes: each side once.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/layout/plane_rows.cuh"

namespace retrograd::kernels::cuda {
namespace {

template <bool kVectors>
__global__ void __launch_bounds__(kCopyThreads, 5)
    rows_to_slab_kernel(Slab s, const uint16_t* __restrict__ rows, uint16_t* __restrict__ planes) {
  extern __shared__ uint4 vectors[];
  auto* elements = reinterpret_cast<uint16_t*>(vectors);
  const int64_t image = blockIdx.x, channel0 = blockIdx.y * int64_t{s.block};
  const uint32_t there = s.there(image, channel0), count = there * s.places;
  const uint16_t* from = rows + image * s.places * s.filled + channel0;
  in_batches<4>(
      s.places * s.of_chunks.divisor,
      [&](uint32_t i) {
        uint32_t chunk = i;
        const uint32_t place = s.of_chunks.split(chunk);
        if (chunk * 8 >= there) return uint4{};
        return *reinterpret_cast<const uint4*>(from + place * s.filled + chunk * 8);
      },
      [&](uint32_t i, const uint4& value) {
        uint32_t chunk = i;
        const uint32_t place = s.of_chunks.split(chunk);
        uint16_t* at = elements + s.at(chunk, place);
        const uint32_t words[4] = {value.x, value.y, value.z, value.w};
#pragma unroll
        for (uint32_t j = 0; j < 8; ++j) at[j * s.places] = static_cast<uint16_t>(words[j / 2] >> j % 2 * 16);
      });
  __syncthreads();
  uint16_t* to = planes + image * s.outer_stride + channel0 * s.places;
  constexpr int kWidth = kVectors ? 8 : 1;
  for (uint32_t i = threadIdx.x; i < count / kWidth; i += kCopyThreads) {
    if constexpr (kVectors)
      reinterpret_cast<uint4*>(to)[i] = vectors[s.padded(i)];
    else
      to[i] = elements[s.padded_element(i)];
  }
}

// Places of one channel, two a lane, in words where both lie in one.
__device__ void store_places(const uint16_t* tile, uint16_t* to, uint32_t column, int count) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int odd = reinterpret_cast<uintptr_t>(to) / 2 % 2;
  const auto value = [&](int place) -> uint32_t {
    return tile[tile_word(place, column / 2) * 2 + column % 2];
  };
  const int place = 2 * lane - odd;
  const bool first = place >= 0 && place < count, second = place + 1 < count;
  const uint32_t low = first ? value(place) : 0, high = second ? value(place + 1) : 0;
  if (first && second) {
    *reinterpret_cast<uint32_t*>(to + place) = low | high << 16;
  } else if (first) {
    to[place] = static_cast<uint16_t>(low);
  } else if (second) {
    to[place + 1] = static_cast<uint16_t>(high);
  }
  if (odd && lane == 31 && count == kTileSide)
    to[kTileSide - 1] = static_cast<uint16_t>(value(kTileSide - 1));
}

template <bool kVectors>
__global__ void __launch_bounds__(kCopyThreads, 6)
    rows_to_tile_kernel(Tiles t, const uint16_t* __restrict__ rows, uint16_t* __restrict__ planes) {
  __shared__ uint4 tile[kTileSide * kTileVectors];
  const int64_t image = blockIdx.x / t.count;
  const int64_t place0 = blockIdx.x % t.count * int64_t{kTileSide},
                channel0 = blockIdx.y * int64_t{kTileSide};
  in_batches<2>(
      kTileSide * kTileVectors,
      [&](uint32_t i) {
        const int64_t channel = channel0 + i % kTileVectors * 8, place = place0 + i / kTileVectors;
        if (place >= t.places || channel >= t.filled) return uint4{};
        return *reinterpret_cast<const uint4*>(rows + (image * t.places + place) * t.filled + channel);
      },
      [&](uint32_t i, const uint4& value) { tile[tile_vector(i / kTileVectors, i % kTileVectors)] = value; });
  __syncthreads();
  uint16_t* to = planes + image * t.outer_stride + place0;
  if constexpr (kVectors) {
    const auto* words = reinterpret_cast<const uint32_t*>(tile);
    const uint32_t vector = threadIdx.x % kTileVectors, pair = threadIdx.x / kTileVectors;
    if (place0 + vector * 8 >= t.places) return;
    uint32_t both[2][4];
#pragma unroll
    for (uint32_t j = 0; j < 4; ++j) {
      const uint32_t even = words[tile_word(vector * 8 + 2 * j, pair)];
      const uint32_t odd = words[tile_word(vector * 8 + 2 * j + 1, pair)];
      both[0][j] = __byte_perm(even, odd, 0x5410);
      both[1][j] = __byte_perm(even, odd, 0x7632);
    }
    const int64_t channel = channel0 + pair * 2;
    to += channel * t.channel_stride + vector * 8;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      if (channel + j >= t.channels) break;
      *reinterpret_cast<uint4*>(to + j * t.channel_stride) = {both[j][0], both[j][1], both[j][2], both[j][3]};
    }
  } else {
    const auto* elements = reinterpret_cast<const uint16_t*>(tile);
    const int count = static_cast<int>(min(int64_t{kTileSide}, t.places - place0));
    const uint32_t columns = static_cast<uint32_t>(min(int64_t{kTileSide}, t.channels - channel0));
    for (uint32_t column = threadIdx.x / 32; column < columns; column += kCopyThreads / 32)
      store_places(elements, to + (channel0 + column) * t.channel_stride, column, count);
  }
}

}  // namespace

void rows_to_planes(const PlaneRows& shape, const void* rows, void* planes, Stream stream) {
  const auto* from = static_cast<const uint16_t*>(rows);
  auto* to = static_cast<uint16_t*>(planes);
  if (shape.places() <= kSlabPlaces) {
    const Slab s = slab_of(shape);
    const Extent grid(shape.outer, (s.channels + s.block - 1) / s.block);
    const auto kernel = slab_has_vectors(shape, to) ? rows_to_slab_kernel<true> : rows_to_slab_kernel<false>;
    return start(kernel, grid, kCopyThreads, s.shared_bytes(), stream, s, from, to);
  }
  const Tiles t = tiles_of(shape);
  const auto kernel = tiles_have_vectors(shape, to) ? rows_to_tile_kernel<true> : rows_to_tile_kernel<false>;
  start(kernel, {t.count * shape.outer, (t.channels + kTileSide - 1) / kTileSide}, kCopyThreads, 0, stream, t,
        from, to);
}

}  // namespace retrograd::kernels::cuda
