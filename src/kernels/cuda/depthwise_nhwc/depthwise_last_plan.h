// SPDX-License-Identifier: Apache-2.0
// How the depthwise kernels on channels-last tensors cut their work. Numbers of parts are the order of sums:
// functions of the problem alone.
#pragma once

#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

inline constexpr int kBoxWidth = 14, kBoxRows = 2, kBoxStrips = kBoxWidth / kBoxRows;
inline constexpr int kBoxChannels = 64;

struct Boxes {
  int channels, height, width;
  uint32_t boxes;          // of all images
  FastDiv columns, bands;  // boxes across and down an image
};

Boxes boxes_of(const Conv& conv);
// Blocks that share the boxes of 64 channels: as many as are at work at once, each with as many boxes.
int64_t box_blocks(const Boxes& p, int64_t at_once);
inline int64_t boxes_at_once(const Conv& conv) { return conv.axes[2].kernel == 5 ? 264 : 132; }

struct LastBlocks {
  int channels, lanes;  // lanes: threads side by side, kV channels each
  int strips;           // tiles that a block takes at once
  int channel_blocks;
  uint32_t tiles;
  FastDiv columns, bands;  // tiles across and down an image
  int xh, xw, yh, yw;
};

LastBlocks last_blocks(const Conv& conv, int threads, int vector, int64_t columns, int64_t bands);

inline constexpr int kLastWeightThreads = 128;
struct LastCut {
  LastBlocks blocks;
  int band_rows;
  int64_t parts;
};
LastCut last_cut(const Conv& conv, int columns, int vector);

// Columns and channels of a thread.
inline constexpr int columns_of(int kernel, int stride, int vector) {
  if (stride == 2) return vector == 4 ? 1 : 2;
  if (kernel == 3) return vector == 4 ? 2 : 4;
  return kernel == 5 ? 7 : 8;
}
inline constexpr int narrow_vector(int kernel, int stride) { return stride == 1 && kernel > 3 ? 1 : 2; }
inline constexpr bool may_be_wide(int kernel, int stride) { return stride == 2 || kernel == 3; }

}  // namespace retrograd::kernels::cuda
