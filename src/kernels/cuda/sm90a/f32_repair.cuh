// SPDX-License-Identifier: Apache-2.0
// FP32 as three TF32 products makes NaN of every product with a factor that is not finite, or is rounded to
// an infinity: a special one. So a result that is not NaN shows that no special factor is in its row (of
// places) and in its column (of weights). Where the column has none and the row has one, or the other way
// round, the result is this one term, whatever the others are: a search of the row, or the column, instead of
// all sums.
#pragma once

#include "kernels/cuda/dense/gather_tiles.cuh"
#include "kernels/cuda/repair.cuh"

namespace retrograd::kernels::cuda::f32 {

// How many factors are special; if it is one, which.
struct Special {
  int count = -1;  // not looked for yet
  float value = 0;
  int d = 0, h = 0, k = 0, channel = 0;
};

// A product without groups.
struct Factors {
  const Conv& conv;
  bool forward;
  Source source, weights;
  int channels;  // of the sum
  int64_t source_stride, weight_stride;

  __device__ Factors(const Conv& p, bool is_forward)
      : conv(p),
        forward(is_forward),
        source(is_forward ? p.x : p.y, p.rounding),
        weights(p.w, p.rounding),
        channels(static_cast<int>(is_forward ? p.x_channels : p.y_channels)),
        source_stride(is_forward ? p.x.strides[1] : p.y.strides[1]),
        weight_stride(is_forward ? p.w.strides[1] : p.w.strides[0]) {}

  // Of channel 0; −1: the tap lies beyond the edge.
  __device__ int64_t source_offset(const Index5& at, int d, int h, int k) const {
    const auto index = [&](int a, int64_t result, int tap) {
      return forward ? position(conv.axes[a], result, tap) : output_reading(conv.axes[a], result, tap);
    };
    const int64_t sd = index(0, at.d, d), sh = index(1, at.h, h), sw = index(2, at.w, k);
    if (sd < 0 || sh < 0 || sw < 0) return -1;
    return offset_of(forward ? conv.x : conv.y, {at.n, 0, sd, sh, sw});
  }
  __device__ int64_t weight_offset(int64_t column, int d, int h, int k) const {
    return forward ? offset_of(conv.w, {column, 0, d, h, k}) : offset_of(conv.w, {0, column, d, h, k});
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
        if (of_row && from < 0) continue;
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
    if (from < 0) return open;
    store(f.source(from + found.channel * f.source_stride) * found.value + bias);
    return false;
  }
};

// Of the results that the warpgroup has written those that are NaN: a split of FP32 makes it of every
// infinity. Its warps share rows as well as columns, since both may be NaN as a whole. Kept out of the
// kernel's registers.
template <class C>
__device__ __noinline__ void repair(const gather::Product& p, uint32_t m0, int n0, int first_row) {
  const gather::Residue& r = p.residues[0];
  const Result result = p.forward ? Result::kForward : Result::kGradInput;
  const bool split = are_split(p.conv, p.forward ? p.conv.x : p.conv.y, p.conv.w);
  const Factors factors(p.conv, p.forward);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  for (int i = 0; i < C::kDown * 2; ++i) {
    const uint32_t m = m0 + first_row + i * 32 + lane;
    const Place place = place_of(r, m);
    int64_t at[3], offset = place.n * p.result.strides[0];
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      at[a] = int64_t{place.at[a]} * p.result_step[a] + r.result_first[a];
      offset += at[a] * p.result.strides[2 + a];
    }
    const int first_column = n0 + (warp + i) % 4;
    const auto is_settled = [&](int column) {
      return m < r.places && column < p.columns &&
             !isnan(static_cast<const float*>(p.result.data)[offset + column * p.result.strides[1]]);
    };
    KnownRows rows{factors, false, {}};
    for (int column = first_column; split && column < n0 + C::kN; column += 4)
      rows.clean = rows.clean || is_settled(column);
    for (int column = first_column; column < n0 + C::kN; column += 4) {
      float* const element = static_cast<float*>(p.result.data) + offset + column * p.result.strides[1];
      const bool suspect = m < r.places && column < p.columns && isnan(*element);
      if (!__any_sync(~0u, suspect)) continue;
      const Index5 index{place.n, column, at[0], at[1], at[2]};
      const auto store = [&](float sum) { *element = sum; };
      const bool open = split ? rows.settle(suspect, is_settled(column), index, store)
                              : suspect && reaches_edge(p.conv, result, index);
      repair_in_warp(p.conv, result, open, index, store);
    }
  }
}

}  // namespace retrograd::kernels::cuda::f32
