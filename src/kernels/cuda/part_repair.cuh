// SPDX-License-Identifier: Apache-2.0
// Sums of grad_weight that are NaN and whose pixels were cut into parts: parts that are not NaN are right, so
// only the terms of the others are added again.
#pragma once

#include "kernels/cuda/part_rows.h"
#include "kernels/cuda/repair.cuh"

namespace retrograd::kernels::cuda {

// value(i): part i of w[at]; begin(i): its first place in the grid, beyond the last place the number of all.
// The share of lane `number` of `lanes`, which call it together with all others of the warp, for as many
// parts of other weights.
template <class Value, class Begin>
__device__ float share_of_parts(const Conv& conv, const Index5& at, const PlaceGrid& grid, int64_t count,
                                int number, int lanes, Value&& value, Begin&& begin) {
  constexpr int kAhead = kPartsAhead;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Terms terms = terms_of_weight(conv, at);
  float sum = 0;
#pragma unroll 1
  for (int64_t first = 0; first < count; first += kAhead * lanes) {
    float parts[kAhead];
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      const int64_t i = first + j * lanes + number;
      parts[j] = i < count ? value(i) : 0.0f;
    }
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      if (!isnan(parts[j])) sum += parts[j];
      unsigned rest = __ballot_sync(~0u, isnan(parts[j])) >> (lane - number) & (~0u >> (32 - lanes));
      while (__any_sync(~0u, rest != 0)) {
        const int64_t i = first + j * lanes + __ffs(static_cast<int>(rest)) - 1;
        if (rest != 0)
          sum += sum_of_terms(conv, Result::kGradWeight, terms, terms_before(terms, grid, begin(i)),
                              terms_before(terms, grid, begin(i + 1)), number, lanes);
        rest &= rest - 1;
      }
    }
  }
  return sum;
}

// parts: of w[at], `stride` apart.
static __device__ __noinline__ float share_of_parts(const Conv& conv, const Index5& at, const PartRows& rows,
                                                    int64_t count, const float* parts, int64_t stride,
                                                    int number, int lanes) {
  const Axis(&a)[3] = conv.axes;
  const int64_t all = conv.batch * rows.height;
  return share_of_parts(
      conv, at, {{}, {a[0].y, a[1].y, a[2].y}}, count / rows.slots, number, lanes,
      [&](int64_t i) {
        float sum = 0;
        for (int64_t slot = i * rows.slots; slot < (i + 1) * rows.slots; ++slot) sum += parts[slot * stride];
        return sum;
      },
      [&](int64_t i) { return min(rows.first_row(i), all) * a[2].y; });
}

// Of the weights that a warp's lanes hold, w[at] each, those that are suspect: NaN. `warps` warps that hold
// the same ones share them. parts_of(at): as above.
template <class PartsOf>
__device__ void repair_weights(const Conv& conv, const PartRows& rows, int64_t count, int64_t stride,
                               bool suspect, const Index5& at, int warp, int warps, PartsOf&& parts_of) {
  const unsigned open = __ballot_sync(~0u, suspect && !begins_with_nan(conv, Result::kGradWeight, at));
  const int lane = static_cast<int>(threadIdx.x) % 32, rank = __popc(open & ((1u << lane) - 1));
  const bool whole = rows.items == 0;  // which places a part has is not known
  const int64_t terms = most_terms(conv, Result::kGradWeight),
                parts = whole ? 1 : quotient(count, rows.slots);
  in_turn((open >> lane & 1u) != 0 && rank % warps == warp, at, quotient(terms, parts), parts,
          [&](const Index5& index, int number, int lanes) {
            return whole ? weight_by_formula(conv, index, number, lanes)
                         : share_of_parts(conv, index, rows, count, parts_of(index), stride, number, lanes);
          },
          [&](float sum) { store_any(conv.w.dtype, conv.w.data, offset_of(conv.w, at), sum); });
}

}  // namespace retrograd::kernels::cuda
