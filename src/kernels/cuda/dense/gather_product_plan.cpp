// SPDX-License-Identifier: Apache-2.0
// Tiles by their measured times.
#include <algorithm>
#include <initializer_list>
#include <span>

#include "base/checked.h"
#include "kernels/cuda/dense/gather_product.h"

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
  // What is loaded, not what is multiplied, takes the time of few columns.
  if (columns <= 16) return {128, 16, tiles.time_of(128, 16, 3, math == ProductMath::kF32 ? 0.8 : 0.32)};
  if (columns <= 32) return {128, 32, tiles.time_of(128, 32, 4, 0.9)};
  const double wide = tiles.time_of(128, 64, 2, 1.0), small = tiles.time_of(64, 64, 3, 0.92);
  // Three products of TF32 have no registers for more.
  const double square = tiles.time_of(128, 128, 2, 1.1);
  if (math != ProductMath::kF32 && square < std::min(wide, small)) return {128, 128, square};
  return wide <= small ? GatherTiles{128, 64, wide} : GatherTiles{64, 64, small};
}

int gather_parts(int64_t places, int64_t columns, int64_t count, int64_t steps) {
  constexpr int64_t kBlocks = 2 * 132, kFewest = 4, kMost = 32;  // kFewest: steps of a part
  const int64_t tiles = ceil_div(places, 64) * ceil_div(columns, 64) * count;
  if (tiles == 0 || 2 * tiles > kBlocks) return 1;
  return static_cast<int>(std::clamp<int64_t>(std::min(kBlocks / tiles, steps / kFewest), 1, kMost));
}

GatherCut gather_cut(const GatherProduct& product, std::span<const ProductAxes> residues) {
  const Conv& conv = product.conv;
  int64_t columns = product.forward ? conv.y_channels : conv.x_channels, places = 0;
  if (product.columns != Columns::kChannels)
    for (const Axis& axis : conv.axes) columns *= axis.kernel;
  for (const ProductAxes& axes : residues)
    places = std::max(places, conv.batch * axes[0].results * axes[1].results * axes[2].results);
  const int64_t count = conv.groups * std::min<int64_t>(static_cast<int64_t>(residues.size()), kMostResidues);
  GatherCut cut{gather_tiles(places, columns, count * product.parts, product.math, product.multiprocessors),
                0};
  if (product.parts > 1)
    cut.partial_floats = count * product.parts * ceil_div(places, cut.tiles.m) * cut.tiles.m *
                         ceil_div(columns, cut.tiles.n) * cut.tiles.n;
  return cut;
}

GatherRun gather_run(const GatherProduct& product, std::span<const ProductAxes> residues) {
  const Tensor& result = product.forward ? product.conv.y : product.conv.x;
  const int64_t channels = product.forward ? product.conv.y_channels : product.conv.x_channels;
  const Axis(&axes)[3] = product.conv.axes;
  const auto* strides = result.strides;
  const bool folded = product.columns != Columns::kChannels;
  const bool taps_fast = product.columns == Columns::kFoldedTapsFast;
  const auto size = static_cast<int64_t>(size_of(result.dtype));
  const auto address = reinterpret_cast<uintptr_t>(result.data);
  GatherRun run{folded || strides[1] == 1, 1};
  const auto fits = [&](int64_t length) {
    const auto divides = [&](std::initializer_list<int64_t> values) {
      return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v % length == 0; });
    };
    if (address % static_cast<uintptr_t>(length * size) != 0) return false;
    if (taps_fast)
      return strides[4] == 1 && axes[2].dilation == 1 &&
             divides({axes[2].kernel, axes[2].x, residues[0][2].result_step, residues[0][2].result_first,
                      strides[0], strides[1], strides[2], strides[3]});
    if (run.by_columns)
      return strides[1] == 1 && divides({channels, strides[0], strides[2], strides[3], strides[4]});
    // Places side by side over whole planes, and so all in one product.
    if (residues.size() != 1) return false;
    int64_t plane = 1;
    for (int a = 2; a >= 0; --a) {
      const ProductAxis& axis = residues[0][static_cast<size_t>(a)];
      const int64_t all = product.forward ? axes[a].y : axes[a].x;
      if (axis.result_step != 1 && all != 1) return false;
      if (axis.results != all || (all != 1 && strides[2 + a] != plane)) return false;
      plane *= all;
    }
    return divides({plane, strides[0], strides[1]});
  };
  for (const int64_t length : {16 / size, 8 / size}) {
    if (length < 2 || (length * size == 8 && !run.by_columns)) break;
    if (!fits(length)) continue;
    run.length = static_cast<int>(length);
    break;
  }
  return run;
}

namespace {

// Blocks of clusters that run at the same time: they lie in one of eight sixteens, and odd ones leave one of
// a pair of multiprocessors idle.
int64_t blocks_at_once(int64_t shares, int64_t multiprocessors) {
  constexpr int64_t kNeighbours = 8;
  if (shares == 1) return multiprocessors;
  if (shares % 2 == 1) return std::max(multiprocessors / (shares + 1) * shares, shares);
  return std::max<int64_t>(kNeighbours * (multiprocessors / kNeighbours / shares * shares), shares);
}

F32Tiles cheapest_f32(int64_t places, int64_t columns, int64_t steps, ProductMath math, int shares,
                      int multiprocessors) {
  constexpr double kCluster = 2000, kFetched = 60;  // nanoseconds of two barriers; bytes in one
  F32Tiles best{};
  for (const Tiling& tiling : math == ProductMath::kF32 ? std::span<const Tiling>(kThree) : kOne) {
    const int64_t blocks = ceil_div(places, tiling.m) * ceil_div(columns, tiling.n) * shares;
    const double added =
        shares == 1
            ? 0
            : kCluster +
                  static_cast<double>(ceil_div(tiling.n / 8, shares) * 8 * shares * tiling.m * 4) / kFetched;
    const double time = 1e-3 *
                        static_cast<double>(ceil_div(blocks, blocks_at_once(shares, multiprocessors))) *
                        (static_cast<double>(ceil_div(steps, shares)) * tiling.step + tiling.rest + added);
    if (best.m == 0 || time < best.time) best = {tiling.m, tiling.n, shares, time};
  }
  return best;
}

}  // namespace

F32Tiles f32_gather_tiles(int64_t places, int64_t columns, int64_t steps, ProductMath math,
                          int multiprocessors) {
  constexpr int kProcessors = 132, kMostShares = 8, kFewestSteps = 8;
  constexpr double kWorth = 0.9;  // of the time without one more
  F32Tiles best = cheapest_f32(places, columns, steps, math, 1, kProcessors);
  for (int shares = 2; shares <= kMostShares && steps / shares >= kFewestSteps; ++shares) {
    const F32Tiles more = cheapest_f32(places, columns, steps, math, shares, kProcessors);
    if (more.time < kWorth * best.time) best = more;
  }
  return cheapest_f32(places, columns, steps, math, best.shares, multiprocessors);
}

}  // namespace retrograd::kernels::cuda
