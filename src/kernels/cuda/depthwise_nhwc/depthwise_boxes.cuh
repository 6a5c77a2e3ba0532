// SPDX-License-Identifier: Apache-2.0
// Boxes of channels-last tensors in shared memory: 14 x 14 places, and as many around them as a kernel
// reaches, of 64 channels. A thread takes two rows of places and one channel or two; the next box is on its
// way meanwhile.
#pragma once

#include "kernels/cuda/dense/tile_mma.cuh"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

constexpr int kBoxWidth = 14, kBoxRows = 2, kBoxStrips = kBoxWidth / kBoxRows;
constexpr int kBoxChannels = 64;

struct Boxes {
  int channels, height, width;
  uint32_t boxes;          // of all images
  FastDiv columns, bands;  // boxes across and down an image
};

struct BoxPlace {
  int64_t image;
  int row, column;
};
__device__ inline BoxPlace place_of(const Boxes& p, uint32_t box) {
  uint32_t column = box;
  uint32_t band = p.columns.split(column);
  const uint32_t image = p.bands.split(band);
  return {image, static_cast<int>(band) * kBoxWidth, static_cast<int>(column) * kBoxWidth};
}

// kSide x kSide places from (row, column) on, of the block's channels; zeros where there are none.
template <class T, int kSide>
__device__ void start_box(T* box, const T* tensor, const Boxes& p, int64_t image, int row, int column,
                          int channel) {
  constexpr int kChunk = 16 / sizeof(T), kChunks = kBoxChannels / kChunk;
  const uint32_t target = shared_address(box);
  const T* const from = tensor + image * p.height * p.width * p.channels + channel;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < kSide * kSide * kChunks;
       i += static_cast<int>(blockDim.x)) {
    const int place = i / kChunks, chunk = i % kChunks * kChunk, h = row + place / kSide,
              w = column + place % kSide;
    const bool live = static_cast<unsigned>(h) < static_cast<unsigned>(p.height) &&
                      static_cast<unsigned>(w) < static_cast<unsigned>(p.width) &&
                      channel + chunk < p.channels;
    copy_chunk(target + i * 16, live ? from + (h * p.width + w) * p.channels + chunk : tensor, live);
  }
}

inline Boxes boxes_of(const Conv& conv) {
  Boxes p;
  p.channels = static_cast<int>(conv.groups);
  p.height = static_cast<int>(conv.axes[1].x);
  p.width = static_cast<int>(conv.axes[2].x);
  const int64_t across = (p.width + kBoxWidth - 1) / kBoxWidth, down = (p.height + kBoxWidth - 1) / kBoxWidth;
  p.boxes = static_cast<uint32_t>(conv.batch * across * down);
  p.columns = FastDiv(across);
  p.bands = FastDiv(down);
  return p;
}

// Blocks that share the boxes of 64 channels: as many as are at work at once, each with as many boxes.
inline int64_t box_blocks(const Boxes& p, int64_t at_once) {
  const int64_t channel_blocks = (p.channels + kBoxChannels - 1) / kBoxChannels;
  const int64_t wanted = at_once / channel_blocks > 0 ? at_once / channel_blocks : 1;
  const int64_t rounds = (p.boxes + wanted - 1) / wanted;
  return (p.boxes + rounds - 1) / rounds;
}

}  // namespace retrograd::kernels::cuda
