// SPDX-License-Identifier: Apache-2.0
// Rows of a tile are neighbours along W that have the same live taps, neighbours along H where few along W
// have, or images at one pixel.
#include "engines/cpu/dense/dense_tiles.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "engines/cpu/rows.h"
#include "kernels/cpu/dense/cell_pairs.h"

namespace retrograd::engines::cpu {
namespace {

constexpr int64_t kMostWidth = 32;  // of a tile

}  // namespace

DenseTiles::DenseTiles(const DenseBlocking& cut, const DensePhase& phase, const DenseTask& task,
                       const DenseSource& source, const SumPlaces& sums, const SumPlaces& results,
                       kernels::cpu::CellType type)
    : cut_(cut),
      phase_(phase),
      task_(task),
      source_(source),
      whole_{0, phase.axes[2].count},
      image_{source.image, sums.image, results.image},
      registers_(type) {
  for (size_t i = 0; i < 3; ++i) {
    axis_[i] = {phase.axes[i].source_step * source.axis[i], sums.axis[i], results.axis[i]};
    first_.source += task.box.first[i + 1] * axis_[i].source - task.start[i] * source.axis[i];
  }
}

// Positions of the box that this phase has.
int64_t DenseTiles::count(size_t axis) const {
  return std::clamp<int64_t>(phase_.axes[axis].count - task_.box.first[axis + 1], 0,
                             task_.box.size[axis + 1]);
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

void DenseTiles::run(std::span<const DensePanel> panels, int64_t channels, bool accumulate) {
  panels_ = panels;
  tile_.offsets = offsets_;
  channels_ = channels;
  listed_from_ = -1;
  accumulate_ = accumulate;
  for (int64_t z = 0; z < count(0); ++z)
    for (int64_t y = 0; y < count(1);) {
      d_taps_ = taps(0, z);
      h_taps_ = taps(1, y);
      const Place place = first_ + z * axis_[0] + y * axis_[1];
      const bool two = two_rows_fit(y);
      const int64_t height = two ? 2 : rows_alike(y);
      two ? run_two_rows(place) : run_area(place, height);
      y += height;
    }
}

// Rows from y on that have the same live taps, and may share a tile.
int64_t DenseTiles::rows_alike(int64_t y) const {
  int64_t rows = 1;
  if ((panels_.front().in_registers && !task_.masked) || cut_.images_inside) return rows;
  while (y + rows < count(1) && taps(1, y + rows) == h_taps_) ++rows;
  return rows;
}

// Whether the rows y and y + 1 are so short that they are one product of tile registers.
bool DenseTiles::two_rows_fit(int64_t y) const {
  return panels_.front().in_registers && !cut_.images_inside && y + 1 < count(1) && count(2) > 0 &&
         count(2) <= kernels::cpu::kRegisterRows && count(2) == task_.box.size[3] && cuts().size() == 2 &&
         phase_.taps <= kTapsAtOnce && taps(1, y) == taps(1, y + 1);
}

void DenseTiles::run_two_rows(const Place& upper) {
  const int64_t rows = count(2);
  const DensePanel& panel = panels_.front();
  if (list_taps(panel, {d_taps_, h_taps_, taps(2, 0)}, 0) == 0) {
    run_area(upper, 1);
    return run_area(upper + axis_[1], 1);
  }
  for (int64_t n = 0; n < task_.box.size[0]; ++n) {
    sum_step_ = axis_[2].sum;
    select(panel, (upper + n * image_).sum, 0);
    tile_.set_strided_rows(source_.first + (upper + n * image_).source, axis_[2].source, rows);
    tile_.a[1] = tile_.a[0] + axis_[1].source;
    tile_.rows = static_cast<int>(2 * rows);
    tile_.start = accumulate_ ? sums_ : panel.start;
    tile_.start_stride = accumulate_ ? sum_step_ : 0;
    tile_.c = sums_;
    tile_.c_stride = sum_step_;
    registers_.product(tile_, static_cast<int>(rows));
  }
}

// Neighbours along W, in runs of equal live taps, of one image after the other. A run of a few, at a border,
// would be tiles of too few rows: there a tile goes down a column.
void DenseTiles::run_area(const Place& first, int64_t height) {
  const int64_t begin = task_.box.first[3], end = begin + count(2);
  const std::span<const int64_t> cuts = this->cuts();
  for (size_t i = 1; i < cuts.size(); ++i) {
    const int64_t x = std::max(cuts[i - 1], begin) - begin, stop = std::min(cuts[i], end) - begin;
    if (x >= stop) continue;
    if (cut_.images_inside) {
      run_images(x, stop, first);
      continue;
    }
    const bool columns = stop - x < std::min(height, kLongColumn);
    for (int64_t n = 0; n < task_.box.size[0]; ++n) {
      const Place image = first + n * image_;
      for (int64_t c = x; columns && c < stop; ++c) {
        const Place at = image + c * axis_[2];
        run_line(c, at.source, at.sum, at.result, axis_[1], height, false);
      }
      for (int64_t y = 0; !columns && y < height; ++y) {
        const Place at = image + y * axis_[1] + x * axis_[2];
        run_line(x, at.source, at.sum, at.result, axis_[2], stop - x, true);
      }
    }
  }
}

// Images of one place after the other, as if they were neighbours where they lie so.
void DenseTiles::run_images(int64_t x, int64_t stop, const Place& first) {
  const int64_t images = task_.box.size[0];
  const bool joined = axis_[2].source == images * image_.source;
  for (const int64_t count = joined ? stop - x : 1; x < stop; x += count) {
    const Place at = first + x * axis_[2];
    run_line(x, at.source, at.sum, at.result, image_, count * images, false);
  }
}

void DenseTiles::run_line(int64_t x, int64_t source, int64_t sum, int64_t result, const Place& line_step,
                          int64_t count, bool along_w) {
  const DensePanel& widest = panels_.front();
  const bool several = panels_.size() > 1;
  const int64_t step = line_step.source;
  // Whether the live taps change from tile to tile.
  const bool changes = along_w && !cut_.skips_dead_taps[2] && !task_.masked;
  const int64_t most = widest.in_registers ? 0 : cut_.vectors.tile_rows(widest.width, step);
  std::array<TapRange, 3> ranges{d_taps_, h_taps_, {}};
  int64_t live = -1;
  const float* at = source_.first + source;
  sum_step_ = line_step.sum;
  tile_.rounded_stride = result_step_ = line_step.result;
  for (int64_t i = 0, rows = 0; i < count; i += rows) {
    const int64_t left = count - i;
    if (widest.in_registers) {
      rows = kernels::cpu::next_register_rows(left);
      tile_.set_strided_rows(at, step, rows);
    } else {
      rows = left >= 2 * most ? most : left > most ? (left + 1) / 2 : left;
      tile_.set_rows(at, step, rows);
    }
    if (changes || live < 0) {
      ranges[2] = taps_of_w(x + i, along_w ? rows : 1);
      live = list_taps(widest, ranges, 0);
    }
    for (const DensePanel& panel : panels_) {
      if (several || i == 0) select(panel, sum, result);
      if (several && tile_.b_offsets != nullptr) list_taps(panel, ranges, 0);
      live == 0 ? begin_rows(panel) : multiply(panel, ranges);
    }
    at += rows * step;
    sum += rows * line_step.sum;
    result += rows * line_step.result;
    sums_ += rows * line_step.sum;
    if (results_ != nullptr) results_ += rows * line_step.result;
    if (rounded_ != nullptr) rounded_ += rows * line_step.result;
  }
}

// The panel, and where its sums and results belong.
void DenseTiles::select(const DensePanel& panel, int64_t sum, int64_t result) {
  tile_.width = panel.width;
  tile_.b = panel.first;
  sums_ = panel.sums + sum;
  results_ = panel.results == nullptr ? nullptr : panel.results + result;
  rounded_ = panel.rounded == nullptr ? nullptr : panel.rounded + result;
}

// A tile, in as many turns as its taps take. The last one leaves the sums among the results where the panel
// has some.
void DenseTiles::multiply(const DensePanel& panel, const std::array<TapRange, 3>& ranges) {
  for (int64_t from = 0; from < live_; from += kTapsAtOnce) {
    if (live_ > kTapsAtOnce) list_taps(panel, ranges, from);
    const bool first = from == 0 && !accumulate_, last = from + kTapsAtOnce >= live_;
    tile_.start = first ? panel.start : sums_;
    tile_.start_stride = first ? 0 : sum_step_;
    tile_.rounded = last ? rounded_ : nullptr;
    const bool direct = last && results_ != nullptr;
    tile_.c = direct ? results_ : sums_;
    tile_.c_stride = direct ? result_step_ : sum_step_;
    tile_.columns = tile_.rounded != nullptr || (direct && panel.columns < panel.width) ? panel.columns : 0;
    if (panel.in_registers)
      registers_.product(tile_);
    else if (panel.of_cells)
      kernels::cpu::bf16_tile_product(tile_);
    else
      kernels::cpu::tile_product(tile_);
  }
}

// Results that nothing is added to.
void DenseTiles::begin_rows(const DensePanel& panel) const {
  std::array<float, kMostWidth> row{};
  if (panel.start != nullptr) std::copy_n(panel.start, panel.width, row.data());
  const auto set = [&](const void* from, void* to, int64_t step, size_t bytes) {  // at any byte
    for (int64_t i = 0; i < tile_.rows; ++i) std::memcpy(static_cast<std::byte*>(to) + i * step, from, bytes);
  };
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float)),
                 kRounded = static_cast<int64_t>(sizeof(uint16_t));
  if (results_ != nullptr) {
    set(row.data(), results_, result_step_ * kFloat, static_cast<size_t>(panel.columns * kFloat));
  } else if (rounded_ != nullptr) {
    std::array<std::byte, kMostWidth * kRounded> codes;
    store_row(DType::kBF16, codes.data(), 1, row.data(), 1, panel.columns);
    set(codes.data(), rounded_, result_step_ * kRounded, static_cast<size_t>(panel.columns * kRounded));
  } else if (!accumulate_) {
    set(row.data(), sums_, sum_step_ * kFloat, static_cast<size_t>(panel.width * kFloat));
  }
}

