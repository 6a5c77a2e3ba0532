// SPDX-License-Identifier: Apache-2.0
// result[m, n] = Σ_{tap, c} source[place(m, tap), c] · weight[tap, n, c]
//
// A block makes tiles of places by channels. One thread asks the copy engine for 64 channels of a tap at a
// time, which also fills in zeros beyond the edge; two or three warpgroups multiply what has arrived. Blocks
// stay and take tile after tile, so that copies run on while results are written.
#include "kernels/cuda/dense/wgmma_gather.h"
#include "kernels/cuda/sm90a/gather_cuts.cuh"

namespace retrograd::kernels::cuda {
namespace wgather {
namespace {

// Microseconds of a tile's step, so many channels of a tap or of its shared taps, and of writing its results,
// measured on an H200. Two teams that take turns in multiplying and writing gained 1 to 3 %.
struct Pace {
  Tiles tiles;
  int places, channels, shared, step_channels;
  double step, store;
};
constexpr Pace kPaces[] = {
    {Tiles::k128x128, 128, 128, 1, 64, .345, 1.5},   {Tiles::k192x128, 192, 128, 1, 64, .5, 2.0},
    {Tiles::k128x256, 128, 256, 1, 64, .62, 2.8},    {Tiles::k128x160, 128, 160, 1, 64, .46, 1.8},
    {Tiles::k256x64, 256, 64, 1, 64, .59, 1.0},      {Tiles::k256x64Shared, 256, 64, 3, 64, .98, 1.8},
    {Tiles::k512x32Shared, 512, 32, 3, 32, .7, 1.6},
};

int64_t source_channels(const GatherProduct& product) {
  return product.forward ? product.conv.x_channels : product.conv.y_channels;
}
const Tensor& result_of(const GatherProduct& product) {
  return product.forward ? product.conv.y : product.conv.x;
}

bool is_walkable(const GatherProduct& product, bool shared) {
  Args p{};
  int64_t reach[3];
  for (int i = 0; i < 3; ++i) reach[2 - i] = reach_of(product.axes[i]);
  return is_sayable(describe(product, source_channels(product), shared, p), reach);
}

bool is_possible(const GatherProduct& product, const Pace& pace) {
  if (pace.shared == 1) return true;
  const ProductAxis& w = product.axes[2];
  return w.taps == pace.shared && w.step == 1 && reach_of(w) <= kMostHalo &&
         result_of(product).strides[1] == 1 && is_walkable(product, true);
}

// The time of all tiles when each of 132 multiprocessors makes one after the other.
double time_of(const GatherProduct& product, const Pace& pace) {
  const Conv& conv = product.conv;
  const int64_t columns = product.forward ? conv.y_channels : conv.x_channels;
  int64_t places = conv.batch,
          steps = (source_channels(product) + pace.step_channels - 1) / pace.step_channels;
  for (int a = 0; a < 3; ++a) {
    const ProductAxis& axis = product.axes[a];
    const bool shares = a == 2 && pace.shared > 1;
    places *= axis.results + (shares ? reach_of(axis) : 0);
    steps *= shares ? 1 : axis.taps;
  }
  const int64_t tiles =
      (places + pace.places - 1) / pace.places * ((columns + pace.channels - 1) / pace.channels);
  const int64_t waves = (tiles + 131) / 132;
  return static_cast<double>(waves) * (static_cast<double>(steps) * pace.step + pace.store);
}

}  // namespace

Choice choose(const GatherProduct& product) {
  Choice best{Tiles::k128x128, 0};
  for (const Pace& pace : kPaces) {
    if (!is_possible(product, pace)) continue;
    const double time = time_of(product, pace);
    if (best.microseconds == 0 || time < best.microseconds) best = {pace.tiles, time};
  }
  return best;
}

}  // namespace wgather

bool wgmma_gather_takes(const GatherProduct& product) { return wgather::is_walkable(product, false); }

double wgmma_gather_microseconds(const GatherProduct& product) {
  return wgather::choose(product).microseconds;
}

bool wgmma_gather(const GatherProduct& product, Stream stream) {
  const wgather::Tiles tiles = wgather::choose(product).tiles;
  return product.math == ProductMath::kBF16 ? wgather::launch_bf16(tiles, product, stream)
                                            : wgather::launch_f16(tiles, product, stream);
}

}  // namespace retrograd::kernels::cuda
