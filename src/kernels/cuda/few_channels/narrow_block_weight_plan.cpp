// SPDX-License-Identifier: Apache-2.0
// Boxes as large as shared memory holds, evenly; parts for the multiprocessors of a large GPU. Their number
// is the order of sums: a function of the problem alone.
#include "kernels/cuda/few_channels/narrow_block_weight_plan.h"

#include <algorithm>

#include "kernels/cuda/alignment.h"
#include "kernels/cuda/counts.h"

namespace retrograd::kernels::cuda {
namespace block_weight {
namespace {

constexpr int kMostShared = 48 * 1024;  // of boxes of several rows
constexpr int kLargestRow = 96 * 1024;  // two blocks a multiprocessor
constexpr int kWantedBlocks = 132 * 4, kFewBlocks = 132 * 2;
constexpr int kFewPlaces = 128;  // larger boxes are not made where blocks are few
constexpr int64_t kMostTaps = kMostWarps * kMostOfWarp, kMostChannels = 64;

void set_rows(Cut& p, int rows, int kh) {
  p.rows = rows;
  p.box_rows = (rows - 1) * p.stride_h + (kh - 1) * p.dilation_h + 1;
  p.places = rows * p.yw;
  p.filled = ceil_of(p.places, 16) * 16;
}
}  // namespace

int64_t bytes_of(const Cut& p) {
  return std::max<int64_t>(8 * 1024, p.filled * 32 + int64_t{p.box_rows} * p.pitch * 32);
}

Cut cut_of(const Conv& conv, bool last) {
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  Cut p{};
  p.all_x = static_cast<int>(conv.groups * conv.x_channels);
  p.all_y = static_cast<int>(conv.groups * conv.y_channels);
  const bool together =
      conv.groups > 1 && conv.x_channels == conv.y_channels && kBlockChannels % conv.x_channels == 0;
  p.in_group = together ? static_cast<int>(conv.x_channels) : 1 << 20;
  p.x_in_group = static_cast<int>(conv.x_channels);
  p.x_channels = together ? kBlockChannels : static_cast<int>(conv.x_channels);
  p.y_channels = together ? kBlockChannels : static_cast<int>(conv.y_channels);
  p.o_chunks = ceil_of(p.y_channels, kBlockChannels);
  p.x_chunks = ceil_of(p.x_channels, kBlockChannels);
  p.taps = static_cast<int>(h.kernel * w.kernel);
  p.owners = ceil_of(p.taps, kMostOfWarp);
  p.of_warp = ceil_of(p.taps, p.owners) | 1;
  p.owners = ceil_of(p.taps, p.of_warp);
  p.shares = p.owners == 1 ? 4 : p.owners <= 3 ? 2 : 1;
  p.xh = static_cast<int>(h.x), p.xw = static_cast<int>(w.x);
  p.yh = static_cast<int>(h.y), p.yw = static_cast<int>(w.y);
  p.stride_h = static_cast<int>(h.stride), p.stride_w = static_cast<int>(w.stride);
  p.dilation_h = static_cast<int>(h.dilation), p.dilation_w = static_cast<int>(w.dilation);
  p.pad_h = static_cast<int>(h.pad), p.pad_w = static_cast<int>(w.pad);
  p.pitch = (p.yw - 1) * p.stride_w + static_cast<int>(w.kernel - 1) * p.dilation_w + 1;
  p.by_width = FastDiv(p.yw);
  p.by_pitch = FastDiv(p.pitch);
  p.by_kernel = FastDiv(w.kernel);
  p.last = last;
  p.x_whole = last && p.all_x % 8 == 0 && p.x_channels % 8 == 0 && is_aligned(conv.x.data);
  p.y_whole = last && p.all_y % 8 == 0 && p.y_channels % 8 == 0 && is_aligned(conv.y.data);
  p.weights = int64_t{p.all_y} * p.x_in_group * h.kernel * w.kernel;
  const int kh = static_cast<int>(h.kernel);
  const int blocks = ceil_of(p.all_x, p.x_channels) * p.o_chunks * p.x_chunks;
  set_rows(p, 1, kh);
  for (int tiles = p.yh; tiles >= 1; --tiles) {
    Cut trial = p;
    set_rows(trial, ceil_of(p.yh, tiles), kh);
    if (bytes_of(trial) > kMostShared) break;
    if (trial.places > kFewPlaces && conv.batch * tiles * blocks < kFewBlocks) break;
    p = trial;
  }
  p.row_tiles = ceil_of(p.yh, p.rows);
  p.tiles = static_cast<int>(conv.batch) * p.row_tiles;
  p.in_part = ceil_of(p.tiles, std::max(1, std::min(p.tiles, kWantedBlocks / blocks)));
  return p;
}

}  // namespace block_weight

bool has_block_grad_weight(const Conv& conv) {
  using namespace block_weight;
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  if (h.kernel > kMostTaps || w.kernel > kMostTaps || h.kernel * w.kernel > kMostTaps) return false;
  if (conv.x_channels > kMostChannels) return false;
  // Of a row, before the cut counts it with 32 bits.
  const int64_t pitch = (w.y - 1) * w.stride + (w.kernel - 1) * w.dilation + 1,
                box_rows = (h.kernel - 1) * h.dilation + 1;
  if (w.y > kLargestRow || pitch > kLargestRow || box_rows > kLargestRow ||
      (w.y + 15 + pitch * box_rows) * 32 > kLargestRow)
    return false;
  return bytes_of(cut_of(conv, false)) <= kLargestRow;
}

int64_t block_weight_parts(const Conv& conv) {
  const block_weight::Cut p = block_weight::cut_of(conv, false);
  return ceil_of(p.tiles, p.in_part);
}

double block_weight_microseconds(const Conv& conv, bool last) {
  // Cycles of a multiprocessor: staging a place by chunks or by elements, a tap of 16 places, around a box;
  // of a block by itself: a tap of 16 places, a box.
  constexpr double kChunks = 1, kElements = 2.6, kTap = 4, kStep = 20, kBox = 120;
  constexpr double kTapAlone = 330, kBoxAlone = 1200;
  constexpr double kProcessors = 132, kPace = 1700, kSummed = 4e5;
  const block_weight::Cut p = block_weight::cut_of(conv, last);
  const auto staged = [&](int places, int channels) {
    return places * (last && channels % 8 == 0 ? kChunks : kElements);
  };
  const double steps = p.filled / 16.0;
  const double box = staged(p.filled, p.all_y) + staged(p.box_rows * p.pitch, p.all_x) +
                     steps * (p.owners * (p.of_warp * kTap + kStep)) + kBox;
  const double alone = steps / p.shares * p.of_warp * kTapAlone + kBoxAlone;
  const double boxes =
      static_cast<double>(p.tiles) * ceil_of(p.all_x, p.x_channels) * p.o_chunks * p.x_chunks;
  const double parts = ceil_of(p.tiles, p.in_part);
  return std::max(boxes / kProcessors * box, p.in_part * alone) / kPace +
         static_cast<double>(p.weights) * parts * 8 / kSummed;
}

}  // namespace retrograd::kernels::cuda
