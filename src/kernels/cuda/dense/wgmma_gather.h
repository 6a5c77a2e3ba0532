// SPDX-License-Identifier: Apache-2.0
// gather_product on Hopper's warpgroup products: FP16 and BF16 in, the same type out.
#pragma once

#include <cstdlib>
#include <span>
#include <vector>

#include "kernels/cuda/dense/gather_product.h"
#include "kernels/cuda/dense/places_map.h"

namespace retrograd::kernels::cuda {

constexpr size_t kMostGathered = 9;  // products of a launch

// Whether the copy engine can walk over the places.
bool wgmma_gather_takes(const GatherProduct& product, const ProductAxes& axes);

// The shape of tiles: places by channels. Of pairs: a multiprocessor has two blocks, one of which multiplies
// while the other writes. By16, By32: a step has four sixteens or two thirty-twos of channels, of any taps.
// Of shared taps: three taps along w read what is loaded once.
enum class GatherShape : unsigned char {
  k128x128,
  k192x128,
  k128x256,
  k128x160,
  k256x64,
  k128x64Pairs,
  k128x128By16,
  k128x64By16,
  k128x128By32,
  k128x256By32,
  k256x64Shared,
  k512x32Shared
};
const char* name_of(GatherShape shape);

// Products of one launch and how they are cut. The steps of a tile are shared among the blocks of a cluster,
// as many as the problem alone says, since bits depend on it.
struct GatherLaunch {
  std::span<const ProductAxes> residues;
  GatherShape shape;
  int shares;
  double microseconds;  // about, on an H200, without the launch's beginning and end
};
// Looks at sizes and strides only. `residues`: those with most taps first.
std::vector<GatherLaunch> wgmma_gather_launches(const GatherProduct& product,
                                                std::span<const ProductAxes> residues);

// False: nothing was launched. Needs a Hopper GPU, multiples of eight channels a group (of patches: of y
// channels, and one group), addresses that are multiples of 16, weights as [groups][y channels][taps][x
// channels], and a dense result, its channels innermost or outside its places.
bool wgmma_gather(const GatherProduct& product, const GatherLaunch& launch, Stream stream);

// How a product walks over places.
namespace wgather {

inline constexpr int kMostHalo = 16;  // rows that shared taps reach further

// How far the last tap lies behind the first.
inline int64_t reach_of(const ProductAxis& axis) { return (axis.taps - 1) * std::abs(axis.tap_step); }

// The walk over the places; shared: taps along w share what they read.
PlacesMap places_of(const GatherProduct& product, const ProductAxes& axes, int64_t channels, bool shared);

}  // namespace wgather

}  // namespace retrograd::kernels::cuda
