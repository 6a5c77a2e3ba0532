// SPDX-License-Identifier: Apache-2.0
// Strides, forms and cuts of gather products in place.
#include <algorithm>
#include <initializer_list>

#include "base/checked.h"
#include "kernels/cuda/dense/gather_in_place.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int64_t kM = 64;            // places of a tile
constexpr int64_t kProcessors = 132;  // that tiles and parts should fill: a number, as bits depend on it
constexpr int64_t kAtOnce = 3;        // blocks of one
constexpr int64_t kFewestSteps = 16;  // of a part: fewer take less time than one more launch
constexpr int64_t kMostParts = 32;

bool are_multiples(std::initializer_list<int64_t> values, int64_t of) {
  return std::all_of(values.begin(), values.end(), [&](int64_t value) { return value % of == 0; });
}
int64_t all_columns(const Conv& conv, bool forward, Columns columns) {
  int64_t count = forward ? conv.y_channels : conv.x_channels;
  if (columns != Columns::kChannels)
    for (const Axis& axis : conv.axes) count *= axis.kernel;
  return count;
}

}  // namespace

InPlaceWeights in_place_weights(const Conv& conv, bool forward, Columns columns) {
  const auto& strides = conv.w.strides;
  const int64_t of_y = conv.y_channels > 1 ? strides[0] : 0, of_x = conv.x_channels > 1 ? strides[1] : 0;
  InPlaceWeights weights{};
  weights.group = conv.groups > 1 ? conv.y_channels * strides[0] : 0;
  weights.term = forward ? of_x : of_y;
  weights.column = forward ? of_y : of_x;
  if (columns != Columns::kChannels) {
    weights.column = 1;
    return weights;
  }
  for (int a = 0; a < 3; ++a) weights.tap[a] = conv.axes[a].kernel > 1 ? strides[2 + a] : 0;
  return weights;
}

InPlaceForm in_place_form(const Conv& conv, bool forward, Columns columns) {
  const Tensor& source = forward ? conv.x : conv.y;
  const int64_t channels = forward ? conv.x_channels : conv.y_channels;
  const auto chunk = static_cast<int64_t>(16 / size_of(conv.w.dtype));
  // Places of the source are rows without gaps.
  int64_t stride = channels * conv.groups;
  bool rows = source.strides[1] == 1 && channels % chunk == 0;
  for (int a = 2; a >= -1; --a) {
    const int64_t size = a < 0 ? conv.batch : forward ? conv.axes[a].x : conv.axes[a].y;
    rows = rows && (size == 1 || source.strides[a < 0 ? 0 : 2 + a] == stride);
    stride *= size;
  }
  const InPlaceWeights w = in_place_weights(conv, forward, columns);
  rows = rows && w.column == 1 &&
         are_multiples({all_columns(conv, forward, columns), w.group, w.term, w.tap[0], w.tap[1], w.tap[2]},
                       chunk);
  return rows ? InPlaceForm::kRows : InPlaceForm::kElements;
}

InPlaceCut in_place_cut(const GatherProduct& product, InPlaceForm form,
                        std::span<const ProductAxes> residues) {
  const Conv& conv = product.conv;
  const int64_t channels = product.forward ? conv.x_channels : conv.y_channels,
                columns = all_columns(conv, product.forward, product.columns),
                chunks = ceil_div(channels, static_cast<int64_t>(128 / size_of(conv.w.dtype)));
  InPlaceCut cut;
  int64_t down = 0, steps_down = 0, most = 0;
  for (const ProductAxes& axes : residues) {
    int64_t places = conv.batch, taps = 1;
    for (const ProductAxis& axis : axes) places *= axis.results, taps *= axis.taps;
    cut.steps = std::max(cut.steps, taps * chunks);
    steps_down += taps * chunks * ceil_div(places, kM) * conv.groups;
    down += ceil_div(places, kM) * conv.groups;
    most = std::max(most, ceil_div(places, kM));
  }
  if (form == InPlaceForm::kElements && (columns <= 32 || down * ceil_div(columns, 64) < kProcessors))
    cut.n = 32;
  cut.tiles = down * ceil_div(columns, cut.n);
  cut.tile_steps = steps_down * ceil_div(columns, cut.n);
  if (cut.tiles == 0) return cut;
  cut.parts = static_cast<int>(std::clamp<int64_t>(
      std::min(kAtOnce * kProcessors / cut.tiles, cut.steps / kFewestSteps), 1, kMostParts));
  const int64_t together = std::min<int64_t>(static_cast<int64_t>(residues.size()), kMostResidues);
  if (cut.parts > 1)
    cut.partial_floats = cut.parts * together * conv.groups * most * kM * ceil_div(columns, cut.n) * cut.n;
  return cut;
}

}  // namespace retrograd::kernels::cuda
