// SPDX-License-Identifier: Apache-2.0
// Which tiles a product of warpgroups is cut into, and how it walks over pixels.
#pragma once

#include <cstdlib>

#include "kernels/cuda/dense/places_map.h"
#include "kernels/cuda/dense/wgmma_gather.h"

namespace retrograd::kernels::cuda::wgather {

inline constexpr int kMostHalo = 16;  // rows that shared taps reach further

// How far the last tap lies behind the first.
inline int64_t reach_of(const ProductAxis& axis) { return (axis.taps - 1) * std::abs(axis.tap_step); }

// The walk over the places; shared: taps along w share what they read.
PlacesMap places_of(const GatherProduct& product, const ProductAxes& axes, int64_t channels, bool shared);

}  // namespace retrograd::kernels::cuda::wgather
