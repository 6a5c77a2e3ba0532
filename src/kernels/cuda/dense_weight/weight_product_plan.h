// SPDX-License-Identifier: Apache-2.0
// How products of grad_weight are cut: tiles, and parts that the pixels are cut into. The number of parts is
// the order of sums, so both are functions of the problem and WeightGpu alone, chosen for 132
// multiprocessors.
#pragma once

#include <algorithm>
#include <span>

#include "base/checked.h"
#include "kernels/cuda/dense/places_map.h"
#include "kernels/cuda/layout/channel_rows.h"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

inline int64_t filled_to(int64_t channels, int64_t chunk) { return ceil_div(channels, chunk) * chunk; }
inline int64_t taps_of(const Conv& conv) {
  return conv.axes[0].kernel * conv.axes[1].kernel * conv.axes[2].kernel;
}
inline int64_t places_of(const Conv& conv) {
  return conv.batch * conv.axes[0].y * conv.axes[1].y * conv.axes[2].y;
}
// Places of x along an axis that windows reach, about.
inline int64_t touched_places(const Axis& a) {
  const int64_t reach = (a.kernel - 1) * a.dilation + 1;
  return std::min(a.x, (a.y - 1) * std::min(a.stride, reach) + reach);
}

// What of a GPU they depend on.
struct WeightGpu {
  bool warpgroups;       // it has Hopper's products
  int64_t shared_bytes;  // of a block, at most
};

struct WeightChoice {
  int m, n;  // of a tile; 0: warpgroups' own (f32_weight_choice)
  int64_t parts;
  double time;  // about how long it takes an H200, the sum of the parts included, in microseconds
};

// A tile of some kernel, at_once of them on a multiprocessor, the shared memory of one in bytes, and how long
// a step of one takes a multiprocessor.
struct StepTile {
  int m, n, at_once, shared;
  double nanoseconds;
};
// What is to be cut: m x n results of each group over steps of the sum.
struct StepWork {
  int64_t m, n, groups, steps;
  int64_t most_parts;
  double floats;         // of a part
  double bytes;          // that come through memory at least
  int64_t shared_bytes;  // that a tile may have
};
// The tile that fits and the number of parts that take least time on 132 multiprocessors: whole waves of
// blocks, each with its beginning and end, no faster than memory, and the parts' way through it.
WeightChoice cheapest_tiles(std::span<const StepTile> tiles, const StepWork& work);
// Nanoseconds of a step of a tile on an H200's multiprocessor: products on tensor cores, against tiles of 128
// x 64, and `asking` instructions for copies; or its 128 bytes a row through L2.
double step_nanoseconds(int m, int n, double speed, double asking, ProductMath math);

// The product of patches by y: one tap, whose channels are the columns (x channel, tap).
Conv conv_of_patches(const Conv& conv);
WeightChoice weight_choice(const Conv& conv, ProductMath math, const WeightGpu& gpu);

// f32_weight: columns of a tap, whole boxes of 32 channels; how many parts, 0: weight_product's own tiles are
// to do it.
inline int64_t f32_weight_columns(const Conv& conv) { return filled_to(conv.x_channels, 32); }
int64_t f32_weight_parts(const Conv& conv, ProductMath math);
WeightChoice f32_weight_choice(const Conv& conv, ProductMath math);
// Places of x under tap 0, in the order of those of y.
PlacesMap f32_weight_places(const Conv& conv, int64_t x_filled);

// grad_weight as a matrix product over rows of channels: y channels by x channels for each tap, summed over
// pixels.
struct WeightProduct {
  Conv conv;     // as it is multiplied: of patches, one tap (conv_of_patches)
  Conv asked;    // as it was asked for: w is written
  bool patches;  // x_rows are patches of `asked`
  bool padded;   // whether a tap may lie beyond the edge: results that are not finite are taken from the
                 // formula
  ProductMath math;
  WeightChoice choice;  // of `conv`
  const void* x_rows;
  const void* y_rows;
  float* workspace;
};

// How many floats of workspace the parts take that the places are cut into.
int64_t weight_product_floats(const Conv& conv, ProductMath math, const WeightChoice& choice);
void weight_product(const WeightProduct& product, Stream stream);

}  // namespace retrograd::kernels::cuda
