// SPDX-License-Identifier: Apache-2.0
// What a thread does for a segment (segments_plan.h), in plain C++: kernels run it on the GPU, tests on the
// CPU.
#pragma once

#include <cmath>

#include "kernels/cuda/depthwise_windows/segments_plan.h"
#include "kernels/cuda/one_of.h"

namespace retrograd::kernels::cuda {

// Elements from the last boundary of `wide` elements to element `at` of a tensor that begins `phase` elements
// behind one. wide: a power of two.
RG_DEVICE inline int behind_boundary(int phase, int64_t at, int wide) {
  return static_cast<int>(static_cast<uint32_t>(at + phase) & static_cast<uint32_t>(wide - 1));
}

// Vectors that `count` elements touch, at most, wherever they begin.
RG_HOST_DEVICE constexpr int most_vectors(int count, int wide) { return (count + 2 * (wide - 1)) / wide; }

// A vector of `wide` elements on a boundary, one of those that the staged span of a line touches.
struct StagedVector {
  int64_t from;      // element of the tensor
  int place, index;  // in the line and in the span; both may lie outside
  bool any, whole;   // whether elements of the line are there; whether the tensor has the vector
};
RG_DEVICE inline StagedVector staged_vector(int wide, int phase, int number, int64_t line, int length,
                                            int lowest, int64_t total) {
  const int64_t at = line * length + lowest;
  StagedVector v;
  v.index = number * wide - behind_boundary(phase, at, wide);
  v.from = at + v.index;
  v.place = lowest + v.index;
  v.any = v.place + wide > 0 && v.place < length;
  v.whole = v.from >= 0 && v.from + wide <= total;
  return v;
}

// store(index, i, inside): element i of the vector is staged there, a zero unless inside.
template <int kWide, class Store>
RG_DEVICE inline void stage(const StagedVector& v, int span, int length, Store&& store) {
  if (v.index >= 0 && v.index + kWide <= span && v.place >= 0 && v.place + kWide <= length) {
    RG_UNROLL
    for (int i = 0; i < kWide; ++i) store(v.index + i, i, true);
    return;
  }
  RG_UNROLL
  for (int i = 0; i < kWide; ++i)
    if (static_cast<uint32_t>(v.index + i) < static_cast<uint32_t>(span))
      store(v.index + i, i, static_cast<uint32_t>(v.place + i) < static_cast<uint32_t>(length));
}

// The first of an item's results, within its piece.
RG_DEVICE inline int first_result(const Segments& p, uint32_t item) {
  const uint32_t tile = p.by_spacing.split(item);
  return static_cast<int>(item) + static_cast<int>(tile) * kOfItem * p.spacing;
}

// Values that an item's eight results read with one tap after another, each loaded once. Staged values from
// index `at` on, `step` apart; a multiple of eight, and 1, with kUnit.
template <ItemKind kKind>
struct Window {
  const float* staged;
  int at, step;
  float values[kOfItem];

