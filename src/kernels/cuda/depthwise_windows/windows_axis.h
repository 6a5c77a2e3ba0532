// SPDX-License-Identifier: Apache-2.0
// One axis of a gather with any window: which taps reach a result's pixel, and where they read.
//
// forward      index q reads q·stride − pad + t·dilation with tap t.
// grad_input   index q reads (q + pad − t·dilation)/stride with the taps t for which nothing is left: with
//              g = gcd(stride, dilation), those with t·(dilation/g) ≡ (q + pad)/g mod stride/g. They lie
//              stride/g apart and read pixels dilation/g apart, in the opposite order. With stride 1 these
//              are all taps, and that is forward again with the taps turned round.
// Both are told as: matching tap number j is tap first + j·apart and reads base + j·step, step > 0.
#pragma once

#include <cstdint>

#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

struct DepthwiseAxis {
  int results = 1, source = 1, kernel = 1;
  bool matched = false;  // grad_input with a stride
  int stride = 1, dilation = 1, pad = 0;
  int first = 0, toward = 1;  // where all taps match: the one that j = 0 stands for, and which is next
  int phase = 0;              // pad modulo stride
  int lift = 0;               // strides that make what is divided positive
  int inverse = 0;            // of dilation/g modulo stride/g
  int apart = 1, step = 1;
  FastDiv by_stride, by_common, by_apart, by_step;
  int result_pitch = 0, source_pitch = 0;  // elements from place to place
};

// Sizes up to 2^27, strides up to 2^15, pitches of 31 bits.
DepthwiseAxis window_axis(const Axis& axis, bool forward, int64_t result_pitch, int64_t source_pitch);
// The most taps that a place has.
int most_taps(const DepthwiseAxis& axis);
// Whether results so far apart read the same with neighbouring taps.
bool shares(const DepthwiseAxis& axis);
int64_t spacing_of(const DepthwiseAxis& axis);
// Places of the source from the first to the last that `count` neighbours read, at most.
int64_t extent(const DepthwiseAxis& axis, int64_t count);

// Weights of the groups: elements from group to group, from result to result and from source to source of a
// group, and along taps.
struct DepthwiseKernels {
  FastDiv by_kw, by_kh;
  int64_t group, result, source, taps[3];

  RG_DEVICE int64_t offset(int64_t of_group, int64_t of_result, int64_t of_source, uint32_t tap) const {
    uint32_t h = by_kw.split(tap);
    const uint32_t d = by_kh.split(h);
    return of_group * group + of_result * result + of_source * source + d * taps[0] + h * taps[1] +
           tap * taps[2];
  }
};
DepthwiseKernels depthwise_kernels(const Conv& conv, bool forward);

struct Taps {
  int base, first, apart, count;
};

RG_DEVICE inline Taps taps_at(const DepthwiseAxis& a, int place) {
  if (!a.matched) return {place * a.stride - a.pad, a.first, a.toward, a.kernel};
  auto rest = static_cast<uint32_t>(place + a.phase);
  a.by_stride.split(rest);
  auto tap = a.by_common.split(rest) * static_cast<uint32_t>(a.inverse);
  a.by_apart.split(tap);
  if (rest != 0 || static_cast<int>(tap) >= a.kernel) return {0, 0, 0, 0};
  const int first = static_cast<int>(tap);
  const int count =
      static_cast<int>(a.by_apart.quotient(static_cast<uint32_t>(a.kernel - first + a.apart - 1)));
  const int from = place + a.pad - first * a.dilation + a.lift * a.stride;
  const int start = static_cast<int>(a.by_stride.quotient(static_cast<uint32_t>(from))) - a.lift;
  return {start - (count - 1) * a.step, first + (count - 1) * a.apart, -a.apart, count};
}

struct Span {
  int begin, end;
};

// The matching taps that read inside the source.
RG_DEVICE inline Span live_taps(const DepthwiseAxis& a, const Taps& taps) {
  Span live{0, 0};
  if (taps.base < 0)
    live.begin = static_cast<int>(a.by_step.quotient(static_cast<uint32_t>(a.step - 1 - taps.base)));
  if (taps.base < a.source)
    live.end = static_cast<int>(a.by_step.quotient(static_cast<uint32_t>(a.source - taps.base + a.step - 1)));
  if (live.end > taps.count) live.end = taps.count;
  return live;
}

}  // namespace retrograd::kernels::cuda
