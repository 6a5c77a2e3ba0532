// SPDX-License-Identifier: Apache-2.0
// Tiles and parts by their measured times.
#include "kernels/cuda/dense/weight_product_plan.h"

#include <algorithm>

namespace retrograd::kernels::cuda {
namespace {

constexpr int64_t kTerms = 32;  // of a step of warpgroups in FP32

// Nanoseconds of a step and of a tile's beginning and end, measured on an H200.
struct Tiling {
  int m, n;
  double step, rest;
};
constexpr Tiling kThree[] = {{128, 128, 1230, 4000}, {256, 64, 1140, 5000}, {192, 64, 945, 4500}};
constexpr Tiling kOne[] = {{256, 64, 820, 5000}};

// The tile and the number of parts that take least time on some 132 multiprocessors: whole turns of blocks,
// and the parts' way through memory.
template <int kCount>
WeightChoice choose_of(const Conv& conv, const Tiling (&tilings)[kCount]) {
  constexpr double kBytesANanosecond = 3000;
  const int64_t columns = conv.axes[0].kernel * conv.axes[1].kernel * conv.axes[2].kernel * conv.x_channels;
  const int64_t pairs = ceil_div(conv.batch * conv.axes[0].y * conv.axes[1].y * conv.axes[2].y, 2 * kTerms);
  const auto bytes = static_cast<double>(conv.groups * conv.y_channels * columns * 4);
  const int64_t most = std::clamp<int64_t>(pairs / 2, 1, 256);
  WeightChoice best{};
  double least = 0;
  for (const Tiling& tiling : tilings) {
    const int64_t tiles = ceil_div(columns, tiling.m) * ceil_div(conv.y_channels, tiling.n) * conv.groups;
    for (int64_t parts = 1; parts <= most; ++parts) {
      const double time = static_cast<double>(ceil_div(tiles * parts, 132)) *
                              (static_cast<double>(ceil_div(pairs, parts)) * 2 * tiling.step + tiling.rest) +
                          2 * static_cast<double>(parts) * bytes / kBytesANanosecond;
      if (best.parts != 0 && time >= least) continue;
      least = time;
      best = {tiling.m, tiling.n, parts, time * 1e-3};
    }
  }
  return best;
}
bool can_say(const Conv& conv) {
  int64_t reach[3];
  for (int a = 0; a < 3; ++a) reach[2 - a] = (conv.axes[a].kernel - 1) * conv.axes[a].dilation;
  return is_sayable(f32_weight_places(conv, conv.x_channels), reach);
}

// The tile and the number of parts that take least time on some 132 multiprocessors: whole waves of blocks,
// each with its beginning and end of some six steps, and the parts' way through memory.
WeightChoice choose(const Conv& conv, ProductMath math) {
  struct Tile {
    int m, n, at_once;
    double speed;
  };
  constexpr Tile kTiles[] = {{128, 128, 1, 1.0}, {128, 64, 2, 0.98}, {64, 128, 2, 0.97}, {32, 128, 2, 0.85}};
  const int64_t columns = taps_of(conv) * filled_to(conv.x_channels, chunk_elements(math));
  const int64_t steps = ceil_div(places_of(conv), 8 * chunk_elements(math));
  const auto weights = static_cast<double>(conv.groups * conv.y_channels * columns);
  const int64_t most = std::clamp<int64_t>(steps / 4, 1, 256);
  WeightChoice best{};
  double least = 0;
  for (const Tile& tile : kTiles) {
    const int64_t blocks = ceil_div(columns, tile.n) * ceil_div(conv.y_channels, tile.m) * conv.groups;
    for (int64_t parts = 1; parts <= most && parts * conv.groups <= 65535; ++parts) {
      const int64_t slots = 132 * tile.at_once, rest = ceil_div(blocks * parts % slots, 132);
      const double turns = static_cast<double>(blocks * parts / slots * tile.at_once) +
                           static_cast<double>(rest) * (rest < tile.at_once ? 1.2 : 1.0);
      const double time =
          turns * static_cast<double>(ceil_div(steps, parts) + 6) * tile.m * tile.n / tile.speed +
          0.015 * static_cast<double>(parts) * weights;
      if (best.parts != 0 && time >= least) continue;
      least = time;
      best = {tile.m, tile.n, parts, time * static_cast<double>(8 * chunk_elements(math))};
    }
  }
  return best;
}

bool is_f32(ProductMath math) { return math == ProductMath::kF32 || math == ProductMath::kTF32; }
// 0: not there
int64_t parts_on_warpgroups(const Conv& conv, ProductMath math, bool warpgroups) {
  return is_f32(math) && warpgroups ? f32_weight_parts(conv, math) : 0;
}

}  // namespace

PlacesMap f32_weight_places(const Conv& conv, int64_t x_filled) {
  PlacesMap map{};
  const Axis& d = conv.axes[0];
  map.axes = d.x == 1 && d.y == 1 && d.kernel == 1 && d.pad == 0 ? 2 : 3;
  map.channels = conv.groups * x_filled;
  map.batch = conv.batch;
  for (int a = 0; a < 3; ++a) {
    map.sizes[2 - a] = conv.axes[a].x;
    map.first[2 - a] = -conv.axes[a].pad;
    map.step[2 - a] = conv.axes[a].stride;
    map.count[2 - a] = conv.axes[a].y;
  }
  map.places = kTerms;
  return map;
}

WeightChoice f32_weight_choice(const Conv& conv, ProductMath math) {
  return math == ProductMath::kF32 ? choose_of(conv, kThree) : choose_of(conv, kOne);
}

int64_t f32_weight_parts(const Conv& conv, ProductMath math) {
  const int64_t columns = conv.axes[0].kernel * conv.axes[1].kernel * conv.axes[2].kernel * conv.x_channels;
  if (conv.y_channels <= 32 || columns <= 64) return 0;           // tiles would be half empty
  if (conv.x_channels % kTerms != 0 || !can_say(conv)) return 0;  // no boxes
  return f32_weight_choice(conv, math).parts;
}

WeightChoice weight_choice(const Conv& conv, ProductMath math, bool warpgroups) {
  if (parts_on_warpgroups(conv, math, warpgroups) == 0) return choose(conv, math);
  const WeightChoice choice = f32_weight_choice(conv, math);
  return {0, 0, choice.parts, choice.time};
}

int64_t weight_product_parts(const Conv& conv, ProductMath math, bool warpgroups) {
  return weight_choice(conv, math, warpgroups).parts;
}

// Enough for either kernel: the copy engine may decline.
int64_t weight_product_floats(const Conv& conv, ProductMath math, bool warpgroups) {
  const int64_t parts = std::max(choose(conv, math).parts, parts_on_warpgroups(conv, math, warpgroups));
  return parts * conv.groups * conv.y_channels * taps_of(conv) *
         filled_to(conv.x_channels, chunk_elements(math));
}

}  // namespace retrograd::kernels::cuda
