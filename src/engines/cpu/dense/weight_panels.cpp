// SPDX-License-Identifier: Apache-2.0
// Weights are turned over in blocks [m][k, tap] → [k, tap][m], straight from the caller's memory where that
// is plain FP32.
#include "engines/cpu/dense/weight_panels.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "engines/cpu/dense/cells.h"
#include "engines/cpu/gather_sides.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/taps.h"
#include "engines/cpu/task_slots.h"
#include "kernels/cpu/dense/cell_pairs.h"
#include "kernels/cpu/layout/transpose.h"

namespace retrograd::engines::cpu {
namespace {

constexpr int64_t kBlockFloats = 8192;
constexpr int64_t kWantedTasks = 8;    // of packing, so that threads share it evenly
constexpr int64_t kChannelsAhead = 2;  // fetched while one is turned over,
constexpr int64_t kRowsAhead = 4;      // or while one is copied

// Weights of the next channel lie far away, for each channel anew: the machine does not foresee them.
void fetch(const float* row, int64_t count) {
  constexpr int64_t kLineFloats = 16;
  for (int64_t i = 0; i < count; i += kLineFloats) __builtin_prefetch(row + i);
}

// The weight is [y channel][x channel in the group][taps]: forward gathers x for results y, grad_input the
// reverse.
int64_t m_stride(const problem::ConvPass& p) { return is_forward(p) ? p.w.strides[0] : p.w.strides[1]; }
int64_t k_stride(const problem::ConvPass& p) { return is_forward(p) ? p.w.strides[1] : p.w.strides[0]; }

}  // namespace

WeightPanels::WeightPanels(const problem::ConvPass& pass, const DenseBlocking& cut, int threads, bool cells,
                           int64_t partner, kernels::cpu::CellType type, bool rest)
    : pass_(pass),
      cut_(cut),
      cells_(cells),
      partner_(partner),
      type_(type),
      rest_(rest),
      taps_(taps_of(pass)),
      together_(partner == 1 && k_stride(pass) == 2),
      slots_(std::min<int64_t>(threads, cut.tasks(pass.groups))),
      panel_bytes_(part_bytes<float>(pass.groups * cut.panel_floats)) {
  const int64_t all = source_channels(pass);
  const int64_t channel = cut.width * (loads_by_tap() && packs_directly() ? 1 : taps_);
  channels_ = std::clamp<int64_t>(kBlockFloats / channel, 1, all);
  slot_bytes_ = 2 * part_bytes<float>(channel * channels_);
  const int64_t pieces = ceil_div(kWantedTasks, pass.groups * ceil_div(cut.channels, cut.width));
  piece_ = ceil_div(ceil_div(all, channels_), pieces) * channels_;
}

const float* WeightPanels::at(const float* panels, int64_t group, size_t phase, int64_t m, int64_t k) const {
  return panels + group * cut_.panel_floats + cut_.panel_start(phase, m, source_channels(pass_)) +
         k * cut_.phases[phase].taps * cut_.width_at(m);
}

WeightPanels::Tile WeightPanels::tile_at(int64_t group, int64_t m) const {
  const int64_t width = cut_.width_at(m);
  return {group, m, std::min(width, cut_.channels - m), width};
}

// One phase has all taps, in their order.
bool WeightPanels::packs_directly() const {
  return cut_.phases.size() == 1 && cut_.phases.front().taps == taps_;
}
// The channels of a tap lie side by side.
bool WeightPanels::loads_by_tap() const {
  return together_ || (taps_ > 1 && (m_stride(pass_) == 1 || k_stride(pass_) == 1));
}

int64_t WeightPanels::tasks() const {
  return pass_.groups * ceil_div(cut_.channels, cut_.width) * ceil_div(source_channels(pass_), piece_);
}

PanelFacts WeightPanels::pack(const Bindings& bindings, int64_t task, int64_t slot, float* panels,
                              bool judge) const {
  const int64_t all = source_channels(pass_), blocks = ceil_div(cut_.channels, cut_.width);
  const int64_t pieces = ceil_div(all, piece_), begin = task % pieces * piece_;
  const int64_t end = std::min(begin + piece_, all);
  const int64_t group = task / pieces / blocks, first = task / pieces % blocks * cut_.width;
  auto* scratch = reinterpret_cast<float*>(reinterpret_cast<std::byte*>(panels) + panel_bytes_ +
                                           static_cast<size_t>(slot) * slot_bytes_);
  PanelFacts facts;
  for (int64_t m = first; m < std::min(first + cut_.width, cut_.channels); m += cut_.width_at(m)) {
    for (int64_t k = begin; k < end; k += channels_)
      pack_channels(bindings, tile_at(group, m), k, std::min(channels_, end - k), scratch,
                    [&](size_t phase) { return const_cast<float*>(at(panels, group, phase, m, k)); });
    for (size_t phase = 0; phase < cut_.phases.size(); ++phase)
      look_at(at(panels, group, phase, m, begin), (end - begin) * cut_.phases[phase].taps * cut_.width_at(m),
              judge, facts);
  }
  return facts;
}

void WeightPanels::look_at(const float* panel, int64_t count, bool judge, PanelFacts& facts) const {
  if (cells_) {
    const kernels::cpu::CellFacts cells = kernels::cpu::judge_cells(panel, 0, 1, count, type_);
    facts.large &= cells.large;
    facts.finite &= cells.finite || !judge;
  } else if (judge) {
    facts.finite &= all_finite(panel, count);
  }
}

int64_t WeightPanels::block_floats(int64_t channels) const { return cut_.width * cut_.all_taps * channels; }

PanelFacts WeightPanels::pack_block(const Bindings& bindings, int64_t group, int64_t first, int64_t k,
                                    int64_t channels, float* block, float* scratch, bool judge) const {
  PanelFacts facts;
  for (int64_t m = first; m < std::min(first + cut_.width, cut_.channels); m += cut_.width_at(m)) {
    const Tile tile = tile_at(group, m);
    const auto start = [&](size_t phase) {
      return block + cut_.panel_start(phase, m, channels) - cut_.panel_start(0, first, channels);
    };
    for (int64_t c = 0; c < channels; c += channels_)
      pack_channels(bindings, tile, k + c, std::min(channels_, channels - c), scratch,
                    [&](size_t phase) { return start(phase) + c * cut_.phases[phase].taps * tile.width; });
    look_at(start(0), channels * cut_.all_taps * tile.width, judge, facts);
  }
  return facts;
}

template <class Place>
void WeightPanels::pack_channels(const Bindings& bindings, const Tile& tile, int64_t k, int64_t channels,
                                 float* scratch, const Place& place) const {
  const auto bytes = static_cast<int64_t>(size_of(pass_.w.dtype));
  const auto* base = static_cast<const std::byte*>(bindings[pass_.w.operand]);
  const bool direct = packs_directly();
  if (taps_ > 1 && m_stride(pass_) == 1 && is_plain(pass_.w, pass_.rounding))
    return copy_channels(reinterpret_cast<const float*>(base), tile, k, channels, place);
  const int64_t group = pass_.y_channels_per_group() * pass_.w.strides[0];
  const int64_t from = tile.group * (rest_ && !is_forward(pass_) ? group - partner_ : group) +
                       tile.m * m_stride(pass_) + k * k_stride(pass_);
  float* rows = direct ? place(0) : scratch + scratch_floats() / 2;
  if (tile.count < tile.width) std::fill_n(rows, channels * taps_ * tile.width, 0.0F);
  const bool rest = rest_ && k + channels == source_channels(pass_);
  if (loads_by_tap()) {
    load_taps(base + from * bytes, tile, channels, rest, scratch, rows);
  } else {
    const int64_t paired = rest ? channels - 1 : channels;
    if (paired > 0) load_channels(base + from * bytes, tile, paired, scratch, rows, partner_);
    if (rest)
      load_channels(base + (from + paired * k_stride(pass_)) * bytes, tile, 1, scratch,
                    rows + paired * taps_ * tile.width, kNoPartner);
  }
  for (size_t index = 0; !direct && index < cut_.phases.size(); ++index) {
    const DensePhase& phase = cut_.phases[index];
    float* out = place(index);
    for (int64_t c = 0; c < channels; ++c)
      for (const PhaseTap& d : phase.axes[0].taps)
        for (const PhaseTap& h : phase.axes[1].taps)
          for (const PhaseTap& w : phase.axes[2].taps) {
            const int64_t tap = (d.tap * pass_.axes[1].kernel + h.tap) * pass_.axes[2].kernel + w.tap;
            std::copy_n(rows + (c * taps_ + tap) * tile.width, tile.width, out);
            out += tile.width;
          }
  }
}

// Where the result channels of a tap lie side by side, and need no conversion: each once to its place.
template <class Place>
void WeightPanels::copy_channels(const float* weights, const Tile& tile, int64_t k, int64_t channels,
                                 const Place& place) const {
  const auto& s = pass_.w.strides;
  const int64_t ks = k_stride(pass_);
  weights += tile.group * pass_.y_channels_per_group() * s[0] + tile.m + k * ks;
  for (size_t index = 0; index < cut_.phases.size(); ++index) {
    const auto& [depth, height, width] = cut_.phases[index].axes;
    float* out = place(index);
    for (int64_t c = 0; c < channels; ++c)
      for (const PhaseTap& d : depth.taps)
        for (const PhaseTap& h : height.taps)
          for (const PhaseTap& w : width.taps) {
            const float* from = weights + c * ks + d.tap * s[2] + h.tap * s[3] + w.tap * s[4];
            if (c + kRowsAhead < channels) fetch(from + kRowsAhead * ks, tile.count);
            std::copy_n(from, tile.count, out);
            std::fill(out + tile.count, out + tile.width, 0.0F);
            out += tile.width;
          }
  }
}

// out[r·pitch + i] = the number, or cell, at source[r·step + i].
void WeightPanels::load(const std::byte* source, int64_t partner, int64_t step, int64_t rows, int64_t count,
                        float* out, int64_t pitch) const {
  if (partner != 0)
    load_cell_rows(pass_.w.dtype, source, partner, step, rows, count, out, pitch);
  else
    load_rows(pass_.w.dtype, pass_.rounding, source, step, rows, count, out, pitch);
}

// rows[channel][tap][width] of the weights at `source`.
void WeightPanels::load_channels(const std::byte* source, const Tile& tile, int64_t channels, float* scratch,
                                 float* rows, int64_t partner) const {
  const int64_t ms = m_stride(pass_), ks = k_stride(pass_), width = tile.width, m_count = tile.count;
  const bool one_run = taps_follow_each_other(pass_);
  const auto bytes = static_cast<int64_t>(size_of(pass_.w.dtype));
  if (is_plain(pass_.w, pass_.rounding) && one_run && (ks == taps_ || ms < ks)) {
    const auto* plain = reinterpret_cast<const float*>(source);
    if (ks == taps_) return kernels::cpu::transpose(plain, ms, rows, width, m_count, channels * taps_);
    for (int64_t c = 0; c < channels; ++c, rows += taps_ * width) {
      if (ms == taps_ && c + kChannelsAhead < channels)
        fetch(plain + (c + kChannelsAhead) * ks, m_count * taps_);
      if (taps_ == 1 && ms == 1)
        std::copy_n(plain + c * ks, m_count, rows);
      else
        kernels::cpu::transpose(plain + c * ks, ms, rows, width, m_count, taps_);
    }
    return;
  }
  // Conversions want long rows: all m of a channel where they follow each other, else all channels of an m.
  if (one_run && ms == taps_ && ks != taps_) {
    for (int64_t c = 0; c < channels; ++c, rows += taps_ * width) {
      load(source + c * ks * bytes, partner, 0, 1, m_count * taps_, taps_ == 1 ? rows : scratch, 0);
      if (taps_ > 1) kernels::cpu::transpose(scratch, taps_, rows, width, m_count, taps_);
    }
    return;
  }
  const auto& s = pass_.w.strides;
  const int64_t in_h = pass_.axes[1].kernel, in_w = pass_.axes[2].kernel;
  const int64_t run = one_run ? taps_ : s[4] == 1 ? in_w : 1;
  for (int64_t m = 0; m < m_count; ++m)
    for (int64_t tap = 0; tap < taps_; tap += run)
      load(
          source + (m * ms + tap / in_w / in_h * s[2] + tap / in_w % in_h * s[3] + tap % in_w * s[4]) * bytes,
          partner, ks, channels, run, scratch + m * channels * taps_ + tap, taps_);
  kernels::cpu::transpose(scratch, channels * taps_, rows, width, m_count, channels * taps_);
}

// The same where the channels of a tap lie side by side, as in channels-last weights. The last one may be the
// rest.
void WeightPanels::load_taps(const std::byte* source, const Tile& tile, int64_t channels, bool rest,
                             float* scratch, float* rows) const {
  const auto& s = pass_.w.strides;
  const int64_t ms = m_stride(pass_), ks = k_stride(pass_), pitch = taps_ * tile.width;
  const int64_t m_count = tile.count;
  const int64_t in_h = pass_.axes[1].kernel, in_w = pass_.axes[2].kernel;
  const auto bytes = static_cast<int64_t>(size_of(pass_.w.dtype));
  for (int64_t tap = 0; tap < taps_; ++tap, rows += tile.width) {
    const std::byte* from =
        source + (tap / in_w / in_h * s[2] + tap / in_w % in_h * s[3] + tap % in_w * s[4]) * bytes;
    if (ms == 1) {
      const int64_t paired = rest ? channels - 1 : channels;
      load(from, partner_, ks, paired, m_count, rows, pitch);
      if (rest) load(from + paired * ks * bytes, kNoPartner, 0, 1, m_count, rows + paired * pitch, 0);
      continue;
    }
    if (is_plain(pass_.w, pass_.rounding)) {
      kernels::cpu::transpose(reinterpret_cast<const float*>(from), ms, rows, pitch, m_count, channels);
      continue;
    }
    if (!together_) load(from, partner_, ms, m_count, channels, scratch, channels);
    for (int64_t m = 0; together_ && m < m_count; ++m) {
      scratch[(m + 1) * channels - 1] = 0;
      std::memcpy(scratch + m * channels, from + m * ms * bytes,
                  static_cast<size_t>((2 * channels - (rest ? 1 : 0)) * bytes));
    }
    kernels::cpu::transpose(scratch, channels, rows, pitch, m_count, channels);
  }
}

}  // namespace retrograd::engines::cpu
