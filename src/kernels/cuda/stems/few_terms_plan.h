// SPDX-License-Identifier: Apache-2.0
// How grad_input with few terms a result is cut: x[n,i,q] = Σ_{t,o} y[n,o,output_reading(q,t)] · w[o,i,t]
// where taps and y channels of a group together are at most 32.
//
// A thread takes two pixels of a group. It gathers their terms once and walks over the group's x channels,
// whose weights a block has in shared memory: the sums are as long as they are few, and what is left is to
// write x. FP32 products and sums, so that the shortest of them are as exact as any (product_limits.h).
#pragma once

#include <cstdint>

#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

inline constexpr int kFewTerms = 32, kFewTermsThreads = 128, kFewTermsEach = 2;
inline constexpr int kFewTermsPlaces = kFewTermsThreads * kFewTermsEach;  // of a block
inline constexpr int kFewTermsChunk = 32;                                 // x channels at once
inline constexpr int kFewTermsPitch = kFewTermsChunk + 1;                 // of results that leave by channels

struct FewTermsAxis {
  int x, y, kernel, dilation, pad;
  FastDiv by_stride;
};

struct FewTermsPlan {
  FewTermsAxis d, h, w;
  int x_channels, y_channels;  // of a group
  int terms, filled;           // filled up to 8, 16, 24 or 32
  bool channels_fast;          // of x in memory: they leave through shared memory
  bool whole;                  // and in 16-byte vectors, an aligned address given
  int splits, of_split;        // of a group's x channels over blocks; of_split: whole chunks
  uint32_t places;             // of all images
  FastDiv by_w, by_h, by_d, by_chunk, by_vectors, by_channels, by_kw, by_kh;
  int64_t blocks;  // along places; groups · splits of each
  int64_t shared;  // bytes
  double cycles;   // of a GPU with 132 multiprocessors, about
};
FewTermsPlan few_terms_plan(const Conv& conv);

struct FewTermsPlace {
  int n, d, h, w;
};
RG_DEVICE inline FewTermsPlace few_terms_place(const FewTermsPlan& p, uint32_t number) {
  uint32_t w = number;
  uint32_t h = p.by_w.split(w);
  uint32_t d = p.by_h.split(h);
  const uint32_t n = p.by_d.split(d);
  return {static_cast<int>(n), static_cast<int>(d), static_cast<int>(h), static_cast<int>(w)};
}
RG_DEVICE inline int64_t few_terms_offset(const Tensor& t, const FewTermsPlace& at) {
  return at.n * t.strides[0] + at.d * t.strides[2] + at.h * t.strides[3] + at.w * t.strides[4];
}

// The output whose window has the place at a tap; −1: none.
RG_DEVICE inline int few_terms_output(const FewTermsAxis& a, int place, int tap) {
  const int scaled = place + a.pad - tap * a.dilation;
  if (scaled < 0) return -1;
  auto rest = static_cast<uint32_t>(scaled);
  const auto output = static_cast<int>(a.by_stride.split(rest));
  return rest == 0 && output < a.y ? output : -1;
}

// put(term, offset) for the terms of a place in order, taps outside: where y has the value, behind its
// group's first. Terms that no output has are left out. The bits of those that are there.
template <class Put>
RG_DEVICE uint32_t few_terms_of(const FewTermsPlan& p, const Tensor& y, const FewTermsPlace& at, Put&& put) {
  uint32_t live = 0;
  int term = 0;
  for (int kd = 0; kd < p.d.kernel; ++kd) {
    const int d = few_terms_output(p.d, at.d, kd);
    for (int kh = 0; kh < p.h.kernel; ++kh) {
      const int h = few_terms_output(p.h, at.h, kh);
      for (int kw = 0; kw < p.w.kernel; ++kw, term += p.y_channels) {
        const int w = few_terms_output(p.w, at.w, kw);
        if ((d | h | w) < 0) continue;
        live |= (0xffffffffu >> (32 - p.y_channels)) << term;
        const int64_t first = few_terms_offset(y, {at.n, d, h, w});
        RG_UNROLL_BY(8)
        for (int o = 0; o < p.y_channels; ++o) put(term + o, first + o * y.strides[1]);
      }
    }
  }
  return live;
}

// Where the weight of a term lies behind that of its group's first y channel.
RG_DEVICE inline int64_t few_terms_weight(const FewTermsPlan& p, const Tensor& w, int term) {
  auto o = static_cast<uint32_t>(term);
  uint32_t kw = p.by_channels.split(o);
  uint32_t kh = p.by_kw.split(kw);
  const uint32_t kd = p.by_kh.split(kh);
  return o * w.strides[0] + kd * w.strides[2] + kh * w.strides[3] + kw * w.strides[4];
}

}  // namespace retrograd::kernels::cuda
