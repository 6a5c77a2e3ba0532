// SPDX-License-Identifier: Apache-2.0
// Tiles and parts by their measured times.
#include "kernels/cuda/dense_weight/weight_product_plan.h"

#include <algorithm>
#include <iterator>

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
  const int64_t columns = taps_of(conv) * f32_weight_columns(conv);
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

bool is_f32(ProductMath math) { return math == ProductMath::kF32 || math == ProductMath::kTF32; }

struct Tile {
  int m, n, stages, at_once;
  double speed;
  bool in_f32;  // warps of FP32 are 32 x 32 at least
};
constexpr Tile kTiles[] = {
    {128, 128, 4, 1, 1.0, true}, {128, 64, 4, 2, 0.98, true},  {64, 128, 4, 2, 0.97, true},
    {32, 128, 4, 2, 0.85, true}, {64, 64, 3, 3, 0.9, true},    {32, 64, 4, 3, 0.75, true},
    {64, 32, 4, 3, 0.75, true},  {16, 128, 3, 3, 0.65, false}, {32, 32, 4, 4, 0.6, false}};

// Of a stage: 128 bytes of both operands, eight elements more a row, and the table of its places.
int shared_of(const Tile& tile, ProductMath math) {
  return tile.stages * ((tile.m + tile.n + 16) * 128 + 8 * static_cast<int>(chunk_elements(math)) * 16);
}

WeightChoice choose(const Conv& conv, ProductMath math, int64_t shared_bytes) {
  const int64_t chunk = chunk_elements(math), x_filled = filled_to(conv.x_channels, chunk);
  const int64_t columns = taps_of(conv) * x_filled, steps = ceil_div(places_of(conv), 8 * chunk);
  StepTile tiles[std::size(kTiles)];
  size_t count = 0;
  for (const Tile& tile : kTiles) {
    if (is_f32(math) && !tile.in_f32) continue;
    const double asking = 0.25 * (tile.m * 8 + tile.n * 14);
    tiles[count++] = {tile.m, tile.n, tile.at_once, shared_of(tile, math),
                      step_nanoseconds(tile.m, tile.n, tile.speed, asking, math)};
  }
  StepWork work;
  work.m = conv.y_channels;
  work.n = columns;
  work.groups = conv.groups;
  work.steps = steps;
  work.most_parts = 256;
  work.floats = static_cast<double>(conv.groups * conv.y_channels * columns);
  double rows = static_cast<double>(places_of(conv) * filled_to(conv.y_channels, chunk));
  double read = static_cast<double>(conv.batch * x_filled);
  for (const Axis& a : conv.axes) read *= static_cast<double>(touched_places(a));
  const int64_t element = 16 / chunk;
  work.bytes = (rows + read) * static_cast<double>(conv.groups * element);
  work.shared_bytes = shared_bytes;
  return cheapest_tiles({tiles, count}, work);
}

// 0: not there
int64_t parts_on_warpgroups(const Conv& conv, ProductMath math, const WeightGpu& gpu) {
  if (!is_f32(math) || !gpu.warpgroups) return 0;
  const int64_t parts = f32_weight_parts(conv, math);
  const bool is_full = conv.x_channels == f32_weight_columns(conv);
  if (parts == 0 || is_full) return parts;
  if (f32_weight_choice(conv, math).time <= choose(conv, math, gpu.shared_bytes).time) return parts;
  return 0;
}

}  // namespace

WeightChoice cheapest_tiles(std::span<const StepTile> tiles, const StepWork& work) {
  constexpr double kEnds = 2;     // steps that nothing hides at a block's beginning and end
  constexpr double kAlone = 0.8;  // of a block more: what fewer blocks than there could be wait for
  constexpr double kBytes = 3200, kAdded = 2400;  // a nanosecond: of operands, and of parts that are added up
  constexpr int64_t kMostBlocks = 16;             // of a multiprocessor that parts are cut for
  const int64_t most = std::clamp<int64_t>(std::min(work.steps / 4, 65535 / work.groups), 1, work.most_parts);
  WeightChoice best{};
  for (const StepTile& tile : tiles) {
    if (tile.shared > work.shared_bytes) continue;
    const int64_t blocks = ceil_div(work.n, tile.n) * ceil_div(work.m, tile.m) * work.groups;
    // As many parts as make the same number of blocks on the fullest multiprocessor.
    for (int64_t level = 1, tried = 0; level <= kMostBlocks; ++level) {
      const int64_t parts = std::clamp<int64_t>(132 * level / blocks, 1, most);
      if (parts == tried) continue;
      tried = parts;
      const int64_t slots = 132 * tile.at_once, rest = ceil_div(blocks * parts % slots, 132);
      const double missing = rest == 0 ? 0 : static_cast<double>(tile.at_once - rest) / tile.at_once;
      const int64_t full = blocks * parts / slots;
      const double turns = static_cast<double>(full * tile.at_once + rest) + kAlone * missing;
      const double product =
          turns * (static_cast<double>(ceil_div(work.steps, parts)) + kEnds) * tile.nanoseconds;
      const double adding = 2 * 4 * static_cast<double>(parts) * work.floats / kAdded;
      const double time = (std::max(product, work.bytes / kBytes) + adding) * 1e-3;
      if (best.parts != 0 && time >= best.time) continue;
      best = {tile.m, tile.n, parts, time};
    }
  }
  return best;
}

double step_nanoseconds(int m, int n, double speed, double asking, ProductMath math) {
  // Of a multiprocessor, a nanosecond: products at 54 TFLOP/s in FP32 and 300 in 16 bits; instructions, of
  // which every other one hides behind products; bytes of L2.
  constexpr double kThreeRate = 205, kOneRate = 480, kSixteenBits = 1140, kInstructions = 8.2, kHidden = 0.5,
                   kL2Bytes = 48;
  const double rate = math == ProductMath::kF32    ? kThreeRate
                      : math == ProductMath::kTF32 ? kOneRate
                                                   : kSixteenBits;
  const double products = static_cast<double>(m * n * 8 * chunk_elements(math)) / (rate * speed);
  return std::max(products + kHidden * asking / kInstructions, (m + n) * 128 / kL2Bytes);
}

Conv conv_of_patches(const Conv& conv) {
  Conv patches = conv;
  patches.x_channels = conv.x_channels * taps_of(conv);
  for (Axis& a : patches.axes) a = {.x = a.y, .y = a.y, .kernel = 1, .stride = 1, .dilation = 1, .pad = 0};
  return patches;
}

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
  const int64_t columns = taps_of(conv) * conv.x_channels;
  if (conv.y_channels <= 32 || columns <= 64) return 0;      // tiles would be half empty
  if (conv.x_channels < kTerms || !can_say(conv)) return 0;  // no boxes
  return f32_weight_choice(conv, math).parts;
}

WeightChoice weight_choice(const Conv& conv, ProductMath math, const WeightGpu& gpu) {
  if (parts_on_warpgroups(conv, math, gpu) == 0) return choose(conv, math, gpu.shared_bytes);
  const WeightChoice choice = f32_weight_choice(conv, math);
  return {0, 0, choice.parts, choice.time};
}

// Enough for either kernel: the copy engine may decline.
int64_t weight_product_floats(const Conv& conv, ProductMath math, const WeightChoice& choice) {
  const int64_t columns =
      choice.m == 0 ? f32_weight_columns(conv) : filled_to(conv.x_channels, chunk_elements(math));
  return choice.parts * columns * conv.groups * conv.y_channels * taps_of(conv);
}

}  // namespace retrograd::kernels::cuda
