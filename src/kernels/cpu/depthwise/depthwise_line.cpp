// SPDX-License-Identifier: Apache-2.0
// Tiles of one row, once for every instruction set.
#include "kernels/cpu/depthwise/depthwise_line.h"

#include <algorithm>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/depthwise/depthwise_line.cpp"
#include "kernels/cpu/all_targets.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/unroll-inl.h"
#include "kernels/cpu/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = RG_VECTORS;
using D = hn::CappedTag<float, kMostLineLanes>;
using V = hn::Vec<D>;
static_assert(has_lanes(hn::MaxLanes(D()), line_lanes_of(kShape)));

int64_t line_lanes() { return static_cast<int64_t>(hn::Lanes(D())); }

// Vectors of sums beside which the others fit.
constexpr int kMostVectors = kFewRegisters ? 12 : 16;

// kVectors vectors of results, of the last one the first `last` lanes.
template <int kVectors>
HWY_NOINLINE void line_tile(const DepthwiseLine& r, int64_t first, int64_t last) {
  const D d;
  constexpr int n = static_cast<int>(hn::MaxLanes(D()));
  V sums[kVectors];
  each(Indices<kVectors>(), [&](auto i) RG_INLINED { sums[i] = hn::Set(d, r.start); });
  const float* HWY_RESTRICT source = r.source + first;
  for (int64_t t = 0; t < r.taps; ++t) {
    const V weight = hn::Set(d, r.weights[t]);
    const float* HWY_RESTRICT at = source + r.offsets[t];
    each(Indices<kVectors>(),
         [&](auto i) RG_INLINED { sums[i] = hn::MulAdd(weight, hn::LoadU(d, at + i * n), sums[i]); });
  }
  float* HWY_RESTRICT out = r.out + first;
  each(Indices<kVectors - 1>(), [&](auto i) RG_INLINED { hn::StoreU(sums[i], d, out + i * n); });
  out += (kVectors - 1) * n;
  if (last == n) return hn::StoreU(sums[kVectors - 1], d, out);
  HWY_ALIGN float rest[n];
  hn::Store(sums[kVectors - 1], d, rest);
  std::copy_n(rest, last, out);
}

template <size_t... kI>
void line_tiles(std::index_sequence<kI...>, const DepthwiseLine& r) {
  using Tile = void (*)(const DepthwiseLine&, int64_t, int64_t);
  static constexpr Tile kTiles[] = {line_tile<kI + 1>...};
  const int64_t n = line_lanes(), vectors = (r.count + n - 1) / n;
  // Even tiles: a last one of one vector would be a single chain of additions.
  int64_t left = (vectors + kMostVectors - 1) / kMostVectors;
  for (int64_t i = 0; i < vectors; --left) {
    const int64_t width = (vectors - i + left - 1) / left;
    kTiles[width - 1](r, i * n, std::min((i + width) * n, r.count) - (i + width - 1) * n);
    i += width;
  }
}
void depthwise_line(const DepthwiseLine& r) { line_tiles(std::make_index_sequence<kMostVectors>(), r); }

// kTaps taps of kSets vectors side by side: few taps alone are too few chains of additions.
template <int kTaps, int kSets>
HWY_NOINLINE void line_dots(const DepthwiseLineDots& r, int64_t first_tap) {
  const D d;
  constexpr int n = static_cast<int>(hn::MaxLanes(D()));
  V sums[kSets][kTaps];
  const float* x[kTaps];
  each(Indices<kTaps>(), [&](auto t) RG_INLINED {
    x[t] = r.x + r.offsets[first_tap + t];
    sums[0][t] = hn::Load(d, r.sums + (first_tap + t) * n);
    if constexpr (kSets == 2) sums[1][t] = hn::Zero(d);
  });
  const auto add = [&](auto set, V y, int64_t k) RG_INLINED {
    each(Indices<kTaps>(),
         [&](auto t) RG_INLINED { sums[set][t] = hn::MulAdd(y, hn::LoadU(d, x[t] + k), sums[set][t]); });
  };
  int64_t k = 0;
  for (; k + kSets * n <= r.count; k += kSets * n)
    each(Indices<kSets>(),
         [&](auto set) RG_INLINED { add(set, hn::LoadU(d, r.y + k + set * n), k + set * n); });
  for (; k < r.count; k += n) {
    HWY_ALIGN float rest[n] = {};
    std::copy_n(r.y + k, std::min<int64_t>(r.count - k, n), rest);
    add(std::integral_constant<int, 0>(), hn::Load(d, rest), k);
  }
  each(Indices<kTaps>(), [&](auto t) RG_INLINED {
    if constexpr (kSets == 2) sums[0][t] = hn::Add(sums[0][t], sums[1][t]);
    hn::Store(sums[0][t], d, r.sums + (first_tap + t) * n);
  });
}

template <size_t... kI>
void dots_tiles(std::index_sequence<kI...>, const DepthwiseLineDots& r) {
  using Tile = void (*)(const DepthwiseLineDots&, int64_t);
  static constexpr Tile kTiles[] = {line_dots < kI + 1, kI + 1 <= 6 ? 2 : 1 > ...};
  int64_t left = (r.taps + kMostVectors - 1) / kMostVectors;
  for (int64_t t = 0; t < r.taps; --left) {
    const int64_t width = (r.taps - t + left - 1) / left;
    kTiles[width - 1](r, t);
    t += width;
  }
}
void depthwise_line_dots(const DepthwiseLineDots& r) {
  dots_tiles(std::make_index_sequence<kMostVectors>(), r);
}

void add_line_lanes(const float* sums, int64_t taps, float* out) {
  const D d;
  for (int64_t t = 0; t < taps; ++t)
    out[t] = hn::GetLane(hn::SumOfLanes(d, hn::Load(d, sums + t * line_lanes())));
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {

RG_EXPORT(RG_CHOSEN, depthwise_line)
RG_EXPORT(RG_CHOSEN, depthwise_line_dots)
RG_EXPORT(RG_CHOSEN, add_line_lanes)

void depthwise_line(const DepthwiseLine& line) { chosen_depthwise_line()(line); }
void depthwise_line_dots(const DepthwiseLineDots& line) { chosen_depthwise_line_dots()(line); }
void add_line_lanes(const float* sums, int64_t taps, float* out) { chosen_add_line_lanes()(sums, taps, out); }

}  // namespace retrograd::kernels::cpu
#endif
