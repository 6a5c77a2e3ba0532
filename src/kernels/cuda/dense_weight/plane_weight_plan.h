// SPDX-License-Identifier: Apache-2.0
// How plane_weight is cut. The number of parts is the order of sums: a function of the problem and the
// shared memory of a block alone, chosen for 132 multiprocessors.
#pragma once

#include "kernels/cuda/dense_weight/weight_product_plan.h"

namespace retrograd::kernels::cuda {

// How an operand comes into shared memory: 16 bytes along its places at a time, or 4.
struct PlaneCopies {
  bool takes = false;  // false: it is not for plane_weight
  bool wide_x = false, wide_y = false;
};
// Any strides in FP32. Pairs of 16 bits only where windows are single places of planes that lie as y's do.
// Addresses are taken to be at 16 bytes.
PlaneCopies plane_copies(const Conv& conv, ProductMath math);
// What of it the addresses of a bound conv allow; the sums are the same. Not `takes`: nothing.
PlaneCopies with_addresses(PlaneCopies copies, const Conv& conv);

struct PlaneChoice {
  PlaneCopies copies;
  int m, n;  // of a tile: y channels, columns (x channel, tap)
  int64_t parts;
  double microseconds;  // about how long it takes an H200, the sum of the parts included
};
PlaneChoice plane_choice(const Conv& conv, ProductMath math, int64_t shared_bytes);

// Columns from one y channel's to the next one's, in the workspace.
inline int64_t plane_pitch(const Conv& conv) { return filled_to(conv.x_channels * taps_of(conv), 4); }
int64_t plane_weight_floats(const Conv& conv, const PlaneChoice& choice);

// grad_weight as a matrix product of planes in place: no operand is copied, or x alone, as patches.
struct PlaneWeight {
  Conv conv;   // as it is multiplied: of patches, one tap (conv_of_patch_planes)
  Conv asked;  // as it was asked for: w is written
  PlaneChoice choice;
  bool padded;  // a tap may lie beyond the edge
  ProductMath math;
  float* workspace;  // plane_weight_floats() of them
};

// The addresses must suit choice's copies (with_addresses).
void plane_weight(const PlaneWeight& product, Stream stream);

}  // namespace retrograd::kernels::cuda
