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
      channels_(std::clamp<int64_t>(kBlockFloats / (taps_ * cut.width), 1, source_channels(pass))),
      slots_(std::min<int64_t>(threads, cut.tasks(pass.groups))),
      panel_bytes_(part_bytes<float>(pass.groups * cut.panel_floats)),
      slot_bytes_(2 * part_bytes<float>(cut.width * channels_ * taps_)) {}

const float* WeightPanels::at(const float* panels, int64_t group, size_t phase, int64_t m, int64_t k) const {
  return panels + group * cut_.panel_floats + cut_.panel_start(phase, m, source_channels(pass_)) +
         k * cut_.phases[phase].taps * cut_.width_at(m);
}

WeightPanels::Tile WeightPanels::tile_at(int64_t group, int64_t m) const {
  const int64_t width = cut_.width_at(m);
  return {group, m, std::min(width, cut_.channels - m), width};
}

int64_t WeightPanels::tasks() const { return pass_.groups * ceil_div(cut_.channels, cut_.width); }

PanelFacts WeightPanels::pack(const Bindings& bindings, int64_t task, int64_t slot, float* panels,
                              bool judge) const {
  const int64_t all = source_channels(pass_), blocks = ceil_div(cut_.channels, cut_.width);
  const int64_t group = task / blocks, first = task % blocks * cut_.width;
  auto* scratch = reinterpret_cast<float*>(reinterpret_cast<std::byte*>(panels) + panel_bytes_ +
                                           static_cast<size_t>(slot) * slot_bytes_);
  PanelFacts facts;
  for (int64_t m = first; m < std::min(first + cut_.width, cut_.channels); m += cut_.width_at(m)) {
    for (int64_t k = 0; k < all; k += channels_)
      pack_channels(bindings, tile_at(group, m), k, std::min(channels_, all - k), scratch,
                    [&](size_t phase) { return const_cast<float*>(at(panels, group, phase, m, k)); });
    look_at(at(panels, group, 0, m, 0), all * cut_.all_taps * cut_.width_at(m), judge, facts);
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
  const bool direct = cut_.phases.size() == 1 && cut_.phases.front().taps == taps_;
  if (taps_ > 1 && m_stride(pass_) == 1 && is_plain(pass_.w, pass_.rounding))
    return copy_channels(reinterpret_cast<const float*>(base), tile, k, channels, place);
  const int64_t block = channels_ * taps_ * tile.width;
  const int64_t group = pass_.y_channels_per_group() * pass_.w.strides[0];
  const int64_t from = tile.group * (rest_ && !is_forward(pass_) ? group - partner_ : group) +
                       tile.m * m_stride(pass_) + k * k_stride(pass_);
  float* rows = direct ? place(0) : scratch + block;
  if (tile.count < tile.width) std::fill_n(rows, channels * taps_ * tile.width, 0.0F);
  const bool rest = rest_ && k + channels == source_channels(pass_);
  const int64_t paired = rest ? channels - 1 : channels;
  if (paired > 0) load_channels(base + from * bytes, tile, paired, scratch, rows, partner_);
  if (rest)
    load_channels(base + (from + paired * k_stride(pass_)) * bytes, tile, 1, scratch,
                  rows + paired * taps_ * tile.width, kNoPartner);
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

void WeightPanels::load(const std::byte* source, int64_t stride, int64_t count, float* out,
                        int64_t partner) const {
  if (partner != 0)
    load_cells(pass_.w.dtype, source, partner, stride, count, out);
  else
    load_row(pass_.w.dtype, pass_.rounding, source, stride, count, out);
}

// out[r·pitch + i] = source[r·step + i], i < count.
void WeightPanels::load_rows(const std::byte* source, int64_t step, int64_t rows, int64_t count, float* out,
                             int64_t pitch, int64_t partner) const {
  if (partner != 0)
    load_cell_rows(pass_.w.dtype, source, partner, step, rows, count, out, pitch);
  else
    cpu::load_rows(pass_.w.dtype, pass_.rounding, source, step, rows, count, out, pitch);
}

// rows[channel][tap][width] of the weights at `source`.
void WeightPanels::load_channels(const std::byte* source, const Tile& tile, int64_t channels, float* scratch,
                                 float* rows, int64_t partner) const {
  const int64_t ms = m_stride(pass_), ks = k_stride(pass_), width = tile.width, m_count = tile.count;
  if (is_plain(pass_.w, pass_.rounding) && taps_follow_each_other(pass_)) {
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
  if (taps_ > 1 && (ms == 1 || ks == 1)) return load_taps(source, tile, channels, scratch, rows, partner);
  const auto& s = pass_.w.strides;
  const auto bytes = static_cast<int64_t>(size_of(pass_.w.dtype));
  // Conversions want long rows: all channels of an m, or all m of a channel, where they follow each other.
  if (taps_follow_each_other(pass_) && ks == taps_) {
    for (int64_t m = 0; m < m_count; ++m)
      load(source + m * ms * bytes, 1, channels * taps_, scratch + m * channels * taps_, partner);
    return kernels::cpu::transpose(scratch, channels * taps_, rows, width, m_count, channels * taps_);
  }
  if (taps_follow_each_other(pass_) && ms == taps_) {
    for (int64_t c = 0; c < channels; ++c, rows += taps_ * width) {
      load(source + c * ks * bytes, 1, m_count * taps_, taps_ == 1 ? rows : scratch, partner);
      if (taps_ > 1) kernels::cpu::transpose(scratch, taps_, rows, width, m_count, taps_);
    }
    return;
  }
  float* out = scratch;
  for (int64_t m = 0; m < m_count; ++m)
    for (int64_t c = 0; c < channels; ++c) {
      if (taps_follow_each_other(pass_)) {
        load(source + (m * ms + c * ks) * bytes, 1, taps_, out, partner);
        out += taps_;
        continue;
      }
      for (int64_t d = 0; d < pass_.axes[0].kernel; ++d)
        for (int64_t h = 0; h < pass_.axes[1].kernel; ++h) {
          load(source + (m * ms + c * ks + d * s[2] + h * s[3]) * bytes, s[4], pass_.axes[2].kernel, out,
               partner);
          out += pass_.axes[2].kernel;
        }
    }
  kernels::cpu::transpose(scratch, channels * taps_, rows, width, m_count, channels * taps_);
}

// The same where the channels of a tap lie side by side, as in channels-last weights.
void WeightPanels::load_taps(const std::byte* source, const Tile& tile, int64_t channels, float* scratch,
                             float* rows, int64_t partner) const {
  const auto& s = pass_.w.strides;
  const int64_t ms = m_stride(pass_), ks = k_stride(pass_), pitch = taps_ * tile.width;
  const int64_t m_count = tile.count;
  const int64_t in_h = pass_.axes[1].kernel, in_w = pass_.axes[2].kernel;
  const auto bytes = static_cast<int64_t>(size_of(pass_.w.dtype));
  for (int64_t tap = 0; tap < taps_; ++tap, rows += tile.width) {
    const std::byte* from =
        source + (tap / in_w / in_h * s[2] + tap / in_w % in_h * s[3] + tap % in_w * s[4]) * bytes;
    if (ms == 1) {
      load_rows(from, ks, channels, m_count, rows, pitch, partner);
    } else if (is_plain(pass_.w, pass_.rounding)) {
      kernels::cpu::transpose(reinterpret_cast<const float*>(from), ms, rows, pitch, m_count, channels);
    } else {
      load_rows(from, ms, m_count, channels, scratch, channels, partner);
      kernels::cpu::transpose(scratch, channels, rows, pitch, m_count, channels);
    }
  }
}

}  // namespace retrograd::engines::cpu
