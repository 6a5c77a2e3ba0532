// SPDX-License-Identifier: Apache-2.0
// result[n, m, place(j)] = Σ_k Σ_t source[n, k, j·source_step + offset(t)] · weight[k, m, t]
//
// A task is one box of positions of one group. For each block of source channels it copies a zero-padded
// strip, then runs all tiles of 6 positions × `width` result channels over it; sums of the box stay in a
// buffer [position][m] until the last block is done. Packed weights of one block (16 KiB) stay in L1 while
// the tiles pass, strip and sums in L2.
//
// Zero padding multiplies a weight by 0 where the mathematics skips it. That is the same unless the weight is
// not finite: weights are looked at while they are packed, and a pass with such a weight is left to the
// reference.
#include "engines/cpu/dense_gather.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/checked.h"
#include "engines/cpu/gather_sides.h"
#include "engines/cpu/limits.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/task_slots.h"
#include "engines/reference/reference.h"
#include "kernels/cpu/tile_product.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;
using problem::ConvPassKind;
using problem::PassTensor;

constexpr int64_t kPanelFloatsInL1 = 4096;
constexpr int64_t kSumFloatsInL2 = 65536;
constexpr int64_t kStripFloats =
    1 << 18;  // a megabyte; wide dilation makes planes that allow one channel only
constexpr int64_t kFewestPositions = 48;  // a box shorter than this spends its time reading weights
constexpr int64_t kWantedTasks = 16;      // enough for the threads to share evenly
constexpr size_t kMostPhases = 4096;

int64_t padded_channels(const ConvPass& p, int64_t width) {
  return ceil_div(result_channels(p), width) * width;
}

void finish_phase(const ConvPass& p, int64_t width, GatherPhase& phase) {
  const auto& [d, h, w] = phase.axes;
  phase.taps = static_cast<int64_t>(d.taps.size() * h.taps.size() * w.taps.size());
  const Positions total{p.batch, d.count, h.count, w.count};
  const int64_t per_task = ceil_div(count_of(total) * p.groups, kWantedTasks);
  phase.grid = cut_into_boxes(
      total, std::max(kFewestPositions, std::min(per_task, kSumFloatsInL2 / padded_channels(p, width))));
  if (phase.taps == 0) return;
  for (size_t axis = 0; axis < 3; ++axis) {
    const AxisPhase& a = phase.axes[axis];
    phase.extent[axis] =
        (phase.grid.box[axis + 1] - 1) * a.source_step + a.highest_offset() - a.lowest_offset() + 1;
  }
  const int64_t plane = phase.grid.box[0] * phase.extent[0] * phase.extent[1] * phase.extent[2];
  const int64_t channels = std::min(kPanelFloatsInL1 / (phase.taps * width), kStripFloats / plane);
  phase.channels_per_block = std::clamp<int64_t>(channels, 1, std::max<int64_t>(source_channels(p), 1));
  for (const PhaseTap& td : d.taps)
    for (const PhaseTap& th : h.taps)
      for (const PhaseTap& tw : w.taps)
        phase.offsets.push_back(
            ((td.offset - d.lowest_offset()) * phase.extent[1] + th.offset - h.lowest_offset()) *
                phase.extent[2] +
            tw.offset - w.lowest_offset());
  phase.panel_floats = padded_channels(p, width) * source_channels(p) * phase.taps;
}

class DenseGatherStep final : public Step {
 public:
  explicit DenseGatherStep(const ConvPass& pass)
      : pass_(pass),
        width_(kernels::cpu::tile_width()),
        phases_(plan_gather(pass, width_)),
        slots_(runtime::ThreadPool::instance().threads()),
        reference_(reference::candidate().make_step(pass)) {
    size_t panels = 0;
    int64_t sums = 0, strip = 0, bases = 0;
    for (const GatherPhase& phase : phases_) {
      first_task_.push_back(tasks_);
      tasks_ += phase.grid.count() * pass.groups;
      panel_start_.push_back(panels);
      panels += static_cast<size_t>(phase.panel_floats * pass.groups);
      const int64_t positions = count_of(phase.grid.box);
      sums = std::max(sums, positions * padded_channels(pass, width_));
      bases = std::max(bases, positions);
      strip = std::max(strip, phase.grid.box[0] * phase.channels_per_block * phase.extent[0] *
                                  phase.extent[1] * phase.extent[2]);
      for (const AxisPhase& axis : phase.axes) leaves_source_ |= phase.taps > 0 && axis.leaves_source();
    }
    panel_bytes_ = part_bytes<float>(static_cast<int64_t>(panels));
    sum_bytes_ = part_bytes<float>(sums);
    strip_bytes_ = part_bytes<float>(strip);
    slot_bytes_ = sum_bytes_ + strip_bytes_ + part_bytes<int64_t>(bases);
  }

