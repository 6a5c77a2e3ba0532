// SPDX-License-Identifier: Apache-2.0
// Sums of grad_weight that are NaN and whose places were cut into parts: parts that are not NaN are right, so
// only the others are computed again, each by a whole warp.
#pragma once

#include "kernels/cuda/part_rows.h"
#include "kernels/cuda/repair.cuh"

namespace retrograd::kernels::cuda {

// value(i): part i of w[at]; begin(i): its first place in the grid, beyond the last place the number of all.
// Every lane of the warp gets the sum.
template <class Value, class Begin>
__device__ float sum_of_parts(const Conv& conv, const Index5& at, const PlaceGrid& grid, int64_t count,
                              Value&& value, Begin&& begin) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float sum = 0;
  for (int64_t first = 0; first < count; first += 32) {
    const float part = first + lane < count ? value(first + lane) : 0.0f;
    sum += warp_sum(isnan(part) ? 0.0f : part);
    for (unsigned rest = __ballot_sync(~0u, isnan(part)); rest != 0; rest &= rest - 1) {
      const int64_t i = first + __ffs(static_cast<int>(rest)) - 1;
      sum += warp_sum(grad_weight_part(conv, at, grid, begin(i), begin(i + 1), lane, 32));
      if (isnan(sum)) return sum;
    }
  }
  return sum;
}

// parts: of w[at], `stride` apart.
static __device__ __noinline__ float sum_of_parts(const Conv& conv, const Index5& at, const PartRows& rows,
                                                  int64_t count, const float* parts, int64_t stride) {
  if (rows.items == 0) return by_warp(conv, Result::kGradWeight, at);
  const int64_t all = conv.batch * rows.height;
  return sum_of_parts(
      conv, at, PlaceGrid::of(conv), count / rows.slots,
      [&](int64_t i) {
        float sum = 0;
        for (int64_t slot = i * rows.slots; slot < (i + 1) * rows.slots; ++slot) sum += parts[slot * stride];
        return sum;
      },
      [&](int64_t i) { return min(rows.first_row(i), all) * conv.axes[2].y; });
}

// Of the weights that a warp's lanes hold, w[at] each, those that are suspect: NaN. `warps` warps that hold
// the same ones share them. parts_of(at): as above.
template <class PartsOf>
__device__ void repair_weights(const Conv& conv, const PartRows& rows, int64_t count, int64_t stride,
                               bool suspect, const Index5& at, int warp, int warps, PartsOf&& parts_of) {
  unsigned mine = 0;
  unsigned rest = __ballot_sync(~0u, suspect && !begins_with_nan(conv, Result::kGradWeight, at));
  for (int number = 0; rest != 0; rest &= rest - 1, ++number)
    if (number % warps == warp) mine |= rest & (0u - rest);
  in_turn(
      (mine >> threadIdx.x % 32 & 1u) != 0, at,
      [&](const Index5& index) { return sum_of_parts(conv, index, rows, count, parts_of(index), stride); },
      [&](float sum) { store_any(conv.w.dtype, conv.w.data, offset_of(conv.w, at), sum); });
}

}  // namespace retrograd::kernels::cuda
