// SPDX-License-Identifier: Apache-2.0
// What a thread of pool_vectors does; the test runs it for all threads on the CPU.
#pragma once

#include <type_traits>

#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/pooling/pool_plan.h"
#include "kernels/cuda/pooling/pool_words.h"

namespace retrograd::kernels::cuda {

struct PoolVectors {
  Windows windows;
  FastDiv vectors, columns, bands, depths, strides[3];
  uint32_t threads;
  int reach_h, reach_w;  // windows that hold a place, at most
  int split_h;           // places of a stride that reach_h windows hold; one less holds the others
  int band;
  bool deep;
};

inline PoolVectors vectors_of(const Pool& pool) {
  const auto& [d, h, w] = pool.axes;
  const VectorsCut cut = vectors_cut(pool);
  const int64_t vectors = pool.channels * static_cast<int64_t>(size_of(pool.x.dtype)) / 16,
                bands = (h.x + cut.band - 1) / cut.band;
  PoolVectors p{};
  p.windows = windows_of(pool);
  p.vectors = FastDiv(vectors);
  p.columns = FastDiv(w.x);
  p.bands = FastDiv(bands);
  p.depths = FastDiv(d.x);
  for (int i = 0; i < 3; ++i) p.strides[i] = FastDiv(pool.axes[i].stride);
  p.threads = static_cast<uint32_t>(pool.batch * d.x * bands * w.x * vectors);
  p.reach_h = cut.reach_h;
  p.reach_w = cut.reach_w;
  p.split_h = static_cast<int>(h.kernel - (cut.reach_h - 1) * h.stride);
  p.band = cut.band;
  p.deep = cut.deep;
  return p;
}

// Calls function(reach, exact, deep) with the constants of the kernel that is there.
template <class Function>
void with_vectors_kind(const PoolVectors& p, Function&& function) {
  const auto call = [&](auto reach, auto exact, auto deep) { function(reach, exact, deep); };
  using std::bool_constant;
  using std::integral_constant;
  const bool small = p.reach_h <= 4 && p.reach_w <= 4;
  if (p.deep)
    return small
               ? call(integral_constant<int, 4>{}, bool_constant<false>{}, bool_constant<true>{})
               : call(integral_constant<int, kVectorsReach>{}, bool_constant<false>{}, bool_constant<true>{});
  const auto exact = [&](auto reach) { call(reach, bool_constant<true>{}, bool_constant<false>{}); };
  if (p.reach_w <= p.reach_h) {
    if (p.reach_h == 1) return exact(integral_constant<int, 1>{});
    if (p.reach_h == 2) return exact(integral_constant<int, 2>{});
    if (p.reach_h == 3) return exact(integral_constant<int, 3>{});
    if (p.reach_h == 4) return exact(integral_constant<int, 4>{});
  }
  small ? call(integral_constant<int, 4>{}, bool_constant<false>{}, bool_constant<false>{})
        : call(integral_constant<int, kVectorsReach>{}, bool_constant<false>{}, bool_constant<false>{});
}

template <class Codec, int kReach>
struct PoolVectorsLine {
  using T = typename Codec::Type;
  static constexpr int kV = 16 / sizeof(T);
  PoolWords words[kReach];

