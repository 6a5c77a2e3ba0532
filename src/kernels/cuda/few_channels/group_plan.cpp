// SPDX-License-Identifier: Apache-2.0
// Boxes as large as registers and shared memory hold, evenly; parts for the multiprocessors of a large GPU.
// Their number is the order of sums: a function of the problem alone.
#include "kernels/cuda/few_channels/group_plan.h"

#include <algorithm>

#include "kernels/cuda/counts.h"

namespace retrograd::kernels::cuda {
namespace group_gather {
namespace {

void set_rows(Cut& p, int rows) {
  p.rows = rows;
  p.box.rows = rows + 2;
  p.box.places = p.box.rows * p.box.pitch;
}
bool fits(const Cut& p, int warps) {
  return p.box.rows * p.y.width <= warps * 64 && kWeightBytes + 2 * p.box.places * 32 <= 48 * 1024;
}

}  // namespace

Cut cut_of(const Conv& conv, int& warps) {
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  const int all = static_cast<int>(conv.groups * conv.x_channels);
  Cut p{};
  p.x = {all, static_cast<int>(h.x), static_cast<int>(w.x)};
  p.y = {all, static_cast<int>(h.y), static_cast<int>(w.y)};
  p.in_group = static_cast<int>(conv.x_channels);
  p.above = 2 - static_cast<int>(h.pad);
  p.box.pitch = p.x.width + 2;
  p.box.edge = 2 - static_cast<int>(w.pad);
  p.box.by_pitch = FastDiv(p.box.pitch);
  p.box.by_half = FastDiv(std::max(1, p.y.width / 2));
  p.by_width = FastDiv(p.x.width);
  p.w_o = conv.w.strides[0], p.w_i = conv.w.strides[1], p.w_h = conv.w.strides[3], p.w_w = conv.w.strides[4];
  set_rows(p, p.x.height);
  warps = fits(p, 4) ? 4 : 8;
  for (int tiles = 1; !fits(p, warps) && p.rows > 1; ++tiles) set_rows(p, ceil_of(p.x.height, tiles));
  p.row_tiles = ceil_of(p.x.height, p.rows);
  p.tiles = static_cast<int>(conv.batch) * p.row_tiles;
  return p;
}

}  // namespace group_gather

namespace group_weight {
namespace {

constexpr int kMostShared = 72 * 1024;

void set_rows(Cut& p, int rows) {
  p.rows = rows;
  p.y_box.rows = rows;
  p.y_box.places = ceil_of(rows * p.y.width, 16) * 16;
  p.x_box.rows = rows + 2;
  p.x_box.places = p.x_box.rows * p.x_box.pitch;
}
}  // namespace

int bytes_of(const Cut& p, int warps) {
  return std::max(2 * (p.y_box.places + p.x_box.places) * 32, warps * 3 * 1024);
}

namespace {

bool fits(const Cut& p, int warps) {
  return p.x_box.rows * std::max(p.x.width, p.y.width) <= warps * 64 && bytes_of(p, warps) <= kMostShared;
}

}  // namespace

Cut cut_of(const Conv& conv, bool last, int& warps) {
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  const int all = static_cast<int>(conv.groups * conv.x_channels);
  Cut p{};
  p.x = {all, static_cast<int>(h.x), static_cast<int>(w.x)};
  p.y = {all, static_cast<int>(h.y), static_cast<int>(w.y)};
  p.in_group = static_cast<int>(conv.x_channels);
  p.above = static_cast<int>(h.pad);
  p.y_box.pitch = p.y.width;
  p.y_box.edge = 0;
  p.x_box.pitch = p.y.width + 2;
  p.x_box.edge = static_cast<int>(w.pad);
  p.y_box.by_pitch = p.by_width = FastDiv(p.y.width);
  p.x_box.by_pitch = FastDiv(p.x_box.pitch);
  p.y_box.by_half = FastDiv(std::max(1, p.y.width / 2));
  p.x_box.by_half = FastDiv(std::max(1, p.x.width / 2));
  set_rows(p, p.y.height);
  warps = fits(p, 4) ? 4 : 8;
  for (int tiles = 1; !fits(p, warps) && p.rows > 1; ++tiles) set_rows(p, ceil_of(p.y.height, tiles));
  p.row_tiles = ceil_of(p.y.height, p.rows);
  p.tiles = static_cast<int>(conv.batch) * p.row_tiles;
  const int wanted = 132 * blocks_at_once(warps, last) / (all / 16);
  p.in_part = ceil_of(p.tiles, std::max(1, std::min(p.tiles, wanted)));
  return p;
}

}  // namespace group_weight

bool has_group_blocks(const Conv& conv, bool channels_last) {
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  if (conv.groups == 1 || conv.x_channels != conv.y_channels || conv.x_channels > 16 ||
      16 % conv.x_channels != 0 || conv.groups * conv.x_channels % 16 != 0)
    return false;
  for (const Axis& a : {h, w})
    if (a.kernel != 3 || a.stride != 1 || a.dilation != 1 || a.pad < 0 || a.pad > 2) return false;
  // Planes are read and written two places at a time.
  if (!channels_last && (w.x % 2 != 0 || w.y % 2 != 0)) return false;
  return true;
}

bool has_group_grad_input(const Conv& conv, bool channels_last) {
  if (!has_group_blocks(conv, channels_last)) return false;
  int warps = 0;
  const group_gather::Cut p = group_gather::cut_of(conv, warps);
  return group_gather::fits(p, warps);
}

bool has_group_grad_weight(const Conv& conv, bool channels_last) {
  if (!has_group_blocks(conv, channels_last)) return false;
  int warps = 0;
  const group_weight::Cut p = group_weight::cut_of(conv, channels_last, warps);
  return group_weight::fits(p, warps);
}

int64_t group_weight_parts(const Conv& conv, bool channels_last) {
  int warps = 0;
  const group_weight::Cut p = group_weight::cut_of(conv, channels_last, warps);
  return ceil_of(p.tiles, p.in_part);
}

int64_t group_part_floats(const Conv& conv) { return conv.groups * conv.x_channels * 144; }

}  // namespace retrograd::kernels::cuda
