// SPDX-License-Identifier: Apache-2.0
// grad_weight on Hopper's warpgroup products, FP16 and BF16: how the work is cut, and the product itself.
#pragma once

#include "kernels/cuda/dense/places_map.h"
#include "kernels/cuda/dense_weight/weight_results.h"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/layout/channel_rows.h"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// Rows of taps that share one walk over places of y. A row is one tap, or all taps along w: with a stride of
// one they are shifts of the same x.
struct WeightUnit {
  uint32_t first_block, tiles, steps, part_steps;  // tiles: of results; steps of 64 places
  int first_row, rows;
  int y_first[3], x_first[3];  // where the walk begins, for x with the unit's first tap
  FastDiv counts[3];           // places of the walk along d, h, w
};
inline constexpr int kMostWeightUnits = 9;

struct WeightWalk {
  WeightUnit units[kMostWeightUnits];
  int unit_count;
  bool flat;  // nothing along d
  int stride[3], dilation[3], source[3], outputs[3], kernel[3];
  uint32_t batch;
  int rows;                    // y channels
  int y_channels, x_channels;  // filled up to multiples of eight
  int across_m, x_groups;      // tiles of y channels; groups of x channels
  int taps, x_rows;            // x_rows: places of x in a step, those of the shifts included
  int64_t weights;
};

// y channels by x channels; with taps: times the three taps along w, 64x192Taps and 64x256Taps over several
// rows of taps. Pairs: up to 32 by 32 channels and all of 3 x 3 x 3 taps.
enum class WeightCut : unsigned char {
  k128x64,
  k128x128,
  k128x192,
  k128x256,
  k128x64Taps,
  k128x128Taps,
  k64x192Taps,
  k64x256Taps,
  kPairs
};
inline constexpr int kWeightStages[] = {8, 6, 5, 4, 8, 6, 6, 5};  // steps in flight, but for pairs
const char* name_of(WeightCut cut);

struct WeightPlan {
  WeightCut cut;
  WeightWalk walk;
  uint32_t blocks;
  int64_t parts;
  bool fills;             // zeros stand for places that are not there
  WeightResults results;  // of one tap a tile and one part; otherwise parts
  WeightStrides strides;
  double microseconds;  // about how long it takes on an H200, launches aside
};

// Of a convolution without groups; whole: where sums of all places may go. False: no cut fits.
bool plan_wgmma_weight(const Conv& conv, WeightResults whole, WeightPlan* plan);

// The walks of a unit, as the copy engine makes them.
PlacesMap weight_y_map(const WeightWalk& walk, int unit);
PlacesMap weight_x_map(const WeightWalk& walk, int unit);

// results: w or a filter; of parts null, and sums go into plan.parts · y channels · taps · x channels (filled
// up) floats. Rows are aligned to 16 bytes; needs a Hopper GPU. False: the driver declined, and nothing was
// launched.
bool wgmma_weight(const WeightPlan& plan, RowType type, const void* x_rows, const void* y_rows, void* results,
                  float* parts, Stream stream);
// The same of a plan for pairs, which is not for others to call.
bool wgmma_weight_pairs(const WeightPlan& plan, RowType type, const void* x_rows, const void* y_rows,
                        float* parts, Stream stream);

}  // namespace retrograd::kernels::cuda
