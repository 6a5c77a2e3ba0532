// SPDX-License-Identifier: Apache-2.0
// How group_gather.cu and group_weight.cu cut their work.
#pragma once

#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/few_channels/narrow.h"

namespace retrograd::kernels::cuda {

struct GroupImage {
  int channels, height, width;  // channels: of the whole tensor
};

// A box in shared memory: rows of `pitch` places, the image's column 0 at
// column `edge`.
struct GroupBox {
  int rows, pitch, edge;
  int places;  // in all, whatever lies behind the last row included
  FastDiv by_pitch, by_half;
};

namespace group_gather {

inline constexpr int kWeightBytes = 9 * 512;

struct Cut {
  GroupImage x, y;
  int in_group;
  int rows, row_tiles, tiles;  // rows of x in a box
  int above;                   // rows of y that a box begins above its rows of x
  GroupBox box;
  FastDiv by_width;
  int64_t w_o, w_i, w_h, w_w;
};

// As many rows as fit, evenly; four warps where they take a whole image.
Cut cut_of(const Conv& conv, int& warps);

}  // namespace group_gather

namespace group_weight {

// Blocks of a multiprocessor at once: what their registers allow.
constexpr int blocks_at_once(int warps, bool last) { return warps == 8 ? last ? 2 : 1 : last ? 4 : 3; }

struct Cut {
  GroupImage x, y;
  int in_group;
  int rows, row_tiles, tiles, in_part;  // rows of y in a box
  int above;                            // rows of x that a box begins above its rows of y
  GroupBox x_box, y_box;
  FastDiv by_width;
};

Cut cut_of(const Conv& conv, bool last, int& warps);
int bytes_of(const Cut& p, int warps);

}  // namespace group_weight

}  // namespace retrograd::kernels::cuda