  size_t workspace_bytes() const override {
    const auto slots = static_cast<size_t>(std::min<int64_t>(slots_, tasks_));
    return panel_bytes_ + slots * slot_bytes_;
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    if (!pack_weights(bindings, reinterpret_cast<float*>(workspace), *context.pool) && leaves_source_)
      return reference_->run(bindings, workspace, context);
    run_tasks(*context.pool, tasks_, slots_, [&](int64_t task, int64_t slot) {
      const auto phase = static_cast<size_t>(std::upper_bound(first_task_.begin(), first_task_.end(), task) -
                                             first_task_.begin() - 1);
      const int64_t within = task - first_task_[phase];
      const int64_t boxes = phases_[phase].grid.count();
      run_box(bindings, phase, within / boxes, within % boxes, reinterpret_cast<const float*>(workspace),
              workspace + panel_bytes_ + static_cast<size_t>(slot) * slot_bytes_);
    });
  }

 private:
  // panels[phase][group][m block][k][tap][width]; whether all weights are finite.
  bool pack_weights(const Bindings& bindings, float* panels, runtime::ThreadPool& pool) const {
    const int64_t blocks = padded_channels(pass_, width_) / width_;
    std::atomic<bool> finite{true};
    for (size_t i = 0; i < phases_.size(); ++i) {
      const GatherPhase& phase = phases_[i];
      if (phase.taps == 0) continue;
      const int64_t block_floats = phase.panel_floats / blocks;
      pool.parallel_for(pass_.groups * blocks, std::max<int64_t>(1, 16384 / block_floats),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t block = begin; block < end; ++block) {
                            float* out = panels + panel_start_[i] + static_cast<size_t>(block * block_floats);
                            pack_block(bindings, phase, block / blocks, block % blocks, out);
                            if (!all_finite(out, block_floats))
                              finite.store(false, std::memory_order_relaxed);
                          }
                        });
    }
    return finite;
  }

  void pack_block(const Bindings& bindings, const GatherPhase& phase, int64_t group, int64_t block,
                  float* out) const {
    const auto& s = pass_.w.strides;
    const auto bytes = static_cast<int64_t>(size_of(pass_.w.dtype));
    const auto* base = static_cast<const std::byte*>(bindings[pass_.w.operand]);
    // The weight is [y channel][x channel in the group][taps]: forward gathers x for results y, grad_input
    // the reverse.
    const bool forward = is_forward(pass_);
    const int64_t m_stride = forward ? s[0] : s[1], k_stride = forward ? s[1] : s[0];
    const int64_t m_first = block * width_, m_count = std::min(width_, result_channels(pass_) - m_first);
    const int64_t group_offset = group * pass_.y_channels_per_group() * s[0];
    for (int64_t k = 0; k < source_channels(pass_); ++k)
      for (const PhaseTap& td : phase.axes[0].taps)
        for (const PhaseTap& th : phase.axes[1].taps)
          for (const PhaseTap& tw : phase.axes[2].taps) {
            const int64_t at = group_offset + m_first * m_stride + k * k_stride + td.tap * s[2] +
                               th.tap * s[3] + tw.tap * s[4];
            load_row(pass_.w.dtype, pass_.rounding, base + at * bytes, m_stride, m_count, out);
            std::fill(out + m_count, out + width_, 0.0F);
            out += width_;
          }
  }

  void run_box(const Bindings& bindings, size_t index, int64_t group, int64_t box_index, const float* panels,
               std::byte* scratch) const {
    const GatherPhase& phase = phases_[index];
    const BoxGrid::Box box = phase.grid.at(box_index);
    auto* sums = reinterpret_cast<float*>(scratch);
    auto* strip = reinterpret_cast<float*>(scratch + sum_bytes_);
    auto* bases = reinterpret_cast<int64_t*>(scratch + sum_bytes_ + strip_bytes_);
    const int64_t padded = padded_channels(pass_, width_);
    const int64_t positions = count_of(box.size);
    if (phase.taps == 0) {
      std::fill_n(sums, positions * padded, 0.0F);
    } else {
      const float* group_panels =
          panels + panel_start_[index] + static_cast<size_t>(group * phase.panel_floats);
      const int64_t all = source_channels(pass_);
      for (int64_t first = 0; first < all; first += phase.channels_per_block) {
        const int64_t channels = std::min(phase.channels_per_block, all - first);
        load_source(bindings, phase, group, box, first, channels, strip);
        list_positions(phase, box, channels, bases);
        multiply(phase, group_panels, first, channels, strip, bases, positions, sums);
      }
    }
    store_result(bindings, phase, group, box, sums);
  }

  void load_source(const Bindings& bindings, const GatherPhase& phase, int64_t group, const BoxGrid::Box& box,
                   int64_t first, int64_t channels, float* strip) const {
    const PassTensor& tensor = source_of(pass_);
    const auto bytes = static_cast<int64_t>(size_of(tensor.dtype));
    StripShape shape{.channels = channels, .extent = phase.extent};
    for (size_t axis = 0; axis < 3; ++axis) {
      const AxisPhase& a = phase.axes[axis];
      shape.start[axis] = box.first[axis + 1] * a.source_step + a.lowest_offset();
      shape.size[axis] = a.source_size;
    }
    for (int64_t n = 0; n < box.size[0]; ++n) {
      const int64_t at = (box.first[0] + n) * tensor.strides[0] +
                         (group * source_channels(pass_) + first) * tensor.strides[1];
      load_strip(tensor, pass_.rounding, static_cast<const std::byte*>(bindings[tensor.operand]) + at * bytes,
                 shape, strip + n * channels * shape.plane());
    }
  }

  static void list_positions(const GatherPhase& phase, const BoxGrid::Box& box, int64_t channels,
                             int64_t* bases) {
    const auto& [extent_d, extent_h, extent_w] = phase.extent;
    const auto& [d, h, w] = phase.axes;
    for (int64_t n = 0; n < box.size[0]; ++n)
      for (int64_t z = 0; z < box.size[1]; ++z)
        for (int64_t y = 0; y < box.size[2]; ++y)
          for (int64_t x = 0; x < box.size[3]; ++x)
            *bases++ =
                ((n * channels * extent_d + z * d.source_step) * extent_h + y * h.source_step) * extent_w +
                x * w.source_step;
  }

  void multiply(const GatherPhase& phase, const float* group_panels, int64_t first, int64_t channels,
                const float* strip, const int64_t* bases, int64_t positions, float* sums) const {
    const int64_t padded = padded_channels(pass_, width_);
    kernels::cpu::TileProduct tile;
    tile.offsets = phase.offsets.data();
    tile.inner = phase.taps;
    tile.outer = channels;
    tile.outer_stride = phase.extent[0] * phase.extent[1] * phase.extent[2];
    tile.c_stride = padded;
    tile.accumulate = first > 0;
    for (int64_t m = 0; m < padded; m += width_) {
      tile.b = group_panels + (m * source_channels(pass_) + first * width_) * phase.taps;
      for (int64_t p = 0; p < positions; p += kernels::cpu::kTileRows) {
        tile.rows = static_cast<int>(std::min<int64_t>(kernels::cpu::kTileRows, positions - p));
        for (int row = 0; row < tile.rows; ++row) tile.a[row] = strip + bases[p + row];
        tile.c = sums + p * padded + m;
        kernels::cpu::tile_product(tile);
      }
    }
  }

  void store_result(const Bindings& bindings, const GatherPhase& phase, int64_t group,
                    const BoxGrid::Box& box, const float* sums) const {
    const PassTensor& result = pass_.result();
    const auto& s = result.strides;
    const auto bytes = static_cast<int64_t>(size_of(result.dtype));
    auto* base = static_cast<std::byte*>(bindings[result.operand]);
    const int64_t channels = result_channels(pass_), padded = padded_channels(pass_, width_);
    const auto& [d, h, w] = phase.axes;
    const int64_t x_step = w.step * s[4];
    for (int64_t n = 0; n < box.size[0]; ++n)
      for (int64_t z = 0; z < box.size[1]; ++z)
        for (int64_t y = 0; y < box.size[2]; ++y, sums += box.size[3] * padded) {
          const int64_t at = (box.first[0] + n) * s[0] + group * channels * s[1] +
                             (d.first + (box.first[1] + z) * d.step) * s[2] +
                             (h.first + (box.first[2] + y) * h.step) * s[3] +
                             (w.first + box.first[3] * w.step) * s[4];
          // Sixteen channels at a time: their rows of the result stay in L1 while x advances.
          for (int64_t m0 = 0; m0 < channels; m0 += 16)
            store_block(result.dtype, base + at * bytes, m0, std::min(m0 + 16, channels), s[1], x_step,
                        box.size[3], sums, padded);
        }
  }

  static void store_block(DType dtype, std::byte* base, int64_t m0, int64_t m1, int64_t m_stride,
                          int64_t x_step, int64_t count, const float* sums, int64_t padded) {
    const auto bytes = static_cast<int64_t>(size_of(dtype));
    if (dtype == DType::kF32) {
      for (int64_t x = 0; x < count; ++x)
        for (int64_t m = m0; m < m1; ++m)
          std::memcpy(base + (m * m_stride + x * x_step) * bytes, sums + x * padded + m, sizeof(float));
      return;
    }
    for (int64_t m = m0; m < m1; ++m)
      store_row(dtype, base + m * m_stride * bytes, x_step, sums + m, padded, count);
  }

  ConvPass pass_;
  int64_t width_;
  std::vector<GatherPhase> phases_;
  int64_t slots_;
  std::unique_ptr<const Step> reference_;
  std::vector<int64_t> first_task_;
  std::vector<size_t> panel_start_;
  int64_t tasks_ = 0;
  bool leaves_source_ = false;
  size_t panel_bytes_ = 0, sum_bytes_ = 0, strip_bytes_ = 0, slot_bytes_ = 0;
};

