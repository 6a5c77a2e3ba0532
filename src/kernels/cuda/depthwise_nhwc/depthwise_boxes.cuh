// SPDX-License-Identifier: Apache-2.0
// Boxes of channels-last tensors in shared memory: 14 x 14 places, and as many around them as a kernel
// reaches, of 64 channels. A thread takes two rows of places and one channel or two; the next box is on its
// way meanwhile.
#pragma once

#include "kernels/cuda/dense/tile_mma.cuh"
#include "kernels/cuda/depthwise_nhwc/depthwise_last_plan.h"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

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

}  // namespace retrograd::kernels::cuda
