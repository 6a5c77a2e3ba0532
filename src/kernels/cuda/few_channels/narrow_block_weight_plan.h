// SPDX-License-Identifier: Apache-2.0
// How narrow_block_weight.cu cuts its work.
#pragma once

#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/few_channels/narrow_blocks.h"

namespace retrograd::kernels::cuda::block_weight {

struct Cut {
  int all_x, all_y;            // channels of all groups
  int x_channels, y_channels;  // of a group, or of 16 channels of whole groups
  int in_group;                // x channels and y channels of different groups do not meet
  int x_in_group;              // how the weights count them
  int o_chunks;                // blocks along the y channels
  int xh, xw, yh, yw;
  int stride_h, stride_w, dilation_h, dilation_w, pad_h, pad_w;
  int rows, row_tiles;  // rows of y in a box
  int box_rows, pitch;  // of the box of x
  int places, filled;   // of y in a box; a multiple of 16
  int tiles, in_part;
  FastDiv by_width, by_pitch;
  bool last, x_whole, y_whole;
  int64_t weights;
};

Cut cut_of(const Conv& conv, bool last);
int64_t bytes_of(const Cut& p);

}  // namespace retrograd::kernels::cuda::block_weight
