// SPDX-License-Identifier: Apache-2.0
// How narrow_tiles_weight.cu cuts its work, and the windows that it has kernels for.
#pragma once

#include <algorithm>

#include "kernels/cuda/counts.h"
#include "kernels/cuda/few_channels/narrow_shapes.h"

namespace retrograd::kernels::cuda::narrow_weight {

inline constexpr int kMostShared = 88 * 1024;
inline constexpr int kMostRows = 16;
inline constexpr int kWaves = 2;

// kThreads: 128 where few threads own different sums, so that more blocks share a multiprocessor.
template <int kO_, int kC_, int kKw_, int kSw_, int kThreads_>
struct Shape {
  static constexpr int kO = kO_, kC = kC_, kKw = kKw_, kSw = kSw_, kThreads = kThreads_;
  static constexpr int kWindow = (kKw + 3 * kSw + 3) / 4;  // chunks of x that four places read
  static constexpr int kSlice = kC * kKw;
};

struct Cut {
  int groups, x_channels, y_channels;  // channels of a group
  int xh, xw, yh, yw;
  int kh, stride_h, pad_h, pad_w;
  int in_block, o_blocks, c_blocks, o_chunks;  // groups of a block; threads along channels; blocks along y's
  int units;                                   // threads that own different sums
  int rows, runs, run;                         // threads that share a box: rows, and runs of quads in a row
  int quads, row_tiles, column_tiles;          // of a box
  int tiles, in_part;
  int x_group, y_group;  // floats of a group
  Box x_box, y_box;
  int64_t weights;
};

inline Box box_of(int channels, int rows, int columns) {
  Box box{};
  box.channels = channels;
  box.rows = rows;
  box.columns = columns;
  box.pitch = odd_pitch(columns);
  box.plane = (rows * box.pitch / 4 | 1) * 4;
  box.lanes = lanes_for(columns);
  box.in_group = 1;
  return box;
}

template <class S>
int shared_bytes(const Cut& p) {
  const int sums = p.units * p.rows * p.runs * S::kSlice;
  return std::max(sums, p.in_block * (p.x_group + p.y_group)) * 4;
}

template <class S>
void set_tile(Cut& p, int rows, int quads) {
  p.rows = rows;
  p.quads = quads;
  p.runs = std::max(1, std::min(S::kThreads / (p.units * rows), ceil_of(quads, 2)));
  p.run = ceil_of(quads, p.runs);
  p.runs = ceil_of(quads, p.run);
  p.y_box = box_of(std::min(p.y_channels, p.o_blocks * S::kO), rows, quads * 4);
  p.x_box = box_of(std::min(p.x_channels, p.c_blocks * S::kC), (rows - 1) * p.stride_h + p.kh,
                   (quads - 1) * 4 * S::kSw + S::kWindow * 4);
  p.y_group = p.o_blocks * S::kO * p.y_box.plane;
  p.x_group = p.c_blocks * S::kC * p.x_box.plane;
  if (p.in_block == 1) return;
  // Groups begin five chunks apart modulo eight: neighbouring threads have other rows of taps, then groups.
  p.y_box.in_group = p.y_channels, p.y_box.group_gap = (13 - p.y_group / 4 % 8) % 8 * 4;
  p.x_box.in_group = p.x_channels, p.x_box.group_gap = (13 - p.x_group / 4 % 8) % 8 * 4;
  p.y_group += p.y_box.group_gap;
  p.x_group += p.x_box.group_gap;
}

template <class S>
Cut cut_of(const Conv& conv, bool last) {
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  Cut p{};
  p.groups = static_cast<int>(conv.groups);
  p.x_channels = static_cast<int>(conv.x_channels);
  p.y_channels = static_cast<int>(conv.y_channels);
  p.xh = static_cast<int>(h.x), p.xw = static_cast<int>(w.x);
  p.yh = static_cast<int>(h.y), p.yw = static_cast<int>(w.y);
  p.kh = static_cast<int>(h.kernel), p.stride_h = static_cast<int>(h.stride);
  p.pad_h = static_cast<int>(h.pad), p.pad_w = static_cast<int>(w.pad);
  p.weights = conv.groups * conv.y_channels * conv.x_channels * h.kernel * w.kernel;
  p.c_blocks = ceil_of(conv.x_channels, S::kC);
  // Channels last: 16 channels are whole 32-byte sectors.
  const int fewest = std::min(p.x_channels, p.y_channels);
  p.in_block = last && p.y_channels % S::kO == 0 && fewest < 16 ? std::min(p.groups, ceil_of(16, fewest)) : 1;
  p.in_block = std::max(1, std::min(p.in_block, S::kThreads / (p.kh * p.c_blocks)));
  const int most = std::max(1, std::min(16, S::kThreads / (p.kh * p.c_blocks * p.in_block)));
  p.o_chunks = ceil_of(ceil_of(conv.y_channels, S::kO), most);
  p.o_blocks = ceil_of(ceil_of(conv.y_channels, S::kO), p.o_chunks);
  p.units = p.kh * p.o_blocks * p.c_blocks * p.in_block;

  const int quads = ceil_of(w.y, 4);
  int across = ceil_of(quads, ceil_of(quads, 32));
  set_tile<S>(p, 1, across);
  while (shared_bytes<S>(p) > kMostShared && across > 1) set_tile<S>(p, 1, across = ceil_of(across, 2));
  for (int tiles = p.yh; tiles >= 1; --tiles) {
    Cut trial = p;
    const int rows = ceil_of(h.y, tiles);
    set_tile<S>(trial, rows, across);
    if (rows > kMostRows || trial.units * rows > S::kThreads || shared_bytes<S>(trial) > kMostShared) break;
    p = trial;
  }
  p.row_tiles = ceil_of(h.y, p.rows);
  p.column_tiles = ceil_of(quads, p.quads);
  p.tiles = static_cast<int>(conv.batch) * p.row_tiles * p.column_tiles;
  // Blocks for the multiprocessors of a large GPU, as many as they hold at once.
  const int threads = p.units * p.rows * p.runs;
  const int at_once = std::max(1, std::min(220 * 1024 / shared_bytes<S>(p), 512 / threads));
  const int parts = std::max(1, kWaves * 132 * at_once / (ceil_of(p.groups, p.in_block) * p.o_chunks));
  p.in_part = ceil_of(p.tiles, std::min(parts, p.tiles));
  return p;
}

// Calls function(S{}) with the first shape that fits.
template <class S, class... More, class Function>
bool with_shape(const Conv& conv, Function&& function) {
  const Axis& w = conv.axes[2];
  const int64_t owners = conv.axes[1].kernel * (conv.x_channels / S::kC) *
                         std::min<int64_t>(16, ceil_of(conv.y_channels, S::kO));
  if (w.kernel == S::kKw && w.stride == S::kSw && conv.x_channels % S::kC == 0 &&
      (S::kThreads > 128 || owners <= 24)) {
    function(S{});
    return true;
  }
  if constexpr (sizeof...(More) > 0) return with_shape<More...>(conv, function);
  return false;
}
template <class Function>
bool with_any_shape(const Conv& conv, Function&& function) {
  return with_shape<Shape<4, 4, 3, 1, 128>, Shape<4, 4, 3, 1, 256>, Shape<4, 4, 3, 2, 256>,  // narrow groups
                    Shape<4, 3, 7, 2, 256>,                                                  // stems
                    Shape<4, 3, 5, 1, 256>,                                                  // small networks
                    Shape<4, 1, 10, 5, 128>, Shape<4, 1, 10, 5, 256>>                        // waveforms
      (conv, function);
}

}  // namespace retrograd::kernels::cuda::narrow_weight
