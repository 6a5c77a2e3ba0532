// SPDX-License-Identifier: Apache-2.0
// What both directions share: how planes are cut into blocks.
// Slabs, for planes of up to 256 pixels: all pixels of some channels of one image, contiguous in memory
// whatever the number of pixels, go through shared memory as they lie.
// Tiles, for larger planes: 64 channels and 64 pixels.
#pragma once

#include "kernels/cuda/alignment.h"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/layout/plane_rows.h"

namespace retrograd::kernels::cuda {

constexpr int kCopyThreads = 256;
constexpr int64_t kSlabPlaces = 256;
constexpr int64_t kSlabElements = 16384;  // 32 KiB: six blocks a multiprocessor
constexpr int64_t kSlabChannels = 64;     // 128 bytes of a row
constexpr int64_t kWantedSlabs = 1024;

struct Slab {
  int64_t outer, channels, outer_stride, filled;
  uint32_t places, block;  // block: channels of a slab, a multiple of 8
  // Vectors of padding behind every eight channels: lanes that read neighbouring eights of channels then meet
  // in different banks.
  uint32_t pad;
  FastDiv of_places, of_chunks;

  __host__ __device__ uint32_t shared_bytes() const { return block / 8 * (places + pad) * 16; }
  // A vector's place in shared memory. Eight channels are `places` vectors.
  __device__ uint32_t padded(uint32_t vector) const { return vector + pad * of_places.quotient(vector); }
  __device__ uint32_t padded_element(uint32_t element) const { return padded(element / 8) * 8 + element % 8; }
  // Where the first of eight channels lies there; the next one is `places` elements on.
  __device__ uint32_t at(uint32_t chunk, uint32_t place) const { return chunk * 8 * (places + pad) + place; }
  // How many of the block's channels there are.
  __device__ uint32_t there(int64_t image, int64_t channel0) const {
    if (image >= outer || channel0 >= channels) return 0;
    return static_cast<uint32_t>(min(int64_t{block}, channels - channel0));
  }
};

inline Slab slab_of(const PlaneRows& shape) {
  Slab s;
  s.outer = shape.outer;
  s.channels = shape.channels;
  s.outer_stride = shape.outer_stride;
  s.filled = shape.filled_channels;
  s.places = static_cast<uint32_t>(shape.places());
  const int64_t most = kSlabElements / s.places;
  int64_t pieces = (s.filled + most - 1) / most;
  const int64_t wanted = (kWantedSlabs + shape.filled_outer - 1) / shape.filled_outer;
  const int64_t widest = (s.filled + kSlabChannels - 1) / kSlabChannels;
  if (pieces < wanted) pieces = wanted < widest ? wanted : widest > pieces ? widest : pieces;
  s.block = static_cast<uint32_t>(((s.filled + pieces - 1) / pieces + 7) / 8 * 8);
  s.pad = s.places % 2 == 0 ? 1 : 0;
  s.of_places = FastDiv(s.places);
  s.of_chunks = FastDiv(s.block / 8);
  return s;
}
inline bool slab_has_vectors(const PlaneRows& shape, const void* planes) {
  return shape.channels * shape.places() % 8 == 0 && shape.outer_stride % 8 == 0 && is_aligned(planes);
}

constexpr int kTileSide = 64, kTileVectors = kTileSide / 8;

struct Tiles {
  int64_t outer, channels, places, outer_stride, channel_stride, filled;
  uint32_t count;  // tiles along a plane
};
inline Tiles tiles_of(const PlaneRows& shape) {
  return {shape.outer,
          shape.channels,
          shape.places(),
          shape.outer_stride,
          shape.channel_stride,
          shape.filled_channels,
          static_cast<uint32_t>((shape.places() + kTileSide - 1) / kTileSide)};
}
inline bool tiles_have_vectors(const PlaneRows& shape, const void* planes) {
  return shape.places() % 8 == 0 && shape.outer_stride % 8 == 0 && shape.channel_stride % 8 == 0 &&
         is_aligned(planes);
}

// A tile lies in shared memory as 64 places of 8 vectors, eight channels each. The vectors of a place are
// permuted by the place's eight, so that neither direction meets itself in a bank.
__device__ inline uint32_t tile_vector(uint32_t place, uint32_t chunk) {
  return place * kTileVectors + (chunk ^ (place / 8 % 8));
}
// The word with a pair of channels of a place.
__device__ inline uint32_t tile_word(uint32_t place, uint32_t pair) {
  return tile_vector(place, pair / 4) * 4 + pair % 4;
}

// load(i) for several i of a thread at once, then store(i, value): loads are under way together.
template <int kBatch, class Load, class Store>
__device__ void in_batches(uint32_t count, Load&& load, Store&& store) {
  for (uint32_t base = threadIdx.x; base < count; base += kCopyThreads * kBatch) {
    uint4 values[kBatch];
#pragma unroll
    for (int j = 0; j < kBatch; ++j)
      if (const uint32_t i = base + j * kCopyThreads; i < count) values[j] = load(i);
#pragma unroll
    for (int j = 0; j < kBatch; ++j)
      if (const uint32_t i = base + j * kCopyThreads; i < count) store(i, values[j]);
  }
}

}  // namespace retrograd::kernels::cuda
