// SPDX-License-Identifier: Apache-2.0
// How products of grad_weight are cut: tiles, and parts that the places are cut into. The number of parts is
// the order of sums, so both are functions of the problem alone, chosen for 132 multiprocessors.
#pragma once

#include "base/checked.h"
#include "kernels/cuda/dense/places_map.h"
#include "kernels/cuda/dense/weight_product.h"

namespace retrograd::kernels::cuda {

inline int64_t filled_to(int64_t channels, int64_t chunk) {
  return retrograd::ceil_div(channels, chunk) * chunk;
}
inline int64_t taps_of(const Conv& conv) {
  return conv.axes[0].kernel * conv.axes[1].kernel * conv.axes[2].kernel;
}
inline int64_t places_of(const Conv& conv) {
  return conv.batch * conv.axes[0].y * conv.axes[1].y * conv.axes[2].y;
}

struct WeightChoice {
  int m, n;  // of a tile; 0: warpgroups' own (f32_weight_choice)
  int64_t parts;
  // About how long it takes: of warpgroups in microseconds on an H200, of tiles in products of a
  // multiprocessor that are made one after the other, or idle.
  double time;
};
WeightChoice weight_choice(const Conv& conv, ProductMath math, bool warpgroups);

// f32_weight: how many parts; 0: weight_product's own tiles are to do it.
int64_t f32_weight_parts(const Conv& conv, ProductMath math);
WeightChoice f32_weight_choice(const Conv& conv, ProductMath math);
// Places of x under tap 0, in the order of those of y.
PlacesMap f32_weight_places(const Conv& conv, int64_t x_filled);

}  // namespace retrograd::kernels::cuda