// Source channels whose `taps` live taps make one list: a list of few is over before the multipliers are
// busy. Weights that are read in place serve so few positions that a list takes longer than it saves.
int64_t DenseTiles::channels_in_list(const DensePanel& panel, int64_t taps) const {
  constexpr int64_t kLongList = 64;
  if (panel.in_registers || panel.one_tap || taps == 0) return 1;
  int64_t channels = std::clamp<int64_t>(kLongList / taps, 1, channels_);
  while (channels_ % channels != 0) --channels;
  return channels;
}

// Unless they are the last ones again.
int64_t DenseTiles::list_taps(const DensePanel& panel, const std::array<TapRange, 3>& ranges, int64_t from) {
  const bool same = from == listed_from_ && ranges == listed_;
  if (same && (tile_.b_offsets == nullptr || panel.width == listed_width_)) return live_;
  listed_ = ranges;
  listed_width_ = panel.width;
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
      b_offsets_[count++] = (b_row + c) * panel.width;
    }
  }
  const bool in_order = count == phase_.taps && !panel.one_tap;
  tile_.b_offsets = in_order ? nullptr : b_offsets_;
  const int64_t channels = channels_in_list(panel, live_);
  const int64_t b_channel = panel.one_tap ? panel.k_stride : phase_.taps * panel.width;
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
