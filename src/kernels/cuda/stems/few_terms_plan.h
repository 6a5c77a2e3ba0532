// SPDX-License-Identifier: Apache-2.0
// How a convolution with few terms a result is cut, from either side:
//   forward      y[n,o,p] = Σ_{t,i} x[n,i,position(p,t)] · w[o,i,t] + bias[o]
//   grad_input   x[n,i,q] = Σ_{t,o} y[n,o,output_reading(q,t)] · w[o,i,t] (+ bias[i]: transposed)
// where the taps and the channels that are added up are at most 64 together. "From" is the tensor that is
// read, "to" the result.
//
// A thread takes two places of a group's result, one of more than 32 terms. It gathers their terms once and
// walks over the group's result channels, whose weights a block has in shared memory: the sums are as long as
// they are few, and what is left is to write the result. FP32 products and sums, so that the shortest of them
// are as exact as any (engines/cuda/dense/product_limits.h).
#pragma once

#include <cstdint>
#include <utility>

#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

inline constexpr int kFewTerms = 64, kFewTermsThreads = 128;
inline constexpr int kFewTermsChunk = 32;                  // channels at once
inline constexpr int kFewTermsPitch = kFewTermsChunk + 1;  // of results that leave by channels
// Places of a thread.
RG_HOST_DEVICE constexpr int few_terms_each(int filled) { return filled <= 32 ? 2 : 1; }

struct FewTermsAxis {
  int to, from, kernel, dilation, pad;
  FastDiv by_stride;
};

struct FewTermsPlan {
  bool forward;
  FewTermsAxis d, h, w;
  int to_channels, from_channels;  // of a group
  int terms, filled;               // filled up to 8, 16, 24, 32, 48 or 64
  int vector;                      // channels side by side that are read at once: 16 bytes, or 1
  bool channels_fast;              // of the result in memory: they leave through shared memory
  bool whole;                      // and in 16-byte vectors, an aligned address given
  int splits, of_split;            // of a group's result channels over blocks; of_split: whole chunks
  uint32_t places;                 // of all images
  FastDiv by_w, by_h, by_d, by_chunk, by_vectors, by_channels, by_kw, by_kh;
  int64_t blocks;  // along places; groups · splits of each
  int64_t shared;  // bytes
  double cycles;   // of a GPU with 132 multiprocessors, about
};
FewTermsPlan few_terms_plan(const Conv& conv, bool forward);

struct FewTermsOperands {
  Tensor from, to, w;  // w's first stride is that of from's channels, the second that of to's
  int64_t w_group;     // between the weights of two groups
  ChannelBias bias;
};
inline FewTermsOperands few_terms_operands(const Conv& conv, bool forward) {
  FewTermsOperands o{conv.y, conv.x, conv.w, conv.y_channels * conv.w.strides[0], conv.bias};
  if (forward) {
    std::swap(o.from, o.to);
    std::swap(o.w.strides[0], o.w.strides[1]);
  }
  return o;
}

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

// The place that is read for one of the result at a tap; −1: none.
RG_DEVICE inline int few_terms_source(const FewTermsAxis& a, bool forward, int place, int tap) {
  if (forward) {
    const int source = place * static_cast<int>(a.by_stride.divisor) - a.pad + tap * a.dilation;
    return source >= 0 && source < a.from ? source : -1;
  }
  const int scaled = place + a.pad - tap * a.dilation;
  if (scaled < 0) return -1;
  auto rest = static_cast<uint32_t>(scaled);
  const auto source = static_cast<int>(a.by_stride.split(rest));
  return rest == 0 && source < a.from ? source : -1;
}

// put(term, offset) for the terms of a place in order, taps outside, kVector terms a call (p.vector, or 1):
// where they lie behind their group's first. Terms that are not there are left out. Mask: the bits of those
// that are.
template <class Mask, int kVector, class Put>
RG_DEVICE Mask few_terms_of(const FewTermsPlan& p, const Tensor& from, const FewTermsPlace& at, Put&& put) {
  Mask live = 0;
  int term = 0;
  for (int kd = 0; kd < p.d.kernel; ++kd) {
    const int d = few_terms_source(p.d, p.forward, at.d, kd);
    for (int kh = 0; kh < p.h.kernel; ++kh) {
      const int h = few_terms_source(p.h, p.forward, at.h, kh);
      for (int kw = 0; kw < p.w.kernel; ++kw, term += p.from_channels) {
        const int w = few_terms_source(p.w, p.forward, at.w, kw);
        if ((d | h | w) < 0) continue;
        live |= (~Mask{0} >> (8 * static_cast<int>(sizeof(Mask)) - p.from_channels)) << term;
        const int64_t first = few_terms_offset(from, {at.n, d, h, w});
        RG_UNROLL_BY(8)
        for (int c = 0; c < p.from_channels; c += kVector) put(term + c, first + c * from.strides[1]);
      }
    }
  }
  return live;
}

// Where the weight of a term lies behind that of its group's first.
RG_DEVICE inline int64_t few_terms_weight(const FewTermsPlan& p, const Tensor& w, int term) {
  auto c = static_cast<uint32_t>(term);
  uint32_t kw = p.by_channels.split(c);
  uint32_t kh = p.by_kw.split(kw);
  const uint32_t kd = p.by_kh.split(kh);
  return c * w.strides[0] + kd * w.strides[2] + kh * w.strides[3] + kw * w.strides[4];
}

// forward and grad_input whose results have at most 64 terms (few_terms_plan.h): FP32, FP16 and BF16, any
// strides.
void few_terms(const Conv& conv, const FewTermsPlan& plan, Stream stream);

}  // namespace retrograd::kernels::cuda
