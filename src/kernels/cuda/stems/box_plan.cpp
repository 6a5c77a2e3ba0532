// SPDX-License-Identifier: Apache-2.0
// Boxes of pixels whose staged x is small and whose edges waste little.
#include "kernels/cuda/stems/box_plan.h"

#include <algorithm>
#include <cstdlib>

#include "kernels/cuda/counts.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kProcessors = 132;
constexpr int64_t kMostBox = 96 << 10, kWeightRoom = 48 << 10, kMostShared = 200 << 10;
constexpr int kResident = 4, kMostRounds = 8;
constexpr int kMostTiles = 64;    // along an axis that are tried
constexpr double kElement = 0.3;  // cycles of a multiprocessor to stage an element
constexpr double kOfSum = 0.25;   // and to store one
constexpr double kBox = 1200;     // around a box, which other blocks hide in part

BoxAxis axis_of(const Axis& a) {
  return {static_cast<int>(a.x),
          static_cast<int>(a.y),
          static_cast<int>(a.kernel),
          a.y == 1 ? 1 : static_cast<int>(a.stride),
          a.kernel == 1 ? 1 : static_cast<int>(a.dilation),
          static_cast<int>(a.pad),
          1,
          1};
}
int64_t staged(const BoxAxis& a, int64_t places) {
  return (places - 1) * a.stride + int64_t{a.kernel - 1} * a.dilation + 1;
}

// Cycles in which four warps add a fragment of the sum: reads of shared memory, and products.
double fragment_cycles(const BoxProduct& p) {
  const double across = p.columns / 8.0;
  if (p.of_fragment == 16) return 4 * ((p.pairs ? 8 : 16) * 1.5 + across * 2 + 4) + 4 * across * 2;
  return 4 * (8 * 1.5 + across * 2 + 2) + 4 * across * 10;
}

struct Cut {
  int64_t d, h, w;
  double cycles;
};
// The cheapest box of at most 128 places.
Cut cut_of(const BoxProduct& p, int64_t batch, int64_t element) {
  Cut best{0, 0, 0, 0};
  const double fragments = ceil_of(p.filled, p.of_fragment) * fragment_cycles(p);
  for (int64_t tw = 1; tw <= std::min(p.w.y, kMostTiles); ++tw) {
    int64_t w = ceil_div(p.w.y, tw);
    if (tw == kMostTiles) w = std::min<int64_t>(w, kBoxPlaces);
    if (w > kBoxPlaces) continue;
    for (int64_t th = 1; th <= std::min(p.h.y, kMostTiles); ++th) {
      int64_t h = ceil_div(p.h.y, th);
      if (w * h > kBoxPlaces && th < std::min(p.h.y, kMostTiles)) continue;
      h = std::min(h, kBoxPlaces / w);
      const int64_t most = std::min<int64_t>(p.d.y, kBoxPlaces / (w * h));
      const int64_t d = ceil_div(p.d.y, ceil_div(p.d.y, most));
      const int64_t elements = staged(p.d, d) * staged(p.h, h) * staged(p.w, w) * p.channels;
      if (elements * element > kMostBox) continue;
      const double boxes =
          static_cast<double>(batch * ceil_div(p.d.y, d) * ceil_div(p.h.y, h) * ceil_div(p.w.y, w));
      const double cycles = boxes * (static_cast<double>(elements) * kElement + fragments +
                                     static_cast<double>(kBoxPlaces) * p.columns * kOfSum + kBox / kResident);
      if (best.d == 0 || cycles < best.cycles) best = {d, h, w, cycles};
    }
  }
  return best;
}

}  // namespace

