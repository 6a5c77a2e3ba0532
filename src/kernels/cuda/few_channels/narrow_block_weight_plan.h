// SPDX-License-Identifier: Apache-2.0
// How narrow_block_weight.cu cuts its work.
#pragma once

#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/few_channels/narrow_blocks.h"

namespace retrograd::kernels::cuda::block_weight {

inline constexpr int kMostWarps = 8, kMostOfWarp = 9;

struct Cut {
  int all_x, all_y;            // channels of all groups
  int x_channels, y_channels;  // of a group, or of 16 channels of whole groups
  int in_group;                // x channels and y channels of different groups do not meet
  int x_in_group;              // how the weights count them
  int o_chunks, x_chunks;      // blocks along the channels of a group
  int taps;                    // of the kernel; of_warp: 1, 3, 5, 7 or 9, of each of as many owners
  int of_warp, owners, shares;
  int xh, xw, yh, yw;
  int stride_h, stride_w, dilation_h, dilation_w, pad_h, pad_w;
  int rows, row_tiles;  // rows of y in a box
  int box_rows, pitch;  // of the box of x
  int places, filled;   // of y in a box; a multiple of 16
  int tiles, in_part;
  FastDiv by_width, by_pitch, by_kernel;  // by_kernel: taps of a row
  bool last, x_whole, y_whole;
  int64_t weights;
};

Cut cut_of(const Conv& conv, bool last);
// Places of the box from where a window begins to its tap.
RG_DEVICE inline int tap_offset(const Cut& p, int tap) {
  auto kw = static_cast<uint32_t>(tap);
  const auto kh = static_cast<int>(p.by_kernel.split(kw));
  return kh * p.dilation_h * p.pitch + static_cast<int>(kw) * p.dilation_w;
}
int64_t bytes_of(const Cut& p);

}  // namespace retrograd::kernels::cuda::block_weight
