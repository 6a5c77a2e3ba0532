// SPDX-License-Identifier: Apache-2.0
// The results of a tile of products that are NaN, once more.
//
// FP32 as three TF32 products makes NaN of every product with a factor that is not finite, or is rounded to
// an infinity: a special one. So a result that is not NaN shows that no special factor is in its row (of
// pixels) and in its column (of weights). Where the column has none and the row has one, or the other way
// round, the result is this one term, whatever the others are: a search of the row, or the column, instead of
// all sums.
#pragma once

#include "kernels/cuda/repair.cuh"

namespace retrograd::kernels::cuda {

// How many factors are special; if it is one, which.
struct Special {
  int count = -1;  // not looked for yet
  float value = 0;
  int d = 0, h = 0, k = 0, channel = 0;
};

// Of one group.
struct Factors {
  const Conv& conv;
  bool forward;
  Source source, weights;
  int64_t group;
  int channels;  // of the sum
  int64_t source_stride, weight_stride;

  __device__ Factors(const Conv& p, bool is_forward, int64_t of_group)
      : conv(p),
        forward(is_forward),
        source(is_forward ? p.x : p.y, p.rounding),
        weights(p.w, p.rounding),
        group(of_group),
        channels(static_cast<int>(is_forward ? p.x_channels : p.y_channels)),
        source_stride(is_forward ? p.x.strides[1] : p.y.strides[1]),
        weight_stride(is_forward ? p.w.strides[1] : p.w.strides[0]) {}

  // Offsets may be negative: strides are.
  static constexpr int64_t kBeyond = INT64_MIN;
  // Of the group's first channel; kBeyond: the tap lies beyond the edge.
  __device__ int64_t source_offset(const Index5& at, int d, int h, int k) const {
    const auto index = [&](int a, int64_t result, int tap) {
      return forward ? position(conv.axes[a], result, tap) : output_reading(conv.axes[a], result, tap);
    };
    const int64_t sd = index(0, at.d, d), sh = index(1, at.h, h), sw = index(2, at.w, k);
    if (sd < 0 || sh < 0 || sw < 0) return kBeyond;
    return offset_of(forward ? conv.x : conv.y, {at.n, group * channels, sd, sh, sw});
  }
  __device__ int64_t weight_offset(int64_t channel, int d, int h, int k) const {
    return forward ? offset_of(conv.w, {channel, 0, d, h, k})
                   : offset_of(conv.w, {group * channels, channel - group * conv.x_channels, d, h, k});
  }
};

// Every lane of the warp gets it. of_row: of the place of `at`; else of the weights of channel at.c.
static __device__ __noinline__ Special find_special(const Factors& f, bool of_row, const Index5& at) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t stride = of_row ? f.source_stride : f.weight_stride;
  Special mine;
  mine.count = 0;
  for (int d = 0; d < static_cast<int>(f.conv.axes[0].kernel); ++d)
    for (int h = 0; h < static_cast<int>(f.conv.axes[1].kernel); ++h)
      for (int k = 0; k < static_cast<int>(f.conv.axes[2].kernel); ++k) {
        const int64_t from = of_row ? f.source_offset(at, d, h, k) : f.weight_offset(at.c, d, h, k);
        if (of_row && from == Factors::kBeyond) continue;
#pragma unroll 4
        for (int c = lane; c < f.channels; c += 32) {
          const float value = of_row ? f.source(from + c * stride) : f.weights(from + c * stride);
          if (fabsf(value) < 0x1.ffcp127f) continue;
          mine = {mine.count + 1, value, d, h, k, c};
        }
      }
  const int count = __reduce_add_sync(~0u, mine.count);
  const int owner = max(__ffs(static_cast<int>(__ballot_sync(~0u, mine.count > 0))) - 1, 0);
  const auto of_owner = [&](auto value) { return __shfl_sync(~0u, value, owner); };
  return {count,
          of_owner(mine.value),
          of_owner(mine.d),
          of_owner(mine.h),
          of_owner(mine.k),
          of_owner(mine.channel)};
}

