// SPDX-License-Identifier: Apache-2.0
// How blocks share channels-last tensors: neighbouring threads take neighbouring pairs of channels, so that a
// warp reads whole lines; further threads of a block take further tiles of places.
#pragma once

#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

struct LastBlocks {
  int channels, lanes;  // lanes: threads side by side, kV channels each
  int strips;           // tiles that a block takes at once
  int channel_blocks;
  uint32_t tiles;
  FastDiv columns, bands;  // tiles across and down an image
  int xh, xw, yh, yw;
};

constexpr int kMostLanes = 64;

inline bool has_vectors(const Conv& conv, int vector) {
  const size_t bytes = static_cast<size_t>(vector) * size_of(conv.x.dtype);
  return conv.groups % vector == 0 && reinterpret_cast<uintptr_t>(conv.x.data) % bytes == 0 &&
         reinterpret_cast<uintptr_t>(conv.y.data) % bytes == 0;
}

inline LastBlocks last_blocks(const Conv& conv, int threads, int vector, int64_t columns, int64_t bands) {
  LastBlocks p;
  const int lanes = static_cast<int>(conv.groups / vector);
  p.channels = static_cast<int>(conv.groups);
  p.channel_blocks = (lanes + kMostLanes - 1) / kMostLanes;
  p.lanes = (lanes + p.channel_blocks - 1) / p.channel_blocks;
  p.strips = threads / p.lanes;
  p.tiles = static_cast<uint32_t>(conv.batch * columns * bands);
  p.columns = FastDiv(columns);
  p.bands = FastDiv(bands);
  p.xh = static_cast<int>(conv.axes[1].x);
  p.xw = static_cast<int>(conv.axes[2].x);
  p.yh = static_cast<int>(conv.axes[1].y);
  p.yw = static_cast<int>(conv.axes[2].y);
  return p;
}

}  // namespace retrograd::kernels::cuda
