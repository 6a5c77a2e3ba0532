// SPDX-License-Identifier: Apache-2.0
// Tiles by their measured times.
#include "kernels/cuda/dense/wgmma_gather_plan.h"

#include "kernels/cuda/dense/wgmma_gather.h"

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

const Tensor& result_of(const GatherProduct& product) {
  return product.forward ? product.conv.y : product.conv.x;
}

bool is_walkable(const GatherProduct& product, bool shared) {
  int64_t reach[3];
  for (size_t i = 0; i < 3; ++i) reach[2 - i] = reach_of(product.axes[i]);
  return is_sayable(places_of(product, row_channels(product), shared), reach);
}

bool is_possible(const GatherProduct& product, const Pace& pace) {
  if (pace.shared == 1) return true;
  const ProductAxis& w = product.axes[2];
  return w.taps == pace.shared && w.step == 1 && reach_of(w) <= kMostHalo &&
         result_of(product).strides[1] == 1 && is_walkable(product, true);
}

// The time of all tiles when each of 132 multiprocessors makes one after the other. Tiles add in different
// orders, so the number is not the machine's.
double time_of(const GatherProduct& product, const Pace& pace) {
  const Conv& conv = product.conv;
  const int64_t columns = product.forward ? conv.y_channels : conv.x_channels;
  int64_t places = conv.batch, steps = (row_channels(product) + pace.step_channels - 1) / pace.step_channels;
  for (size_t a = 0; a < 3; ++a) {
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

PlacesMap places_of(const GatherProduct& product, int64_t channels, bool shared) {
  PlacesMap map{};
  map.axes = product.axes[0].source == 1 && product.axes[0].results == 1 && product.axes[0].taps == 1 &&
                     product.axes[0].first == 0
                 ? 2
                 : 3;
  map.channels = channels;
  map.batch = product.conv.batch;
  for (size_t a = 0; a < 3; ++a) {
    const ProductAxis& axis = product.axes[a];
    const int64_t back = axis.tap_step < 0 ? (axis.taps - 1) * axis.tap_step : 0;
    map.sizes[2 - a] = axis.source;
    map.first[2 - a] = axis.first + back;
    map.step[2 - a] = axis.step;
    map.count[2 - a] = axis.results + (shared && a == 2 ? reach_of(axis) : 0);
  }
  return map;
}

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

const char* wgmma_gather_tiles(const GatherProduct& product) {
  switch (wgather::choose(product).tiles) {
    case wgather::Tiles::k128x128:
      return "128 x 128";
    case wgather::Tiles::k192x128:
      return "192 x 128";
    case wgather::Tiles::k128x256:
      return "128 x 256";
    case wgather::Tiles::k128x160:
      return "128 x 160";
    case wgather::Tiles::k256x64:
      return "256 x 64";
    case wgather::Tiles::k256x64Shared:
      return "256 x 64 of shared taps";
    case wgather::Tiles::k512x32Shared:
      break;
  }
  return "512 x 32 of shared taps";
}

bool wgmma_gather_takes(const GatherProduct& product) { return wgather::is_walkable(product, false); }

double wgmma_gather_microseconds(const GatherProduct& product) {
  return wgather::choose(product).microseconds;
}

}  // namespace retrograd::kernels::cuda
