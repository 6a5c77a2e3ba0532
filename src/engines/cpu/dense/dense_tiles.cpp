// SPDX-License-Identifier: Apache-2.0
// Rows of a tile are neighbours along W that have the same live taps, neighbours along H where few along W
// have, or images at one pixel.
#include "engines/cpu/dense/dense_tiles.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "kernels/cpu/dense/cell_pairs.h"

namespace retrograd::engines::cpu {

// Positions of the box that this phase has.
int64_t DenseTiles::count(size_t axis) const {
  return std::clamp<int64_t>(phase_.axes[axis].count - task_.box.first[axis + 1], 0,
                             task_.box.size[axis + 1]);
}

int64_t DenseTiles::place(size_t axis, int64_t j) const {
  return ((task_.box.first[axis + 1] + j) * phase_.axes[axis].source_step - task_.start[axis]) *
         source_.axis[axis];
}

TapRange DenseTiles::taps(size_t axis, int64_t j) const {
  if (!cut_.skips_dead_taps[axis] && !task_.masked)
    return {0, static_cast<int64_t>(phase_.axes[axis].taps.size())};
  return live_range(phase_.axes[axis], task_.box.first[axis + 1] + j);
}

// Taps of W that are live anywhere from position j to the last of `count`.
TapRange DenseTiles::taps_of_w(int64_t j, int64_t count) const {
  const int64_t first = task_.box.first[3] + j;
  const TapRange left = live_range(phase_.axes[2], first);
  if (cut_.skips_dead_taps[2] || task_.masked ||
      left.last - left.first == static_cast<int64_t>(phase_.axes[2].taps.size()))
    return left;
  const TapRange right = live_range(phase_.axes[2], first + count - 1);
  if (left.first == left.last || right.first == right.last)
    return {0, static_cast<int64_t>(phase_.axes[2].taps.size())};
  return {std::min(left.first, right.first), std::max(left.last, right.last)};
}

void DenseTiles::run(const DensePanel& panel, int64_t channels, bool accumulate, const float* start,
                     float* sums) {
  panel_ = panel;
  sums_ = sums;
  tile_.width = panel.width;
  tile_.offsets = offsets_;
  tile_.start = start;
  tile_.b = panel.first;
  channels_ = channels;
  listed_from_ = -1;
  accumulate_ = accumulate;
  const int64_t images = task_.box.size[0];
  for (int64_t n = 0; n < (cut_.images_inside ? 1 : images); ++n)
    for (int64_t z = 0; z < count(0); ++z)
      for (int64_t y = 0; y < count(1);) {
        d_taps_ = taps(0, z);
        h_taps_ = taps(1, y);
        const float* at = source_.first + n * source_.image + place(0, z) + place(1, y);
        const int64_t position = ((n * task_.box.size[1] + z) * task_.box.size[2] + y) * task_.box.size[3];
        if (two_rows_fit(y)) {
          run_two_rows(at, at + place(1, y + 1) - place(1, y), position);
          y += 2;
        } else {
          const int64_t height = rows_alike(y);
          run_area(at, height, position);
          y += height;
        }
      }
}

// Rows from y on that have the same live taps, and may share a tile.
int64_t DenseTiles::rows_alike(int64_t y) const {
  int64_t rows = 1;
  if ((panel_.in_registers && !task_.masked) || cut_.images_inside) return rows;
  while (y + rows < count(1) && taps(1, y + rows) == h_taps_) ++rows;
  return rows;
}

// Whether the rows y and y + 1 are so short that they are one product of tile registers.
bool DenseTiles::two_rows_fit(int64_t y) const {
  return panel_.in_registers && !cut_.images_inside && y + 1 < count(1) && count(2) > 0 &&
         count(2) <= kernels::cpu::kRegisterRows && count(2) == task_.box.size[3] && cuts().size() == 2 &&
         phase_.taps <= kTapsAtOnce && taps(1, y) == taps(1, y + 1);
}

void DenseTiles::run_two_rows(const float* upper, const float* lower, int64_t position) {
  const int64_t rows = count(2);
  if (list_taps({d_taps_, h_taps_, taps(2, 0)}, 0) == 0) {
    run_area(upper, 1, position);
    return run_area(lower, 1, position + rows);
  }
  tile_.set_strided_rows(upper + place(2, 0), phase_.axes[2].source_step * source_.axis[2], rows);
  tile_.a[1] = lower + place(2, 0);
  tile_.rows = static_cast<int>(2 * rows);
  tile_.c_stride = task_.sum_stride;
  tile_.c = sums_ + position * task_.sum_stride;
  tile_.accumulate = accumulate_;
  registers_.product(tile_, static_cast<int>(rows));
}

// Neighbours along W, in runs of equal live taps. A run of a few, at a border, would be tiles of too few
// rows: there a tile goes down a column.
void DenseTiles::run_area(const float* at, int64_t height, int64_t position) {
  const int64_t begin = task_.box.first[3], end = begin + count(2), pitch = task_.box.size[3];
  const int64_t down = phase_.axes[1].source_step * source_.axis[1];
  const int64_t step = phase_.axes[2].source_step * source_.axis[2];
  const std::span<const int64_t> cuts = this->cuts();
  for (size_t i = 1; i < cuts.size(); ++i) {
    int64_t x = std::max(cuts[i - 1], begin) - begin;
    const int64_t stop = std::min(cuts[i], end) - begin;
    if (x >= stop) continue;
    if (cut_.images_inside) {
      run_images(x, stop, at, position);
    } else if (stop - x < std::min(height, kLongColumn)) {
      for (; x < stop; ++x) run_line(x, {at + place(2, x), down, position + x, pitch, height, false});
    } else {
      for (int64_t y = 0; y < height; ++y)
        run_line(x, {at + y * down + place(2, x), step, position + y * pitch + x, 1, stop - x, true});
    }
  }
}

// Images of one place after the other, as if they were neighbours where they lie so.
void DenseTiles::run_images(int64_t x, int64_t stop, const float* at, int64_t position) {
  const int64_t images = task_.box.size[0];
  const bool joined = phase_.axes[2].source_step * source_.axis[2] == images * source_.image;
  for (const int64_t count = joined ? stop - x : 1; x < stop; x += count)
    run_line(x, {at + place(2, x), source_.image, (position + x) * images, 1, count * images, false});
}

void DenseTiles::run_line(int64_t x, Line line) {
  tile_.c_stride = line.position_step * task_.sum_stride;
  tile_.c = sums_ + line.position * task_.sum_stride;
  // Whether the live taps change from tile to tile.
  const bool changes = line.along_w && !cut_.skips_dead_taps[2] && !task_.masked;
  const int64_t most = panel_.in_registers ? 0 : cut_.vectors.tile_rows(tile_.width, line.step);
  std::array<TapRange, 3> ranges{d_taps_, h_taps_, {}};
  int64_t live = -1;
  for (int64_t rows; line.count > 0; line.count -= rows, line.at += rows * line.step,
                                     x += line.along_w ? rows : 0, tile_.c += rows * tile_.c_stride) {
    if (panel_.in_registers) {
      rows = kernels::cpu::next_register_rows(line.count);
      tile_.set_strided_rows(line.at, line.step, rows);
    } else {
      rows = line.count >= 2 * most ? most : cut_.vectors.next_tile_rows(line.count, tile_.width, line.step);
      tile_.set_rows(line.at, line.step, rows);
    }
    if (changes || live < 0) {
      ranges[2] = taps_of_w(x, line.along_w ? rows : 1);
      live = list_taps(ranges, 0);
    }
    if (live == 0) {
      if (!accumulate_) begin_rows(rows);
      continue;
    }
    for (int64_t from = 0; from < live; from += kTapsAtOnce) {
      if (live > kTapsAtOnce) list_taps(ranges, from);
      tile_.accumulate = accumulate_ || from > 0;
      multiply();
    }
  }
}

// Results that nothing is added to.
void DenseTiles::begin_rows(int64_t rows) const {
  const size_t bytes = static_cast<size_t>(panel_.width) * sizeof(float);
  for (int64_t i = 0; i < rows; ++i) {
    void* const row = tile_.c + i * tile_.c_stride;  // at any byte
    tile_.start != nullptr ? std::memcpy(row, tile_.start, bytes) : std::memset(row, 0, bytes);
  }
}

void DenseTiles::multiply() {
  if (panel_.in_registers)
    registers_.product(tile_);
  else if (panel_.of_cells)
    kernels::cpu::bf16_tile_product(tile_);
  else
    kernels::cpu::tile_product(tile_);
}

// Source channels whose `taps` live taps make one list: a list of few is over before the multipliers are
// busy. Weights that are read in place serve so few positions that a list takes longer than it saves.
int64_t DenseTiles::channels_in_list(int64_t taps) const {
  constexpr int64_t kLongList = 64;
  if (panel_.in_registers || panel_.one_tap || taps == 0) return 1;
  int64_t channels = std::clamp<int64_t>(kLongList / taps, 1, channels_);
  while (channels_ % channels != 0) --channels;
  return channels;
}

// Unless they are the last ones again.
int64_t DenseTiles::list_taps(const std::array<TapRange, 3>& ranges, int64_t from) {
  if (from == listed_from_ && ranges == listed_) return live_;
  listed_ = ranges;
  listed_from_ = from;
  const auto &d = phase_.axes[0].taps, &h = phase_.axes[1].taps, &w = phase_.axes[2].taps;
  const auto size = [](const TapRange& r) { return r.last - r.first; };
  const int64_t h_size = size(ranges[1]), w_size = size(ranges[2]);
  live_ = size(ranges[0]) * h_size * w_size;
  int64_t count = 0;
  for (int64_t i = from; i < live_ && count < kTapsAtOnce;) {
    const int64_t b = ranges[1].first + i / w_size % h_size, a = ranges[0].first + i / w_size / h_size;
    const int64_t row = d[static_cast<size_t>(a)].offset * source_.axis[0] +
                        h[static_cast<size_t>(b)].offset * source_.axis[1];
    const int64_t b_row = (a * static_cast<int64_t>(h.size()) + b) * static_cast<int64_t>(w.size());
    for (int64_t c = ranges[2].first + i % w_size; c < ranges[2].last && count < kTapsAtOnce; ++c, ++i) {
      offsets_[count] = row + w[static_cast<size_t>(c)].offset * source_.axis[2];
      b_offsets_[count++] = (b_row + c) * panel_.width;
    }
  }
  const bool in_order = count == phase_.taps && !panel_.one_tap;
  tile_.b_offsets = in_order ? nullptr : b_offsets_;
  const int64_t channels = channels_in_list(live_);
  const int64_t b_channel = panel_.one_tap ? panel_.k_stride : phase_.taps * panel_.width;
  for (int64_t i = count; i < channels * count; ++i) {
    offsets_[i] = offsets_[i - count] + source_.channel;
    b_offsets_[i] = b_offsets_[i - count] + b_channel;
  }
  tile_.inner = channels * count;
  tile_.outer = channels_ / channels;
  tile_.outer_stride = channels * source_.channel;
  tile_.b_outer_stride = channels * b_channel;
  return live_;
}

}  // namespace retrograd::engines::cpu
