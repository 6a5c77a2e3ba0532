// SPDX-License-Identifier: Apache-2.0
// grad_weight on Hopper's warpgroup products, FP16 and BF16, one tap a tile: any strides, dilations and
// number of taps, over nothing but the pixels that the tap reaches. How the work is cut, and the product
// itself.
#pragma once

#include "kernels/cuda/dense_weight/weight_results.h"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/layout/channel_rows.h"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

struct TapAxis {
  int x = 1, y = 1, kernel = 1, stride = 1, dilation = 1, pad = 0;
  FastDiv by_kernel, by_stride;

  TapAxis() = default;
  explicit TapAxis(const Axis& a)
      : x(static_cast<int>(a.x)),
        y(static_cast<int>(a.y)),
        kernel(static_cast<int>(a.kernel)),
        stride(static_cast<int>(a.stride)),
        dilation(static_cast<int>(a.dilation)),
        pad(static_cast<int>(a.pad)),
        by_kernel(a.kernel),
        by_stride(a.stride) {}
};

struct TapWalk {
  TapAxis axes[3];
  int batch;
  int rows;                    // y channels of a group
  int y_channels, x_channels;  // of a group, filled up to multiples of eight
  int groups;
  FastDiv across_m, taps, across_n;  // across_m: of a group
  // The places of a tap are cut into parts, and each of them among the blocks of a cluster.
  FastDiv parts, cluster;
  int64_t weights;  // of a part, filled up

  int64_t tiles() const { return int64_t{groups} * across_m.divisor * taps.divisor * across_n.divisor; }
  int64_t shares() const { return int64_t{parts.divisor} * cluster.divisor; }
};

// y channels by x channels. The first has two blocks a multiprocessor: beginnings and ends of one hide behind
// the other.
enum class TapCut : unsigned char { k128x128, k128x256, k192x256 };
const char* name_of(TapCut cut);

struct TapPlan {
  TapCut cut;
  TapWalk walk;
  WeightResults results;
  WeightStrides strides;
  double microseconds;  // about how long it takes on an H200, launches aside
};

// Of a convolution that supports() of its engine takes. False: too many blocks.
bool plan_tap_weight(const Conv& conv, DType rows, TapPlan* plan);

// results: w or a filter; of parts null. Rows are aligned to 16 bytes; needs a Hopper GPU.
void tap_weight(const TapPlan& plan, RowType type, const void* x_rows, const void* y_rows, void* results,
                float* parts, Stream stream);

}  // namespace retrograd::kernels::cuda
