// SPDX-License-Identifier: Apache-2.0
// How narrow_block_gather.cu cuts its work.
#pragma once

#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/few_channels/narrow.h"

namespace retrograd::kernels::cuda::block_gather {

inline constexpr int kThreads = 256;
inline constexpr int kWarps = kThreads / 32;
inline constexpr int kTiles = 4;  // of 16 super-places that a warp makes

// Window place v of super-place i is y at i + low + v·step, and meets residue r with tap
// first + r − v·tap_step.
struct BlockAxis {
  int x, y, kernel, stride;
  int low, window, step;
  int first, tap_step;
};

struct Cut {
  BlockAxis h, w;
  int all_x, all_y;            // channels of all groups
  int x_channels, y_channels;  // of a block of the grid
  int in_group;                // x channels and y channels of different groups do not meet
  int y_blocks;                // of 16 y channels
  int rows, width;             // super-places of a box
  int row_tiles, column_tiles, tiles;
  int box_rows, pitch;  // of y
  int staged_pitch;     // super-places
  FastDiv by_width, by_pitch, by_stride, by_channels;
  bool last, whole, pairs;  // pairs: two neighbouring results are written at once
  int64_t w_o, w_i, w_h, w_w;
};

Cut cut_of(const Conv& conv, bool last);
int64_t weight_bytes(const Cut& p);
int64_t tile_bytes(const Cut& p);

}  // namespace retrograd::kernels::cuda::block_gather