// What a warp knows of 32 rows, one a lane.
struct KnownRows {
  const Factors& factors;
  bool clean;  // this lane's row has a result that is not NaN
  Special special;

  // Results of one column: open, that this lane's is NaN and not settled; settled: that it is not. Stores
  // what one special term decides, and returns what is still open. All lanes must call it.
  template <class Store>
  __device__ bool settle(bool open, bool settled, const Index5& at, Store&& store) {
    const Factors& f = factors;
    const float bias = bias_of(f.conv, at.c);
    if (__any_sync(~0u, settled)) {  // no special weights
      for (unsigned rest = __ballot_sync(~0u, open && special.count < 0); rest != 0; rest &= rest - 1) {
        const int owner = __ffs(static_cast<int>(rest)) - 1;
        const auto of_owner = [&](int64_t value) {
          return static_cast<int64_t>(__shfl_sync(~0u, static_cast<long long>(value), owner));
        };
        const Special found =
            find_special(f, true, {of_owner(at.n), at.c, of_owner(at.d), of_owner(at.h), of_owner(at.w)});
        if (static_cast<int>(threadIdx.x) % 32 == owner) special = found;
      }
      if (!open || special.count != 1 || isfinite(special.value)) return open;
      const int64_t from = f.weight_offset(at.c, special.d, special.h, special.k);
      store(special.value * f.weights(from + special.channel * f.weight_stride) + bias);
      return false;
    }
    if (!__any_sync(~0u, open && clean)) return open;
    const Special found = find_special(f, false, at);
    if (!open || !clean || found.count != 1 || isfinite(found.value)) return open;
    const int64_t from = f.source_offset(at, found.d, found.h, found.k);
    if (from == Factors::kBeyond) return open;
    store(f.source(from + found.channel * f.source_stride) * found.value + bias);
    return false;
  }
};

// All lanes of `warps` warps must call it. The tile has rows of places and columns of channels; a
// row(number), which may lie behind the last, says of a column where it is, and whether a result is there and
// NaN, or there and not, and stores one: index, is_nan, is_settled, store. one_place: a row is one place in
// all columns. Warps share rows as well as columns, since both may be NaN as a whole.
template <class Tile>
__device__ void repair_tile(const Conv& conv, Result result, int64_t group, bool split, bool one_place,
                            int warp, int warps, const Tile& tile) {
  const Factors factors(conv, result == Result::kForward, group);
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll 1
  for (int i = 0; i * 32 < tile.rows; ++i) {
    const auto row = tile.row(i * 32 + lane);
    const int first = (warp + i) % warps;
    const Index5 origin = row.index(0);
    const bool at_edge = one_place && reaches_edge(conv, result, origin);
    if (one_place && !split && !__any_sync(~0u, at_edge)) continue;
    KnownRows rows{factors, false, {}};
    FirstTerm start{};  // of a row that is one place
    bool has_start = false;
    for (int column = first; split && one_place && column < tile.columns; column += warps)
      rows.clean = rows.clean || row.is_settled(column);
#pragma unroll 1
    for (int column = first; column < tile.columns; column += warps) {
      const bool suspect =
          !(has_start && start.is_all_nan()) && (split || at_edge || !one_place) && row.is_nan(column);
      if (!__any_sync(~0u, suspect)) continue;
      const Index5 at =
          one_place ? Index5{origin.n, origin.c + column, origin.d, origin.h, origin.w} : row.index(column);
      const auto store = [&](float sum) { row.store(column, sum); };
      if (!one_place) {
        repair_in_warp(conv, result, suspect, at, store);
        continue;
      }
      if (suspect && !has_start) {
        start = first_term(conv, result, origin);
        has_start = true;
      }
      bool open = suspect && !start.is_nan(conv, at.c);
      if (split) open = rows.settle(open, row.is_settled(column), at, store);
      repair_open(conv, result, open, at, store);
    }
  }
}

}  // namespace retrograd::kernels::cuda
