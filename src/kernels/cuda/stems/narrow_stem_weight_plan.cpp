// SPDX-License-Identifier: Apache-2.0
// Boxes as large as shared memory holds, evenly; parts for the multiprocessors of a large GPU. Their number
// is the order of sums: a function of the problem alone.
#include "kernels/cuda/stems/narrow_stem_weight_plan.h"

#include <algorithm>

#include "kernels/cuda/alignment.h"
#include "kernels/cuda/counts.h"

namespace retrograd::kernels::cuda {
namespace stem_weight {
namespace {

constexpr int most_shared(int kh) { return (kh == 7 ? 48 : 32) * 1024; }
constexpr int wanted_blocks(int kh) { return 132 * (kh == 7 ? 3 : 6); }

void set_tile(Cut& p, int kh, int pairs, int rows, int width) {
  p.rows = rows;
  p.width = width;
  p.box_rows = (rows - 1) * p.stride_h + kh;
  p.pitch = (width - 1) * p.stride_w + 2 * pairs;
  if (kh == 1) p.box_rows = 1, p.pitch = ceil_of(rows * width, 16) * 64;  // patches: 32 bytes a place
  p.filled = ceil_of(rows * width, 16) * 16;
}
}  // namespace

int64_t bytes_of(const Cut& p, int pairs) {
  return std::max<int64_t>(kWarps * 16 * pairs * 8 * 4,
                           int64_t{p.o_blocks} * p.filled * 32 + int64_t{p.box_rows} * p.pitch * 8);
}

Cut cut_of(const Conv& conv, bool last, int kh, int pairs) {
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  Cut p{};
  p.groups = static_cast<int>(conv.groups);
  p.x_channels = static_cast<int>(conv.x_channels), p.y_channels = static_cast<int>(conv.y_channels);
  p.xh = static_cast<int>(h.x), p.xw = static_cast<int>(w.x);
  p.yh = static_cast<int>(h.y), p.yw = static_cast<int>(w.y);
  p.kw = static_cast<int>(w.kernel);
  p.stride_h = static_cast<int>(h.stride), p.stride_w = static_cast<int>(w.stride);
  p.pad_h = static_cast<int>(h.pad), p.pad_w = static_cast<int>(w.pad);
  p.weights = conv.groups * conv.y_channels * conv.x_channels * h.kernel * w.kernel;
  p.o_chunks = ceil_of(p.y_channels, 16 * kWarps);
  p.o_blocks = ceil_of(p.y_channels, 16 * p.o_chunks);
  p.shares = kWarps / p.o_blocks;
  p.last = last;
  p.whole = last && p.y_channels % 8 == 0 && is_aligned(conv.y.data);
  p.column_tiles = 1;
  set_tile(p, kh, pairs, 1, p.yw);
  while (bytes_of(p, pairs) > most_shared(kh) && p.column_tiles < p.yw)
    set_tile(p, kh, pairs, 1, ceil_of(p.yw, ++p.column_tiles));
  for (int tiles = p.yh; tiles >= 1; --tiles) {
    Cut trial = p;
    set_tile(trial, kh, pairs, ceil_of(p.yh, tiles), p.width);
    if (bytes_of(trial, pairs) > most_shared(kh)) break;
    p = trial;
  }
  p.by_width = FastDiv(p.width);
  p.by_pitch = FastDiv(p.pitch);
  p.row_tiles = ceil_of(p.yh, p.rows);
  p.column_tiles = ceil_of(p.yw, p.width);
  p.tiles = static_cast<int>(conv.batch) * p.row_tiles * p.column_tiles;
  p.in_part = ceil_of(p.tiles, std::max(1, std::min(p.tiles, wanted_blocks(kh) / (p.groups * p.o_chunks))));
  return p;
}

}  // namespace stem_weight

bool has_stem_grad_weight(const Conv& conv) {
  return stem_weight::with_window(conv, [](auto, auto) {});
}

int64_t stem_weight_parts(const Conv& conv) {
  int64_t parts = 0;
  using namespace stem_weight;
  with_window(conv, [&]<int kKh, int kPairs>(Count<kKh>, Count<kPairs>) {
    const Cut p = cut_of(conv, false, kKh, kPairs);
    parts = ceil_of(p.tiles, p.in_part);
  });
  return parts;
}

}  // namespace retrograd::kernels::cuda
