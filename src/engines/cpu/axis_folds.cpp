// SPDX-License-Identifier: Apache-2.0
// The residue arithmetic of axis_folds.h.
#include "engines/cpu/axis_folds.h"

#include <algorithm>

#include "base/checked.h"

namespace retrograd::engines::cpu {
namespace {

using problem::Window;

int64_t floor_mod(int64_t a, int64_t b) { return a - floor_div(a, b) * b; }

// x + pad_lo = stride·q + r. Output o reads x through tap t when stride·(q − o) = t·dilation − r.
struct TapPlace {
  int64_t tap = 0, residue = 0, quotient = 0;  // quotient: o − q
};

using TapPlaces = ShortList<TapPlace, 7>;
TapPlaces live_taps_of(const Window& w) {
  TapPlaces places;
  for (int64_t tap = 0; tap < w.kernel; ++tap) {
    if (live_outputs(w, tap).size() == 0) continue;
    const int64_t reach = tap * w.dilation;
    places.push_back({tap, reach % w.stride, -(reach / w.stride)});
  }
  return places;
}

// The fold of the residues that the places `begin` to `end` of x have, with the taps among `places` that
// reach them.
AxisFold fold(const Window& w, const TapPlaces& places, int64_t begin, int64_t end) {
  AxisFold fold;
  const bool alone = end - begin == 1;
  const int64_t lone_residue = floor_mod(begin + w.pad_lo, w.stride);
  const int64_t first_q = floor_div((alone ? begin : 0) + w.pad_lo, w.stride);
  const int64_t last = alone ? begin + (w.x - 1 - begin) / w.stride * w.stride : w.x - 1;
  fold.count = floor_div(last + w.pad_lo, w.stride) - first_q + 1;
  fold.step = w.stride;
  fold.source_size = w.y;
  for (const TapPlace& place : places)
    if (!alone || place.residue == lone_residue) fold.offsets.push_back(first_q + place.quotient);
  std::sort(fold.offsets.begin(), fold.offsets.end());
  fold.offsets.cut(std::unique(fold.offsets.begin(), fold.offsets.end()));
  for (size_t i = fold.offsets.size() * static_cast<size_t>(end - begin); i > 0; --i) fold.taps.push_back(0);
  // In the order of their places, so that the residues of a whole stride fill a row one after the other.
  ShortList<int64_t, 4> residues;
  for (int64_t place = begin; place < end; ++place) residues.push_back(floor_mod(place + w.pad_lo, w.stride));
  std::sort(residues.begin(), residues.end());
  for (const int64_t residue : residues) {
    const int64_t first = w.stride * first_q + residue - w.pad_lo;
    const int64_t skipped = first < 0 ? ceil_div(-first, w.stride) : 0;
    fold.residues.push_back({first, {skipped, (w.x - 1 - first) / w.stride + 1}});
  }
  for (const TapPlace& tap : places) {
    const auto residue = std::lower_bound(residues.begin(), residues.end(), tap.residue);
    if (residue == residues.end() || *residue != tap.residue) continue;
    const auto at = std::lower_bound(fold.offsets.begin(), fold.offsets.end(), first_q + tap.quotient);
    fold.taps[static_cast<size_t>(residue - residues.begin()) * fold.offsets.size() +
              static_cast<size_t>(at - fold.offsets.begin())] = tap.tap;
  }
  return fold;
}

}  // namespace

bool AxisFold::leaves_source() const {
  return lowest_offset() < 0 || highest_offset() + (count - 1) * source_step >= source_size;
}

AxisFold in_pairs(const AxisFold& fold) {
  AxisFold pairs;
  pairs.count = ceil_div(fold.count, 2);
  pairs.step = pairs.source_step = 2;
  pairs.source_size = fold.source_size;
  for (const int64_t offset : fold.offsets) {
    if (pairs.offsets.empty() || pairs.offsets.back() < offset) pairs.offsets.push_back(offset);
    pairs.offsets.push_back(offset + 1);
  }
  for (int64_t second = 0; second < 2; ++second) {
    pairs.residues.push_back({fold.residues.front().first + second, {0, (fold.count + 1 - second) / 2}});
    for (const int64_t offset : pairs.offsets) {
      const auto at = std::lower_bound(fold.offsets.begin(), fold.offsets.end(), offset - second);
      const bool has_tap = at != fold.offsets.end() && *at == offset - second;
      pairs.taps.push_back(has_tap ? fold.taps[static_cast<size_t>(at - fold.offsets.begin())] : kNoTap);
    }
  }
  return pairs;
}

std::vector<AxisFold> forward_folds(const Window& w) {
  AxisFold fold;
  fold.count = w.y;
  fold.source_size = w.x;
  fold.source_step = w.stride;
  fold.residues.push_back({0, {0, w.y}});
  for (int64_t tap = 0; tap < w.kernel; ++tap) {
    // A tap that no output reads through only widens the strip.
    if (live_outputs(w, tap).size() == 0) continue;
    fold.offsets.push_back(tap * w.dilation - w.pad_lo);
    fold.taps.push_back(tap);
  }
  std::vector<AxisFold> folds;
  folds.push_back(std::move(fold));
  return folds;
}

std::vector<AxisFold> grad_input_folds(const Window& w) {
  const TapPlaces places = live_taps_of(w);
  const int64_t residues = std::min(w.stride, w.x);
  std::vector<AxisFold> folds;
  AxisFold together = fold(w, places, 0, residues);
  // Every pair (residue, offset) has a tap: nothing is spent on zeros.
  if (residues * static_cast<int64_t>(together.offsets.size()) == static_cast<int64_t>(places.size())) {
    folds.push_back(std::move(together));
    return folds;
  }
  for (int64_t place = 0; place < residues; ++place) folds.push_back(fold(w, places, place, place + 1));
  return folds;
}

}  // namespace retrograd::engines::cpu
