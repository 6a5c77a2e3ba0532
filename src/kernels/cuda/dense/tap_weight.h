// SPDX-License-Identifier: Apache-2.0
// grad_weight on Hopper's warpgroup products, FP16 and BF16, one tap a tile: any strides, dilations and
// number of taps, over nothing but the places that the tap reaches. How the work is cut, and the product
// itself.
#pragma once

#include "kernels/cuda/layout/channel_rows.h"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

struct TapAxis {
  int x, y, kernel, stride, dilation, pad;
};

struct TapWalk {
  TapAxis axes[3];
  int batch, taps;
  int rows;                    // y channels
  int y_channels, x_channels;  // filled up to multiples of eight
  int across_m, across_n;
  // The places of a tap are cut into parts, and each of them among the blocks of a cluster.
  int parts, cluster;
  int64_t weights;  // of a part, filled up
};

// y channels by x channels. The first has two blocks a multiprocessor: beginnings and ends of one hide behind
// the other.
enum class TapCut : unsigned char { k128x128, k128x256, k192x256 };
const char* name_of(TapCut cut);

enum class TapResults : unsigned char {
  kInPlace,  // in w
  kFilter,   // as [y channel][tap][x channel, filled up] of the operands' type, which is w's, too
  kParts     // as [part][y channel][tap][x channel, filled up] in FP32
};

struct TapPlan {
  TapCut cut;
  TapWalk walk;
  TapResults results;
  int64_t strides[4];   // y channel, d, h, w, multiples of eight; x channels lie side by side
  double microseconds;  // about how long it takes on an H200, launches aside
};

// Of a convolution without groups, which supports() of its engine takes. False: too many blocks.
bool plan_tap_weight(const Conv& conv, DType rows, TapPlan* plan);

// results: w or a filter; of parts null. Rows are aligned to 16 bytes; needs a Hopper GPU.
void tap_weight(const TapPlan& plan, RowType type, const void* x_rows, const void* y_rows, void* results,
                float* parts, Stream stream);

}  // namespace retrograd::kernels::cuda