class DenseGatherCandidate final : public Candidate {
 public:
  const char* name() const override { return "cpu.dense_gather"; }
  Support supports(const problem::Pass& pass) const override {
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (conv == nullptr || conv->kind == ConvPassKind::kGradWeight)
      return Support::no("computes forward and grad_input only");
    if (const auto reason = unfit_size(*conv)) return Support::no(*reason);
    if (conv->kind == ConvPassKind::kGradInput) {
      // One phase for each residue; a stride far beyond the kernel makes phases that hold next to nothing.
      Checked phases = 1;
      for (const problem::Window& w : conv->axes) phases = phases * std::min(w.stride, w.x);
      if (phases.get().value_or(INT64_MAX) > static_cast<int64_t>(kMostPhases))
        return Support::no("the strides make more than 4096 phases");
    }
    return Support::yes();
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass) const override {
    return std::make_unique<DenseGatherStep>(std::get<ConvPass>(pass));
  }
};

}  // namespace

std::vector<GatherPhase> plan_gather(const ConvPass& pass, int64_t tile_width) {
  const auto phases_of = [&](const problem::Window& window) {
    return is_forward(pass) ? std::vector<AxisPhase>{forward_phase(window)} : grad_input_phases(window);
  };
  std::vector<GatherPhase> phases;
  for (const AxisPhase& d : phases_of(pass.axes[0]))
    for (const AxisPhase& h : phases_of(pass.axes[1]))
      for (const AxisPhase& w : phases_of(pass.axes[2])) {
        GatherPhase phase;
        phase.axes = {d, h, w};
        finish_phase(pass, tile_width, phase);
        phases.push_back(std::move(phase));
      }
  return phases;
}

const Candidate& dense_gather() {
  static const DenseGatherCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cpu
