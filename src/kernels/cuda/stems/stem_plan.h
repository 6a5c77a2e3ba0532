// SPDX-License-Identifier: Apache-2.0
// How grad_input with few x channels a group is cut.
//
// Along an axis the pixels q of x with q + P = b modulo S are class b. They meet the taps b, b + S, …, J of
// them, and read J pixels of y side by side, the last tap's first. Pixels of a class are numbered by the
// first pixel of y that they read, its window's start m: q = S·(m + J − 1) + b − P. So all classes of a block
// read the same box of y from m on, and all threads of a class have the same taps.
//
// A block takes a box of window starts of one image and depth for all classes. Its threads are positions
// (eight starts along a row, one or a few rows), times classes, times shares, which take every shares-th y
// channel. y channels and taps along the depth go by in chunks, two of them in shared memory.
#pragma once

#include <cstdint>

#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

inline constexpr int kStemRun = 8;             // starts of a thread along a row
inline constexpr int kStemThreads = 512;       // of a block, at most
inline constexpr int kStemShared = 113 << 10;  // bytes at most, so that a multiprocessor holds two blocks
inline constexpr int64_t kStemChannels = 8;    // of x, a group's

struct StemAxis {
  int x = 1, y = 1, kernel = 1, stride = 1, pad = 0;
  int most = 1;              // taps of class 0, which has the most
  int first = 0, count = 1;  // window starts of all places
};
StemAxis stem_axis(const Axis& axis);

RG_HOST_DEVICE inline int stem_taps(const StemAxis& a, int b) {
  return b < a.kernel ? (a.kernel - b + a.stride - 1) / a.stride : 0;
}
// The tap with which a place of class b reads place `i` of its window.
RG_HOST_DEVICE inline int stem_tap(const StemAxis& a, int b, int i) {
  return b + a.stride * (stem_taps(a, b) - 1 - i);
}
RG_HOST_DEVICE inline int stem_place(const StemAxis& a, int b, int start) {
  return a.stride * (start + stem_taps(a, b) - 1) + b - a.pad;
}

// Where column c of a row lies in shared memory: threads read 16 bytes at every 32nd, and those beyond the
// first 32 columns would meet the banks of the others.
RG_HOST_DEVICE inline int stem_column(int c) { return c ^ (c >> 3 & 4); }

struct StemPlan {
  StemAxis h, w;
  int channels, c_blocks;  // x channels of a thread; blocks of them in a group
  int rows;                // of window starts, a thread's
  int quads, thread_rows;  // threads along a row, a power of two, and along rows
  int positions;           // the product: whole warps
  int classes, shares, chunk;
  int row_tiles, column_tiles;
  int box_rows, box_columns;                     // of y
  int pitch, plane;                              // floats from row to row, from channel to channel
  int lanes;                                     // threads that copy a row: 8, 16 or 32
  int weight_row, weight_class, weight_channel;  // floats: [channel][class][row of taps][tap][x channel]
  int entries;                                   // weights of a y channel, of one tap along the depth
  int buffer, shared;                            // floats of one chunk, bytes of everything, or of the least
  bool wide;                                     // rows of y are copied four places at a time
  bool last;                                     // channels of y lie side by side
  bool fits;                                     // otherwise the rest says nothing but classes and shared
  double cycles;                                 // that it may take
  FastDiv by_box_rows, by_entries, by_groups_of_four;

  int threads() const { return positions * classes * shares; }
  int64_t blocks(const Conv& conv) const {
    return int64_t{row_tiles} * column_tiles * conv.axes[0].x * conv.batch * conv.groups * c_blocks;
  }
};
// aligned: y lies at a multiple of four elements. shared_bytes: of a block, at most.
StemPlan stem_plan(const Conv& conv, bool aligned, int64_t shared_bytes);

// grad_input with few x channels a group (stems, 1-D front ends, first layers of volumes) for every window
// without dilation, in FP32 arithmetic: FP32, FP16 and BF16, any strides of all operands.
void stem_gather(const Conv& conv, const StemPlan& plan, Stream stream);

}  // namespace retrograd::kernels::cuda