  // Of results 0 to 6 with tap 0.
  RG_DEVICE void open() {
    if constexpr (kKind == ItemKind::kUnit) staged += padded(at);
    RG_UNROLL
    for (int v = 0; v < kOfItem - 1; ++v)
      values[v] = kKind == ItemKind::kUnit ? staged[padded(v)] : staged[padded(at + v * step)];
    at += (kOfItem - 1) * step;
  }
  // What result 7 reads with tap t of the eight that follow; result v has values[(t + v) % 8] then.
  RG_DEVICE void next(int t) {
    values[(t + kOfItem - 1) % kOfItem] =
        kKind == ItemKind::kUnit ? staged[padded(t + kOfItem - 1)] : staged[padded(at)];
    at += step;
  }
  RG_DEVICE void turn() {
    if constexpr (kKind == ItemKind::kUnit) staged += padded(kOfItem);
  }
};

// Which tap's weight lies at `index` of a line's in shared memory: in the order in which a result takes them,
// unless results have different ones.
RG_DEVICE inline int tap_at(const DepthwiseAxis& a, int index) {
  return a.matched ? index : a.first + index * a.toward;
}

// Eight taps of which `count` are there, all with kAll; weights at multiples of 16 bytes with kUnit, `toward`
// apart with kSlide.
template <ItemKind kKind, bool kAll>
RG_DEVICE inline void gather_taps(Window<kKind>& window, int count, const float* weights, int toward,
                                  float (&sums)[kOfItem]) {
  struct alignas(16) Four {
    float values[4];
  };
  Four of_taps[kOfItem / 4];
  if constexpr (kAll && kKind == ItemKind::kUnit) {
    RG_UNROLL
    for (int i = 0; i < kOfItem / 4; ++i) of_taps[i] = reinterpret_cast<const Four*>(weights)[i];
  }
  RG_UNROLL
  for (int t = 0; t < kOfItem; ++t) {
    if (!kAll && t >= count) break;
    window.next(t);
    float w;
    if constexpr (kKind != ItemKind::kUnit)
      w = weights[t * toward];
    else if constexpr (kAll)
      w = of_taps[t / 4].values[t % 4];
    else
      w = weights[t];
    RG_UNROLL
    for (int v = 0; v < kOfItem; ++v) sums[v] = std::fmaf(window.values[(t + v) % kOfItem], w, sums[v]);
  }
  window.turn();
}

// sums[v] of the results `spacing` apart, as many as begin before `limit`, counted from the first. at: index
// of what the first reads with tap 0 of its matching ones. weights: of the line.
template <ItemKind kKind>
RG_DEVICE inline void gather_item(const Segments& p, const Taps& taps, int at, int limit, const float* staged,
                                  const float* weights, float (&sums)[kOfItem]) {
  if (taps.count == 0) return;
  const int step = p.axis.step, toward = p.axis.matched ? taps.apart : 1;
  if (p.axis.matched) weights += taps.first;
  if constexpr (kKind == ItemKind::kApart) {
    RG_UNROLL_BY(4)
    for (int j = 0; j < taps.count; ++j, at += step, weights += toward) {
      const float w = *weights;
      RG_UNROLL
      for (int v = 0; v < kOfItem; ++v)
        if (v * p.spacing < limit) sums[v] = std::fmaf(staged[padded(at + v * p.shift)], w, sums[v]);
    }
  } else {
    Window<kKind> window{staged, at, step, {}};
    window.open();
    int left = taps.count;
    for (; left >= kOfItem; left -= kOfItem, weights += kOfItem * toward)
      gather_taps<kKind, true>(window, kOfItem, weights, toward, sums);
    if (left > 0) gather_taps<kKind, false>(window, left, weights, toward, sums);
  }
}

// Adds the products of an item's y, staged from `of_y` on, to sums of `count` taps from `tap` on. at: index
// of the x where the first meets tap 0. A multiple of eight is `tap`, and with kUnit so are at and of_y.
template <ItemKind kKind, int kTaps>
RG_DEVICE inline void weigh_item(const Segments& p, int tap, int count, int at, int of_y, int limit,
                                 const float* x, const float* y, float (&sums)[kTaps]) {
  const int step = p.axis.step;
  at += tap * step;
  float g[kOfItem];
  RG_UNROLL
  for (int v = 0; v < kOfItem; ++v) {
    if constexpr (kKind == ItemKind::kUnit)
      g[v] = y[padded(of_y) + padded(v)];  // zeros beyond the line
    else
      g[v] = v * p.spacing < limit ? y[padded(of_y + v * p.spacing)] : 0.0f;
  }
  if constexpr (kKind == ItemKind::kApart) {
    RG_UNROLL
    for (int t = 0; t < kTaps; ++t, at += step) {
      if (t >= count) break;
      RG_UNROLL
      for (int v = 0; v < kOfItem; ++v)
        if (v * p.spacing < limit) sums[t] = std::fmaf(x[padded(at + v * p.shift)], g[v], sums[t]);
    }
  } else {
    static_assert(kTaps <= kOfItem);
    Window<kKind> window{x, at, step, {}};
    window.open();
    RG_UNROLL
    for (int t = 0; t < kTaps; ++t) {
      if (t >= count) break;
      window.next(t);
      RG_UNROLL
      for (int v = 0; v < kOfItem; ++v) sums[t] = std::fmaf(window.values[(t + v) % kOfItem], g[v], sums[t]);
    }
  }
}

// Calls function with the kind as a constant.
template <class Function>
void with_kind(ItemKind kind, Function&& function) {
  with_one_of<ItemKind::kUnit, ItemKind::kSlide, ItemKind::kApart>(kind, function);
}

}  // namespace retrograd::kernels::cuda
