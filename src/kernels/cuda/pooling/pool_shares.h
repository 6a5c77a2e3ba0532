// SPDX-License-Identifier: Apache-2.0
// What a thread adds of a window that several threads share; the test adds all of them on the CPU.
#pragma once

#include <type_traits>

#include "kernels/cuda/pooling/pool_words.h"
#include "kernels/cuda/pooling_forward/pool_forward.h"

namespace retrograd::kernels::cuda {

inline constexpr int kSharesAtOnce = 4;  // loads of a thread that are under way together

// 16 bytes; kPacked: at a multiple of 16 bytes.
template <class T, bool kPacked>
RG_DEVICE PoolWords words_at(const T* address) {
  if constexpr (kPacked) {
    return *reinterpret_cast<const PoolWords*>(address);
  } else {
    constexpr int kWide = 16 / sizeof(T);
    T values[kWide];
    RG_UNROLL
    for (int i = 0; i < kWide; ++i) values[i] = address[i];
    PoolWords words;
    memcpy(&words, values, sizeof(words));
    return words;
  }
}

template <class Codec>
RG_DEVICE float sum_of(const PoolWords& words) {
  using T = typename Codec::Type;
  T values[16 / sizeof(T)];
  memcpy(values, &words, sizeof(values));
  float sum = Codec::load(values[0]);
  RG_UNROLL
  for (int i = 1; i < static_cast<int>(16 / sizeof(T)); ++i) sum += Codec::load(values[i]);
  return sum;
}

// Elements begin to end of a tensor, shared by lanes, 8 at least: what lies before and behind the multiples
// of 16 bytes one a lane, the vectors between them in turn.
template <class Codec, bool kPacked>
RG_DEVICE float add_run(const typename Codec::Type* tensor, uint32_t begin, uint32_t end, uint32_t lane,
                        uint32_t lanes) {
  constexpr uint32_t kWide = 16 / sizeof(typename Codec::Type);
  const uint32_t next = (begin + kWide - 1) / kWide * kWide, body = next < end ? next : end,
                 last = end / kWide * kWide, tail = last > body ? last : body, step = lanes * kWide;
  float sum = 0;
  if (begin + lane < body) sum += Codec::load(tensor[begin + lane]);
  uint32_t i = body + lane * kWide;
  for (; i + (kSharesAtOnce - 1) * step < tail; i += kSharesAtOnce * step) {
    PoolWords words[kSharesAtOnce];
    RG_UNROLL
    for (uint32_t j = 0; j < kSharesAtOnce; ++j)
      words[j] = words_at<typename Codec::Type, kPacked>(tensor + i + j * step);
    RG_UNROLL
    for (uint32_t j = 0; j < kSharesAtOnce; ++j) sum += sum_of<Codec>(words[j]);
  }
  for (; i < tail; i += step) sum += sum_of<Codec>(words_at<typename Codec::Type, kPacked>(tensor + i));
  if (tail + lane < end) sum += Codec::load(tensor[tail + lane]);
  return sum;
}

// The places of a window by number: rows of `wide`, planes of `high` rows.
struct WindowPlaces {
  uint32_t count, wide, high;
  uint32_t first, row, plane;  // the first place in the tensor, and how far apart rows and planes are
  bool dense;                  // they follow each other in the tensor
  RG_DEVICE uint32_t operator()(uint32_t number) const {
    const uint32_t line = number / wide, z = line / high;
    return first + z * plane + (line - z * high) * row + (number - line * wide);
  }
};
RG_DEVICE inline WindowPlaces places_in(const Windows& windows, int od, int oh, int ow) {
  const WindowAxis &ad = windows.axes[0], &ah = windows.axes[1], &aw = windows.axes[2];
  const Places depths = places_of(ad, od), rows = places_of(ah, oh), columns = places_of(aw, ow);
  const int deep = depths.end - depths.begin, high = rows.end - rows.begin,
            wide = columns.end - columns.begin;
  if (deep <= 0 || high <= 0 || wide <= 0) return {0, 1, 1, 0, 0, 0, true};
  return {static_cast<uint32_t>(deep * high * wide),
          static_cast<uint32_t>(wide),
          static_cast<uint32_t>(high),
          static_cast<uint32_t>((depths.begin * ah.x + rows.begin) * aw.x + columns.begin),
          static_cast<uint32_t>(aw.x),
          static_cast<uint32_t>(ah.x * aw.x),
          (wide == aw.x || high * deep == 1) && (high == ah.x || deep == 1)};
}

// kV channels of the places numbered first, first + step, … below end; at(number): which place it is.
template <class Codec, int kV, class At>
RG_DEVICE void add_places(const typename Codec::Type* source, int64_t channels, uint32_t first, uint32_t step,
                          uint32_t end, const At& at, float (&sums)[kV]) {
  using T = typename Codec::Type;
  using Words = std::conditional_t<kV == 1, T, PoolWords>;
  static_assert(sizeof(Words) == kV * sizeof(T));
  const auto load = [&](uint32_t i) { return *reinterpret_cast<const Words*>(source + at(i) * channels); };
  const auto add = [&](const Words& words) {
    T values[kV];
    memcpy(values, &words, sizeof(values));
    RG_UNROLL
    for (int v = 0; v < kV; ++v) sums[v] += Codec::load(values[v]);
  };
  uint32_t i = first;
  for (; i + (kSharesAtOnce - 1) * step < end; i += kSharesAtOnce * step) {
    Words words[kSharesAtOnce];
    RG_UNROLL
    for (uint32_t j = 0; j < kSharesAtOnce; ++j) words[j] = load(i + j * step);
    RG_UNROLL
    for (uint32_t j = 0; j < kSharesAtOnce; ++j) add(words[j]);
  }
  for (; i < end; i += step) add(load(i));
}
template <class Codec, int kV>
RG_DEVICE void add_window(const typename Codec::Type* source, int64_t channels, uint32_t first, uint32_t step,
                          uint32_t end, const WindowPlaces& places, float (&sums)[kV]) {
  const uint32_t begin = places.first;
  const auto next = [begin](uint32_t i) { return begin + i; };
  if (places.dense) return add_places<Codec, kV>(source, channels, first, step, end, next, sums);
  const auto at = [&places](uint32_t i) { return places(i); };
  add_places<Codec, kV>(source, channels, first, step, end, at, sums);
}

}  // namespace retrograd::kernels::cuda
