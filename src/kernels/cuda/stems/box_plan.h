// SPDX-License-Identifier: Apache-2.0
// How forward with few x channels a group is cut: y[n,o,p] = Σ_{t,c} x[n,c,position(p,t)] · w[o,c,t]
// as a product of pixels by y channels, summed over taps and channels together (c runs fastest).
//
// A block makes a box of up to 128 pixels by up to 64 channels. It stages the box of x that all windows of
// its places lie in, zeros beyond the edges, and the weights in the order of fragments. A term's value is at
// (where the pixel's window begins) + (how far its tap and channel lie behind): a table holds the latter, so
// windows are gathered out of shared memory straight into fragments, and nothing is written out as patches.
// A block makes several boxes where all weights fit.
#pragma once

#include <cstdint>

#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

inline constexpr int kBoxPlaces = 128, kBoxThreads = 128;
inline constexpr int kBoxPlacesPitch = kBoxPlaces + 4;  // of sums that leave through shared memory
RG_HOST_DEVICE constexpr int box_columns_pitch(int columns) { return columns + 8; }

struct BoxAxis {
  int x, y, kernel, stride, dilation, pad;
  int places, staged;  // of a box
};

struct BoxProduct {
  BoxAxis d, h, w;
  int channels, outputs;                  // of a group
  int terms, filled;                      // taps and channels; filled up to whole fragments
  int of_fragment;                        // terms: 16 of 16 bits, 8 of 32
  int columns, column_tiles;              // y channels of a block: 16, 32 or 64
  int chunk;                              // terms whose weights are staged at once: whole fragments
  int rounds;                             // boxes of a block
  bool pairs;                             // two terms side by side in shared memory
  bool x_channels_fast, y_channels_fast;  // in memory
  int places;                             // of a box
  int box_bytes, weight_bytes;            // box: of x, or of the sums
  uint32_t boxes;                         // of all images
  FastDiv by_pw, by_ph, by_sw, by_sh, by_channels, by_volume, by_kw, by_kh, by_chunk;
  FastDiv by_tiles_w, by_tiles_h, by_tiles_d;
};

struct BoxPlan {
  BoxProduct product;
  bool fits;
  int64_t shared, blocks;  // blocks along places; groups · column_tiles of each
  double cycles;           // of a GPU with 132 multiprocessors, about
};
// x and y: strides say which of places and channels lie side by side.
BoxPlan box_plan(const Conv& conv);

// A box: its image, and first places.
struct BoxPlace {
  int n, d, h, w;
};
RG_DEVICE inline BoxPlace box_place(const BoxProduct& p, uint32_t number) {
  BoxPlace at;
  uint32_t rest = p.by_tiles_w.quotient(number);
  at.w = static_cast<int>(number - rest * p.by_tiles_w.divisor) * p.w.places;
  uint32_t h = rest;
  rest = p.by_tiles_h.split(h);
  at.h = static_cast<int>(h) * p.h.places;
  uint32_t d = rest;
  at.n = static_cast<int>(p.by_tiles_d.split(d));
  at.d = static_cast<int>(d) * p.d.places;
  return at;
}

// Place number i of a box: how far behind the first it lies.
struct InBox {
  int d, h, w;
};
RG_DEVICE inline InBox in_box(const BoxProduct& p, int i) {
  auto w = static_cast<uint32_t>(i);
  uint32_t h = p.by_pw.split(w);
  const uint32_t d = p.by_ph.split(h);
  return {static_cast<int>(d), static_cast<int>(h), static_cast<int>(w)};
}
// Where its window begins among what is staged.
RG_DEVICE inline int window_of(const BoxProduct& p, const InBox& at) {
  return ((at.d * p.d.stride * p.h.staged + at.h * p.h.stride) * p.w.staged + at.w * p.w.stride) * p.channels;
}

// A term: how far behind its window's beginning it is staged, and where its weight lies behind its channel's.
struct BoxTerm {
  int staged, channel, d, h, w;
};
RG_DEVICE inline BoxTerm box_term(const BoxProduct& p, int term) {
  auto c = static_cast<uint32_t>(term);
  uint32_t w = p.by_channels.split(c);
  uint32_t h = p.by_kw.split(w);
  const uint32_t d = p.by_kh.split(h);
  BoxTerm t{0, static_cast<int>(c), static_cast<int>(d), static_cast<int>(h), static_cast<int>(w)};
  t.staged = ((t.d * p.d.dilation * p.h.staged + t.h * p.h.dilation) * p.w.staged + t.w * p.w.dilation) *
                 p.channels +
             t.channel;
  return t;
}

// Element number i of what is staged, in the order of memory: its place of x, and where it goes.
struct BoxElement {
  int c, d, h, w, to;
  bool inside;
};
RG_DEVICE inline BoxElement box_element(const BoxProduct& p, const BoxPlace& at, int i) {
  BoxElement e;
  auto place = static_cast<uint32_t>(i);
  uint32_t c;
  if (p.x_channels_fast) {
    c = place;
    place = p.by_channels.split(c);
  } else {
    c = p.by_volume.split(place);
  }
  e.to = static_cast<int>(place) * p.channels + static_cast<int>(c);
  uint32_t w = place;
  uint32_t h = p.by_sw.split(w);
  const uint32_t d = p.by_sh.split(h);
  e.c = static_cast<int>(c);
  e.d = at.d * p.d.stride - p.d.pad + static_cast<int>(d);
  e.h = at.h * p.h.stride - p.h.pad + static_cast<int>(h);
  e.w = at.w * p.w.stride - p.w.pad + static_cast<int>(w);
  e.inside = static_cast<uint32_t>(e.d) < static_cast<uint32_t>(p.d.x) &&
             static_cast<uint32_t>(e.h) < static_cast<uint32_t>(p.h.x) &&
             static_cast<uint32_t>(e.w) < static_cast<uint32_t>(p.w.x);
  return e;
}

// Where the weight of a term of the chunk and a column goes: lane 4·(column % 8) + t of a fragment holds
// terms t and t + 4 of eight, or pairs 2t, 2t + 1 and 2t + 8, 2t + 9 of sixteen.
RG_DEVICE inline int weight_place(const BoxProduct& p, int term, int column) {
  const int across = p.columns / 8;
  if (p.of_fragment == 16) {
    const int in = term & 15, lane = (column & 7) * 4 + (in & 7) / 2;
    return (((term >> 4) * across + column / 8) * 32 + lane) * 4 + in / 8 * 2 + (in & 1);
  }
  const int in = term & 7, lane = (column & 7) * 4 + (in & 3);
  return (((term >> 3) * across + column / 8) * 32 + lane) * 2 + in / 4;
}

// forward with few x channels a group on tensor cores, windows gathered out of shared memory.
// FP32, FP16 or BF16 throughout, any strides.
void box_products(const Conv& conv, const BoxPlan& plan, Stream stream);

}  // namespace retrograd::kernels::cuda
