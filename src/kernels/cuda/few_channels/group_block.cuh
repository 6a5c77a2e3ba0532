// SPDX-License-Identifier: Apache-2.0
// Boxes of 16 channels on their way into shared memory while others are
// multiplied: rows of channels, as in narrow_block.cuh, of full image rows with
// zeros beyond the edges.
//
// Channels last: 16-byte copies that pass no register. Planes: a thread takes
// two neighbouring pixels of all 16 channels, 16 words under way at once, and
// stores them when they are needed.
#pragma once

#include "kernels/cuda/few_channels/group_plan.h"
#include "kernels/cuda/few_channels/narrow_block.cuh"

namespace retrograd::kernels::cuda {

// Row 0 of the box is row `row0` of the image. Two threads a place: an access
// of a warp is 16 places.
template <class T>
__device__ void copy_box(unsigned char* tile, const GroupBox& box, const GroupImage& image, const T* source,
                         int row0) {
  const uint32_t target = shared_address(tile);
  const int chunk = static_cast<int>(threadIdx.x) % 2;
  for (int place = static_cast<int>(threadIdx.x) / 2; place < box.places;
       place += static_cast<int>(blockDim.x) / 2) {
    uint32_t column = static_cast<uint32_t>(place);
    const int row = static_cast<int>(box.by_pitch.split(column));
    const int h = row0 + row, w = static_cast<int>(column) - box.edge;
    const bool inside = row < box.rows && static_cast<unsigned>(h) < static_cast<unsigned>(image.height) &&
                        static_cast<unsigned>(w) < static_cast<unsigned>(image.width);
    const T* const from = source + (inside ? (int64_t{h} * image.width + w) * image.channels : 0);
    copy_chunk(target + block_chunk(place, chunk), from + chunk * 8, inside);
  }
}

struct TwoPlaces {
  uint32_t words[16] = {};  // a channel each

  template <class T>
  __device__ void load(const GroupBox& box, const GroupImage& image, const T* source, int row0) {
    uint32_t pair = threadIdx.x;
    const int row = static_cast<int>(box.by_half.split(pair)), h = row0 + row;
    const bool inside = row < box.rows && static_cast<unsigned>(h) < static_cast<unsigned>(image.height);
    const int plane = image.height * image.width / 2;
    const auto* const from = reinterpret_cast<const uint32_t*>(source) +
                             (inside ? h * image.width / 2 + static_cast<int>(pair) : 0);
#pragma unroll
    for (int c = 0; c < 16; ++c) words[c] = inside ? from[c * plane] : 0;
  }
  __device__ void store(unsigned char* tile, const GroupBox& box) const {
    uint32_t pair = threadIdx.x;
    const int row = static_cast<int>(box.by_half.split(pair));
    if (row >= box.rows) return;
    const int place = row * box.pitch + box.edge + static_cast<int>(pair) * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint32_t mixed[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        mixed[i] = __byte_perm(words[2 * i], words[2 * i + 1], half == 0 ? 0x5410 : 0x7632);
      *reinterpret_cast<uint4*>(tile + block_chunk(place + half, 0)) = {mixed[0], mixed[1], mixed[2],
                                                                        mixed[3]};
      *reinterpret_cast<uint4*>(tile + block_chunk(place + half, 1)) = {mixed[4], mixed[5], mixed[6],
                                                                        mixed[7]};
    }
  }
};

// What lies beyond the columns of planes is never written again.
__device__ inline void clear_bytes(unsigned char* tile, int bytes) {
  for (int i = static_cast<int>(threadIdx.x) * 16; i < bytes; i += static_cast<int>(blockDim.x) * 16)
    *reinterpret_cast<uint4*>(tile + i) = {};
}

}  // namespace retrograd::kernels::cuda
