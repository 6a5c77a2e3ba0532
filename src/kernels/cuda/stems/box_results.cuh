// SPDX-License-Identifier: Apache-2.0
// From the sums of a box (box_plan.h) to y, through shared memory: neighbouring lanes store neighbouring
// pixels, or channels where these lie side by side.
#pragma once

#include "kernels/cuda/repair.cuh"
#include "kernels/cuda/stems/box_plan.h"

namespace retrograd::kernels::cuda {

inline constexpr int kBoxDown = 2;  // fragments of 16 places of a warp

template <class T, int kColumns>
struct BoxResults {
  const Conv& conv;
  const BoxProduct& p;
  const BoxPlace& at;
  int64_t channel;  // the first
  int channels;
  float* staged;

  __device__ int index(int place, int column) const {
    return p.y_channels_fast ? place * box_columns_pitch(kColumns) + column
                             : column * kBoxPlacesPitch + place;
  }
  __device__ Index5 place_of(int place, bool& there) const {
    const InBox in = in_box(p, place);
    const Index5 result{at.n, channel, at.d + in.d, at.h + in.h, at.w + in.w};
    there = place < p.places && result.d < p.d.y && result.h < p.h.y && result.w < p.w.y;
    return result;
  }
  template <class Function>
  __device__ void for_all(Function&& function) const {
    if (p.y_channels_fast) {
      const auto column = static_cast<int>(threadIdx.x) % kColumns;
      for (int place = static_cast<int>(threadIdx.x) / kColumns; place < kBoxPlaces;
           place += kBoxThreads / kColumns) {
        bool there;
        const Index5 result = place_of(place, there);
        function(result, place, column, there && column < channels);
      }
    } else {
      const auto place = static_cast<int>(threadIdx.x);
      bool there;
      const Index5 result = place_of(place, there);
#pragma unroll 4
      for (int column = 0; column < kColumns; ++column) {
        if (column >= channels) break;
        function(result, place, column, there);
      }
    }
  }

  __device__ void put(const float (&sums)[kBoxDown][kColumns / 8][4]) const {
    int lane = static_cast<int>(threadIdx.x) % 32;
    asm volatile("" : "+r"(lane));  // so that no round keeps these places in registers for the next
    const int warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
    for (int i = 0; i < kBoxDown; ++i)
#pragma unroll
      for (int j = 0; j < kColumns / 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          staged[index(warp * 32 + i * 16 + lane / 4 + e / 2 * 8, j * 8 + lane % 4 * 2 + e % 2)] =
              sums[i][j][e];
  }
  // Whether one of this thread's is NaN.
  __device__ bool store() const {
    bool nan = false;
    T* const y = static_cast<T*>(conv.y.data);
    for_all([&](const Index5& result, int place, int column, bool there) {
      if (!there) return;
      const float sum = staged[index(place, column)];
      nan = nan || isnan(sum);
      y[offset_of(conv.y, result) + column * conv.y.strides[1]] =
          from_float<T>(sum + bias_of(conv, channel + column));
    });
    return nan;
  }
  __device__ __noinline__ void repair() const {
    const bool split = are_split(conv, conv.x, conv.w);
    T* const y = static_cast<T*>(conv.y.data);
    for_all([&](Index5 result, int place, int column, bool there) {
      result.c += column;
      const bool suspect = there && isnan(staged[index(place, column)]) &&
                           (split || reaches_edge(conv, Result::kForward, result));
      repair_in_warp(conv, Result::kForward, suspect, result,
                     [&](float sum) { y[offset_of(conv.y, result)] = from_float<T>(sum); });
    });
  }
};

}  // namespace retrograd::kernels::cuda
