// SPDX-License-Identifier: Apache-2.0
// Boxes as large as shared memory holds, evenly.
#include "kernels/cuda/few_channels/narrow_block_gather_plan.h"

#include <algorithm>

#include "kernels/cuda/alignment.h"
#include "kernels/cuda/counts.h"

namespace retrograd::kernels::cuda {
namespace block_gather {
namespace {

constexpr int kMostPlaces = kWarps * kTiles * 16;
constexpr int kMostWeights = 48 * 1024, kMostTile = 32 * 1024;

BlockAxis axis_of(const Axis& a) {
  const int pad = static_cast<int>(a.pad), dilation = static_cast<int>(a.dilation);
  BlockAxis b{};
  b.x = static_cast<int>(a.x), b.y = static_cast<int>(a.y);
  b.kernel = static_cast<int>(a.kernel), b.stride = static_cast<int>(a.stride);
  if (a.stride == 1) {
    b.low = pad - (b.kernel - 1) * dilation;
    b.window = b.kernel, b.step = dilation;
    b.first = b.kernel - 1, b.tap_step = 1;
    return b;
  }
  const int above = pad - b.kernel + 1;  // of the last tap, for residue 0
  b.low = above >= 0 ? (above + b.stride - 1) / b.stride : -(-above / b.stride);
  b.window = (b.stride - 1 + pad) / b.stride - b.low + 1, b.step = 1;
  b.first = pad - b.stride * b.low, b.tap_step = b.stride;
  return b;
}

void set_rows(Cut& p, int rows) {
  p.rows = rows;
  p.box_rows = rows + (p.h.window - 1) * p.h.step;
  p.staged_pitch = ceil_of(rows * p.width, 16) * 16 + 8;  // an odd number of chunks
}
}  // namespace

int64_t weight_bytes(const Cut& p) { return int64_t{p.y_blocks} * p.h.window * p.w.window * 512; }
int64_t tile_bytes(const Cut& p) {
  return std::max(int64_t{p.box_rows} * p.pitch * 32, int64_t{p.staged_pitch} * 32);
}

Cut cut_of(const Conv& conv, bool last) {
  Cut p{};
  p.h = axis_of(conv.axes[1]), p.w = axis_of(conv.axes[2]);
  p.all_x = static_cast<int>(conv.groups * conv.x_channels);
  p.all_y = static_cast<int>(conv.groups * conv.y_channels);
  const bool together = conv.groups > 1 && conv.x_channels == conv.y_channels &&
                        p.h.stride * p.w.stride == 1 && kBlockChannels % conv.x_channels == 0;
  p.in_group = together ? static_cast<int>(conv.x_channels) : 1 << 20;
  p.x_channels = together ? kBlockChannels : static_cast<int>(conv.x_channels);
  p.y_channels = together ? kBlockChannels : static_cast<int>(conv.y_channels);
  p.y_blocks = ceil_of(p.y_channels, kBlockChannels);
  const int super_h = ceil_of(p.h.x, p.h.stride), super_w = ceil_of(p.w.x, p.w.stride);
  p.column_tiles = ceil_of(super_w, kMostPlaces);
  p.width = ceil_of(super_w, p.column_tiles);
  p.pitch = p.width + (p.w.window - 1) * p.w.step;
  set_rows(p, 1);
  for (int tiles = super_h; tiles >= 1; --tiles) {  // evenly
    Cut trial = p;
    set_rows(trial, ceil_of(super_h, tiles));
    if (tile_bytes(trial) > kMostTile || trial.rows * p.width > kMostPlaces) break;
    p = trial;
  }
  p.row_tiles = ceil_of(super_h, p.rows);
  p.tiles = static_cast<int>(conv.batch) * p.row_tiles * p.column_tiles;
  p.by_width = FastDiv(p.width);
  p.by_pitch = FastDiv(p.pitch);
  p.by_stride = FastDiv(p.w.stride);
  p.by_channels = FastDiv(p.x_channels);
  p.last = last;
  p.whole = last && p.all_y % 8 == 0 && p.y_channels % 8 == 0 && is_aligned(conv.y.data);
  const bool even =
      last ? p.all_x % 2 == 0 && p.x_channels % 2 == 0 : p.h.x * p.w.x % 2 == 0 && p.rows * p.w.x % 2 == 0;
  p.pairs = even && p.h.stride * p.w.stride == 1 && p.column_tiles == 1 && is_aligned(conv.x.data, 4);
  p.w_o = conv.w.strides[0], p.w_i = conv.w.strides[1], p.w_h = conv.w.strides[3], p.w_w = conv.w.strides[4];
  return p;
}

}  // namespace block_gather

bool has_block_grad_input(const Conv& conv) {
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  if (h.kernel > 16 || w.kernel > 16 || (h.stride > 1 && h.dilation > 1) || (w.stride > 1 && w.dilation > 1))
    return false;
  if (h.stride > 16 || w.stride > 16 || h.stride * w.stride * conv.x_channels > kBlockChannels) return false;
  using namespace block_gather;
  const Cut p = cut_of(conv, false);
  return weight_bytes(p) <= kMostWeights && tile_bytes(p) <= kMostTile && p.rows * p.width <= kMostPlaces;
}

double block_gather_microseconds(const Conv& conv, bool last) {
  // Cycles of a multiprocessor: around a box, staging a place by chunks or by elements, a tap of 16 places, a
  // result that is not stored as one of a pair.
  // Of a block by itself: 16 y channels, a round of staging, a round of a tap over its warps.
  constexpr double kBox = 3000, kChunks = 2, kElements = 5, kTap = 8, kStored = 0.7;
  constexpr double kChannelsAlone = 1800, kStagedAlone = 70, kTapAlone = 150;
  constexpr double kProcessors = 132, kResident = 4, kPace = 1700;
  using namespace block_gather;
  const Cut p = cut_of(conv, last);
  const double places = static_cast<double>(p.box_rows) * p.pitch, taps = p.h.window * p.w.window;
  const int steps = ceil_of(p.rows * p.width, 16);
  const double stored = p.pairs ? 0 : kStored * p.rows * p.width * p.h.stride * p.w.stride * p.x_channels;
  const double box =
      kBox + stored + p.y_blocks * (places * (p.whole ? kChunks : kElements) + steps * taps * kTap);
  const double alone =
      p.y_blocks * (kChannelsAlone + places * (p.whole ? 2 : kBlockChannels) / kThreads * kStagedAlone +
                    ceil_of(steps, kWarps) * taps * kTapAlone);
  const double boxes = static_cast<double>(p.tiles) * ceil_of(p.all_x, p.x_channels);
  return std::max(boxes / kProcessors * box, std::max(1.0, boxes / (kProcessors * kResident)) * alone) /
         kPace;
}

}  // namespace retrograd::kernels::cuda
