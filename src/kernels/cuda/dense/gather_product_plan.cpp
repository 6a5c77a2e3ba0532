// SPDX-License-Identifier: Apache-2.0
// Tiles by their measured times.
#include "kernels/cuda/dense/gather_product_plan.h"

#include <algorithm>
#include <span>

#include "base/checked.h"

namespace retrograd::kernels::cuda {
namespace {

// The time of tiles of m x n results on multiprocessors that take `at_once` of them each; a wave that does
// not fill them runs a little faster.
struct Tiles {
  int64_t places, columns, groups, multiprocessors;

  double time_of(int m, int n, int at_once, double speed) const {
    const int64_t tiles = ceil_div(places, m) * ceil_div(columns, n) * groups;
    const int64_t waves = tiles / (multiprocessors * at_once),
                  rest = ceil_div(tiles % (multiprocessors * at_once), multiprocessors);
    return (static_cast<double>(waves * at_once) + static_cast<double>(rest) * (rest < at_once ? 1.2 : 1.0)) *
           m * n / speed;
  }
};

// Nanoseconds of a step and of a tile's beginning and end, measured on an H200.
struct Tiling {
  int m, n;
  double step, rest;
};
constexpr Tiling kThree[] = {
    {128, 128, 978, 4000}, {128, 160, 1190, 5000}, {128, 112, 850, 4500}, {192, 64, 771, 4500}};
constexpr Tiling kOne[] = {{128, 128, 420, 4000}, {192, 64, 390, 4000}};

}  // namespace

GatherTiles gather_tiles(int64_t places, int64_t columns, int64_t groups, ProductMath math,
                         int multiprocessors) {
  const Tiles tiles{places, columns, groups, multiprocessors};
  if (columns <= 32) return {128, 32, tiles.time_of(128, 32, 4, 0.9)};
  const double wide = tiles.time_of(128, 64, 2, 1.0), small = tiles.time_of(64, 64, 3, 0.92);
  // Three products of TF32 have no registers for more.
  const double square = tiles.time_of(128, 128, 2, 1.1);
  if (math != ProductMath::kF32 && square < std::min(wide, small)) return {128, 128, square};
  return wide <= small ? GatherTiles{128, 64, wide} : GatherTiles{64, 64, small};
}

GatherTiles f32_gather_tiles(int64_t places, int64_t columns, int64_t steps, ProductMath math,
                             int multiprocessors) {
  GatherTiles best{};
  double least = 0;
  for (const Tiling& tiling : math == ProductMath::kF32 ? std::span<const Tiling>(kThree) : kOne) {
    const int64_t tiles = ceil_div(places, tiling.m) * ceil_div(columns, tiling.n);
    const double time = static_cast<double>(ceil_div(tiles, multiprocessors)) *
                        (static_cast<double>(steps) * tiling.step + tiling.rest);
    if (best.m != 0 && time >= least) continue;
    least = time;
    best = {tiling.m, tiling.n, time * 1e-3};
  }
  return best;
}

}  // namespace retrograd::kernels::cuda
