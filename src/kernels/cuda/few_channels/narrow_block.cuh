// SPDX-License-Identifier: Apache-2.0
// Boxes of 16 channels in shared memory as rows of channels, 32 bytes a pixel, zeros beyond the edge.
//
// The two chunks of a pixel change sides every four pixels, so that one chunk of eight pixels in a row, which
// a quarter of a warp reads at once, lies in different banks.
#pragma once

#include "kernels/cuda/dense/tile_mma.cuh"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/few_channels/narrow.h"

namespace retrograd::kernels::cuda {

__device__ inline uint32_t block_chunk(int place, int chunk) {
  return static_cast<uint32_t>(place * 32 + ((chunk ^ (place >> 2 & 1)) << 4));
}

// An image from the first of 16 channels on; `live` of them are there.
template <class T>
struct BlockImage {
  const T* data;
  int64_t channel, place;  // elements from channel to channel, from place to place
  int live, height, width;
  bool whole;  // a place is two aligned chunks
};

// A thread a place: 16 loads, or two of 16 bytes, under way at once. Places beyond `places` are zeros up to
// `filled`.
template <class T>
__device__ void stage_block(unsigned char* tile, const BlockImage<T>& image, int places, int filled,
                            const FastDiv& pitch, int row0, int column0) {
  for (int place = static_cast<int>(threadIdx.x); place < filled; place += static_cast<int>(blockDim.x)) {
    uint32_t column = static_cast<uint32_t>(place);
    const int h = row0 + static_cast<int>(pitch.split(column)), w = column0 + static_cast<int>(column);
    const bool inside = place < places && static_cast<unsigned>(h) < static_cast<unsigned>(image.height) &&
                        static_cast<unsigned>(w) < static_cast<unsigned>(image.width);
    uint4 chunks[2] = {};
    if (inside) {
      const T* const source = image.data + (int64_t{h} * image.width + w) * image.place;
      if (image.whole) {
        chunks[0] = reinterpret_cast<const uint4*>(source)[0];
        chunks[1] = reinterpret_cast<const uint4*>(source)[1];
      } else {
        uint32_t words[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          const auto* const low = reinterpret_cast<const unsigned short*>(source + 2 * i * image.channel);
          const auto* const high =
              reinterpret_cast<const unsigned short*>(source + (2 * i + 1) * image.channel);
          const uint32_t l = 2 * i < image.live ? *low : 0, h2 = 2 * i + 1 < image.live ? *high : 0;
          words[i] = l | h2 << 16;
        }
        chunks[0] = {words[0], words[1], words[2], words[3]};
        chunks[1] = {words[4], words[5], words[6], words[7]};
      }
    }
    *reinterpret_cast<uint4*>(tile + block_chunk(place, 0)) = chunks[0];
    *reinterpret_cast<uint4*>(tile + block_chunk(place, 1)) = chunks[1];
  }
}

}  // namespace retrograd::kernels::cuda