BoxPlan box_plan(const Conv& conv) {
  BoxPlan plan{};
  BoxProduct& p = plan.product;
  const auto element = static_cast<int64_t>(size_of(conv.x.dtype));
  p.d = axis_of(conv.axes[0]), p.h = axis_of(conv.axes[1]), p.w = axis_of(conv.axes[2]);
  p.channels = static_cast<int>(conv.x_channels), p.outputs = static_cast<int>(conv.y_channels);
  p.terms = p.channels * p.d.kernel * p.h.kernel * p.w.kernel;
  p.of_fragment = element == 2 ? 16 : 8;
  p.filled = ceil_of(p.terms, p.of_fragment) * p.of_fragment;
  p.columns = p.outputs <= 16 ? 16 : p.outputs <= 32 || element == 4 ? 32 : 64;
  p.column_tiles = ceil_of(p.outputs, p.columns);
  p.pairs = element == 2 && p.channels % 2 == 0;
  const auto is_last = [](const Tensor& t) { return std::abs(t.strides[1]) < std::abs(t.strides[4]); };
  p.x_channels_fast = is_last(conv.x), p.y_channels_fast = is_last(conv.y);
  const int64_t term_bytes = p.columns * element;
  p.chunk =
      static_cast<int>(std::min<int64_t>(p.filled, kWeightRoom / term_bytes / p.of_fragment * p.of_fragment));

  const Cut cut = cut_of(p, conv.batch, element);
  if (cut.d == 0) return plan;
  p.d.places = static_cast<int>(cut.d), p.h.places = static_cast<int>(cut.h),
  p.w.places = static_cast<int>(cut.w);
  for (BoxAxis* a : {&p.d, &p.h, &p.w}) a->staged = static_cast<int>(staged(*a, a->places));
  p.places = p.d.places * p.h.places * p.w.places;
  const int64_t volume = int64_t{p.d.staged} * p.h.staged * p.w.staged;
  const int64_t sums = std::max<int64_t>(int64_t{p.columns} * kBoxPlacesPitch,
                                         int64_t{kBoxPlaces} * box_columns_pitch(p.columns)) *
                       4;
  p.box_bytes = ceil_of(std::max(volume * p.channels * element, sums), 16) * 16;
  p.weight_bytes = static_cast<int>(p.chunk * term_bytes);
  plan.shared = p.box_bytes + p.weight_bytes + int64_t{p.filled} * 8;
  plan.fits = plan.shared <= kMostShared;

  const int64_t tiles_d = ceil_div(p.d.y, p.d.places), tiles_h = ceil_div(p.h.y, p.h.places),
                tiles_w = ceil_div(p.w.y, p.w.places);
  const int64_t boxes = conv.batch * tiles_d * tiles_h * tiles_w;
  p.boxes = static_cast<uint32_t>(boxes);
  const int64_t beside = conv.groups * p.column_tiles;
  p.rounds =
      p.chunk < p.filled
          ? 1
          : static_cast<int>(std::clamp<int64_t>(boxes * beside / (kProcessors * kResident), 1, kMostRounds));
  p.rounds = ceil_of(boxes, ceil_div(boxes, p.rounds));
  plan.blocks = ceil_div(boxes, p.rounds);
  const double weights = static_cast<double>(p.filled) * p.columns * kElement;
  const double turns = std::max(1.0, static_cast<double>(plan.blocks * beside) / kProcessors);
  plan.cycles = turns * (p.rounds * cut.cycles / static_cast<double>(boxes) + weights) + 3 * kBox;

  p.by_pw = FastDiv(p.w.places);
  p.by_ph = FastDiv(p.h.places);
  p.by_sw = FastDiv(p.w.staged);
  p.by_sh = FastDiv(p.h.staged);
  p.by_channels = FastDiv(p.channels);
  p.by_volume = FastDiv(volume);
  p.by_kw = FastDiv(p.w.kernel);
  p.by_kh = FastDiv(p.h.kernel);
  p.by_chunk = FastDiv(p.chunk);
  p.by_tiles_w = FastDiv(tiles_w);
  p.by_tiles_h = FastDiv(tiles_h);
  p.by_tiles_d = FastDiv(tiles_d);
  return plan;
}

}  // namespace retrograd::kernels::cuda
