// SPDX-License-Identifier: Apache-2.0
// Which tiles a product of warpgroups is cut into, and how it walks over places.
#pragma once

#include <cstdlib>

#include "kernels/cuda/dense/gather_product.h"
#include "kernels/cuda/dense/places_map.h"

namespace retrograd::kernels::cuda::wgather {

inline constexpr int kMostHalo = 16;  // rows that shared taps reach further

enum class Tiles : unsigned char {
  k128x128,
  k192x128,
  k128x256,
  k128x160,
  k256x64,
  k256x64Shared,
  k512x32Shared
};

struct Choice {
  Tiles tiles;
  double microseconds;
};
Choice choose(const GatherProduct& product);

// How far the last tap lies behind the first.
inline int64_t reach_of(const ProductAxis& axis) { return (axis.taps - 1) * std::abs(axis.tap_step); }

// The walk over the places; shared: taps along w share what they read.
PlacesMap places_of(const GatherProduct& product, int64_t channels, bool shared);

}  // namespace retrograd::kernels::cuda::wgather