  // Bit j of held: the j-th window from the first holds the column.
  RG_DEVICE void load(const T* from, int step, uint32_t held) {
    RG_UNROLL
    for (int j = 0; j < kReach; ++j) {
      words[j] = PoolWords{};
      if ((held >> j & 1u) != 0) words[j] = *reinterpret_cast<const PoolWords*>(from + j * step);
    }
  }
  // Windows that do not hold it were loaded as zeros.
  RG_DEVICE void add(const Windows& windows, float rows, int first, float (&sums)[kV]) const {
    RG_UNROLL
    for (int j = 0; j < kReach; ++j) {
      const float factor =
          windows.uniform ? 1.0f : 1.0f / (rows * static_cast<float>(count_of(windows.axes[2], first + j)));
      T values[kV];
      memcpy(values, &words[j], sizeof(values));
      RG_UNROLL
      for (int v = 0; v < kV; ++v) sums[v] = Codec::add_product(Codec::load(values[v]), factor, sums[v]);
    }
  }
};

RG_DEVICE inline bool is_place(int index, int size) {
  return static_cast<unsigned>(index) < static_cast<unsigned>(size);
}

template <class Codec>
RG_DEVICE void put_vector(const float* values, typename Codec::Type* to) {
  constexpr int kV = 16 / sizeof(typename Codec::Type);
  typename Codec::Type results[kV];
  RG_UNROLL
  for (int v = 0; v < kV; ++v) results[v] = Codec::store(values[v]);
  PoolWords words;
  memcpy(&words, results, sizeof(words));
  *reinterpret_cast<PoolWords*>(to) = words;
}

// kReach: p.reach_h where it is exact, else at least that; p.reach_w or more.
template <class Codec, int kReach, bool kExact, bool kDeep>
RG_DEVICE void walk_vectors(const PoolVectors& p, uint32_t thread, const typename Codec::Type* y,
                            typename Codec::Type* x) {
  using T = typename Codec::Type;
  constexpr int kV = 16 / sizeof(T);
  if (thread >= p.threads) return;
  uint32_t vector = thread;
  uint32_t column = p.vectors.split(vector);
  uint32_t band = p.columns.split(column);
  uint32_t depth = p.bands.split(band);
  const int64_t image = p.depths.split(depth);
  const WindowAxis &ad = p.windows.axes[0], &ah = p.windows.axes[1], &aw = p.windows.axes[2];
  const int step = static_cast<int>(p.vectors.divisor) * kV;  // of a place
  const int reach = kExact ? kReach : p.reach_h;

  uint32_t within_w = column + static_cast<uint32_t>(aw.pad);
  const int first = static_cast<int>(p.strides[2].split(within_w)) - (kReach - 1);
  uint32_t held = 0;
  RG_UNROLL
  for (int j = 0; j < kReach; ++j)
    if (j < p.reach_w && static_cast<int>(within_w) + j * aw.stride < aw.kernel &&
        is_place(first + kReach - 1 - j, aw.y))
      held |= 1u << (kReach - 1 - j);

  int first_depth = 0, end_depth = 1;
  if constexpr (kDeep) {
    const int shifted = static_cast<int>(depth) + ad.pad;
    first_depth = shifted < ad.kernel ? 0 : static_cast<int>(p.strides[0].quotient(shifted - ad.kernel)) + 1;
    end_depth = least(static_cast<int>(p.strides[0].quotient(shifted)) + 1, ad.y);
  }

  const int row = static_cast<int>(band) * p.band;
  uint32_t within = static_cast<uint32_t>(row + ah.pad);
  int window = static_cast<int>(p.strides[1].split(within));
  const int64_t pitch = static_cast<int64_t>(aw.y) * step, layer = pitch * ah.y;
  const T* line = y + (image * ad.y + (kDeep ? 0 : static_cast<int>(depth))) * layer + window * pitch +
                  static_cast<int64_t>(first) * step + vector * kV;
  const auto sum_line = [&](int number, const T* from, float(&sums)[kV]) {
    const uint32_t live = is_place(number, ah.y) ? held : 0;
    const float rows = p.windows.uniform ? 1.0f : static_cast<float>(count_of(ah, number));
    for (int od = first_depth; od < end_depth; ++od) {
      PoolVectorsLine<Codec, kReach> values;
      values.load(from + od * layer, step, live);
      values.add(p.windows,
                 rows * (kDeep && !p.windows.uniform ? static_cast<float>(count_of(ad, od)) : 1.0f), first,
                 sums);
    }
  };
  float sums[kReach][kV] = {};  // of the window that begins here or just before, of the one before that, …
  RG_UNROLL
  for (int j = 1; j < kReach; ++j)
    if (j < reach) sum_line(window - j, line - j * pitch, sums[j]);

  T* out = x +
           ((image * static_cast<int>(p.depths.divisor) + static_cast<int>(depth)) * ah.x + row) *
               (static_cast<int64_t>(aw.x) * step) +
           static_cast<int64_t>(column) * step + vector * kV;
  const int64_t out_pitch = static_cast<int64_t>(aw.x) * step;
  int left = least(p.band, ah.x - row);
  PoolVectorsLine<Codec, kReach> next;
  if constexpr (!kDeep) next.load(line, step, is_place(window, ah.y) ? held : 0);
  for (;;) {
    RG_UNROLL
    for (int v = 0; v < kV; ++v) sums[0][v] = 0;
    if constexpr (kDeep) {
      sum_line(window, line, sums[0]);
    } else {
      const PoolVectorsLine<Codec, kReach> now = next;
      const bool more = left > ah.stride - static_cast<int>(within);
      next.load(line + pitch, step, more && is_place(window + 1, ah.y) ? held : 0);
      now.add(p.windows, p.windows.uniform ? 1.0f : static_cast<float>(count_of(ah, window)), first, sums[0]);
    }
    float less[kV] = {}, all[kV] = {};
    RG_UNROLL
    for (int j = kReach - 1; j >= 0; --j) RG_UNROLL
    for (int v = 0; v < kV; ++v) {
      if (j < reach - 1) less[v] += sums[j][v];
      if (!kExact && j < reach) all[v] += sums[j][v];
    }
    RG_UNROLL
    for (int v = 0; v < kV; ++v) {
      if (kExact) all[v] = less[v] + sums[kReach - 1][v];
      all[v] = Codec::add_product(all[v], p.windows.scale, 0.0f);  // no negative zeros
      less[v] = Codec::add_product(less[v], p.windows.scale, 0.0f);
    }
    int rows = least(ah.stride - static_cast<int>(within), left);
    left -= rows;
    int held_by_all = most(least(p.split_h - static_cast<int>(within), rows), 0);
    rows -= held_by_all;
    for (; held_by_all > 0; --held_by_all, out += out_pitch) put_vector<Codec>(all, out);
    for (; rows > 0; --rows, out += out_pitch) put_vector<Codec>(less, out);
    if (left == 0) return;
    within = 0;
    ++window;
    line += pitch;
    RG_UNROLL
    for (int j = kReach - 1; j > 0; --j) RG_UNROLL
    for (int v = 0; v < kV; ++v) sums[j][v] = sums[j - 1][v];
  }
}

}  // namespace retrograd::kernels::cuda
