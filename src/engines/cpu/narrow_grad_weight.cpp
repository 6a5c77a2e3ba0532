// SPDX-License-Identifier: Apache-2.0
// w[o, i, t] = Σ_p y[o, p] · x[i, p·stride + offset(t)]   with few o
//
// x is copied into one strip for each residue of the place by the stride: there, neighbours in p are
// neighbours in memory, and offset(t) = q·stride + r is a constant offset q into strip r. y is laid out in
// the pitch of those strips with zeros between its rows, so that a whole box, batch included, is one long dot
// product for each tap. The zeros would turn what is not finite in the other operand into NaN: both are
// looked at while they are copied, and such a pass is left to the reference.
#include "engines/cpu/narrow_grad_weight.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <vector>

#include "base/checked.h"
#include "engines/cpu/axis_phases.h"
#include "engines/cpu/boxes.h"
#include "engines/cpu/limits.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/task_slots.h"
#include "engines/reference/reference.h"
#include "kernels/cpu/row_products.h"
#include "kernels/cpu/tile_product.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;
using problem::ConvPassKind;
using problem::PassTensor;

constexpr int64_t kStripFloats = 32768;
constexpr int64_t kFewestPositions = 512;
constexpr int64_t kWantedTasks = 16;
constexpr int64_t kMostResidues = 64;
constexpr int64_t kMostSourceChannels = 2048;

int64_t floor_mod(int64_t a, int64_t b) { return a - floor_div(a, b) * b; }

class NarrowGradWeightStep final : public Step {
 public:
  explicit NarrowGradWeightStep(const ConvPass& pass)
      : pass_(pass),
        slots_(runtime::ThreadPool::instance().threads()),
        reference_(reference::candidate().make_step(pass)) {
    Positions total{pass.batch, 1, 1, 1};
    for (size_t axis = 0; axis < 3; ++axis) {
      axes_[axis] = forward_phase(pass.axes[axis]);
      total[axis + 1] = axes_[axis].count;
    }
    const int64_t wanted = kStripFloats / std::max<int64_t>(pass.x_channels_per_group() * residues(), 1);
    grid_ = cut_into_boxes(total, std::max(kFewestPositions, wanted));
    for (size_t axis = 0; axis < 3; ++axis) {
      const AxisPhase& a = axes_[axis];
      extent_[axis] = grid_.box[axis + 1] + (a.highest_offset() - a.lowest_offset()) / a.source_step;
    }
    list_taps();
    const int64_t splits = std::clamp<int64_t>(kWantedTasks / pass.groups, 1, grid_.count());
    boxes_per_split_ = ceil_div(grid_.count(), splits);
    splits_ = ceil_div(grid_.count(), boxes_per_split_);
    sums_ = pass.y_channels_per_group() * pass.x_channels_per_group() * static_cast<int64_t>(offsets_.size());
    sum_bytes_ = part_bytes<float>(splits_ * pass.groups * sums_);
    const int64_t volume = grid_.box[0] * plane();
    strip_bytes_ =
        part_bytes<float>(pass.x_channels_per_group() * residues() * volume + kernels::cpu::dots_overrun());
    slot_bytes_ = strip_bytes_ + part_bytes<float>(volume + kernels::cpu::dots_overrun());
  }

  size_t workspace_bytes() const override {
    return sum_bytes_ + static_cast<size_t>(std::min(slots_, splits_ * pass_.groups)) * slot_bytes_;
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    auto* sums = reinterpret_cast<float*>(workspace);
    std::atomic<bool> finite{true};
    run_tasks(*context.pool, splits_ * pass_.groups, slots_, [&](int64_t task, int64_t slot) {
      if (!sum_split(bindings, task % pass_.groups, task / pass_.groups, sums + task * sums_,
                     workspace + sum_bytes_ + static_cast<size_t>(slot) * slot_bytes_))
        finite.store(false, std::memory_order_relaxed);
    });
    if (!finite) return reference_->run(bindings, workspace, context);
    context.pool->parallel_for(pass_.groups, std::max<int64_t>(1, 4096 / std::max<int64_t>(sums_, 1)),
                               [&](int64_t begin, int64_t end) {
                                 for (int64_t group = begin; group < end; ++group)
                                   store_group(bindings, group, sums);
                               });
  }

 private:
  int64_t residues() const { return axes_[0].source_step * axes_[1].source_step * axes_[2].source_step; }
  int64_t plane() const { return extent_[0] * extent_[1] * extent_[2]; }

  // offsets_[tap]: into the strips of one channel.
  void list_taps() {
    const auto& [d, h, w] = axes_;
    for (const PhaseTap& td : d.taps)
      for (const PhaseTap& th : h.taps)
        for (const PhaseTap& tw : w.taps) {
          const int64_t od = td.offset - d.lowest_offset(), oh = th.offset - h.lowest_offset(),
                        ow = tw.offset - w.lowest_offset();
          const int64_t residue =
              (od % d.source_step * h.source_step + oh % h.source_step) * w.source_step + ow % w.source_step;
          offsets_.push_back(residue * grid_.box[0] * plane() +
                             (od / d.source_step * extent_[1] + oh / h.source_step) * extent_[2] +
                             ow / w.source_step);
        }
  }

  // sums[o][i][tap]; whether both operands were finite.
  bool sum_split(const Bindings& bindings, int64_t group, int64_t split, float* sums,
                 std::byte* scratch) const {
    auto* strips = reinterpret_cast<float*>(scratch);
    auto* y = reinterpret_cast<float*>(scratch + strip_bytes_);
    const auto taps = static_cast<int64_t>(offsets_.size());
    const int64_t x_channels = pass_.x_channels_per_group(), overrun = kernels::cpu::dots_overrun();
    std::fill_n(sums, sums_, 0.0F);
    bool finite = true;
    const int64_t first = split * boxes_per_split_;
    for (int64_t index = first; index < std::min(first + boxes_per_split_, grid_.count()); ++index) {
      const BoxGrid::Box box = grid_.at(index);
      const int64_t volume = grid_.box[0] * plane();
      for (int64_t i = 0; i < x_channels; ++i)
        load_source(bindings, group * x_channels + i, box, strips + i * residues() * volume);
      const int64_t strip_floats = x_channels * residues() * volume;
      std::fill_n(strips + strip_floats, overrun, 0.0F);
      finite &= all_finite(strips, strip_floats);
      for (int64_t o = 0; o < pass_.y_channels_per_group(); ++o) {
        load_y(bindings, group * pass_.y_channels_per_group() + o, box, y);
        std::fill_n(y + volume, overrun, 0.0F);
        finite &= all_finite(y, volume);
        for (int64_t i = 0; i < x_channels; ++i) {
          kernels::cpu::RowDots dots;
          dots.source = strips + i * residues() * volume;
          dots.offsets = offsets_.data();
          dots.terms = taps;
          dots.y = y;
          dots.count = ((box.size[0] - 1) * extent_[0] * extent_[1] + (box.size[1] - 1) * extent_[1] +
                        box.size[2] - 1) *
                           extent_[2] +
                       box.size[3];
          dots.sums = sums + (o * x_channels + i) * taps;
          kernels::cpu::row_dots(dots);
        }
      }
    }
    return finite;
  }

  // strips[residue][n][d][h][w] of one channel of x.
  void load_source(const Bindings& bindings, int64_t channel, const BoxGrid::Box& box, float* strips) const {
    const auto bytes = static_cast<int64_t>(size_of(pass_.x.dtype));
    const auto* base = static_cast<const std::byte*>(bindings[pass_.x.operand]);
    std::array<int64_t, 3> residue{};
    for (residue[0] = 0; residue[0] < axes_[0].source_step; ++residue[0])
      for (residue[1] = 0; residue[1] < axes_[1].source_step; ++residue[1])
        for (residue[2] = 0; residue[2] < axes_[2].source_step; ++residue[2]) {
          // The places of one residue are a tensor of their own, with strides `source_step` times as long.
          PassTensor tensor = pass_.x;
          StripShape shape{.channels = 1, .extent = extent_};
          int64_t at = channel * tensor.strides[1];
          for (size_t axis = 0; axis < 3; ++axis) {
            const AxisPhase& a = axes_[axis];
            const int64_t place = box.first[axis + 1] * a.source_step + a.lowest_offset() + residue[axis];
            const int64_t within = floor_mod(place, a.source_step);
            at += within * tensor.strides[axis + 2];
            tensor.strides[axis + 2] *= a.source_step;
            shape.start[axis] = floor_div(place, a.source_step);
            shape.size[axis] = ceil_div(a.source_size - within, a.source_step);
          }
          for (int64_t n = 0; n < grid_.box[0]; ++n, strips += plane()) {
            if (n < box.size[0]) {
              load_strip(tensor, pass_.rounding, base + (at + (box.first[0] + n) * tensor.strides[0]) * bytes,
                         shape, strips);
            } else {
              std::fill_n(strips, plane(), 0.0F);
            }
          }
        }
  }

  // y[n][d][h][w] of one channel in the pitch of the strips, zeros where there is no position.
  void load_y(const Bindings& bindings, int64_t channel, const BoxGrid::Box& box, float* y) const {
    const auto& s = pass_.y.strides;
    const auto bytes = static_cast<int64_t>(size_of(pass_.y.dtype));
    const auto* base = static_cast<const std::byte*>(bindings[pass_.y.operand]);
    for (int64_t n = 0; n < grid_.box[0]; ++n)
      for (int64_t d = 0; d < extent_[0]; ++d)
        for (int64_t h = 0; h < extent_[1]; ++h, y += extent_[2]) {
          int64_t count = 0;
          if (n < box.size[0] && d < box.size[1] && h < box.size[2]) {
            count = box.size[3];
            const int64_t at = (box.first[0] + n) * s[0] + channel * s[1] + (box.first[1] + d) * s[2] +
                               (box.first[2] + h) * s[3] + box.first[3] * s[4];
            load_row(pass_.y.dtype, pass_.rounding, base + at * bytes, s[4], count, y);
          }
          std::fill_n(y + count, extent_[2] - count, 0.0F);
        }
  }

  void store_group(const Bindings& bindings, int64_t group, float* sums) const {
    float* total = sums + group * sums_;
    for (int64_t split = 1; split < splits_; ++split) {
      const float* part = sums + (split * pass_.groups + group) * sums_;
      for (int64_t i = 0; i < sums_; ++i) total[i] += part[i];
    }
    const auto& s = pass_.w.strides;
    const auto bytes = static_cast<int64_t>(size_of(pass_.w.dtype));
    auto* base = static_cast<std::byte*>(bindings[pass_.w.operand]);
    const auto put = [&](int64_t at, float value) {
      store_row(pass_.w.dtype, base + at * bytes, 1, &value, 1, 1);
    };
    for (int64_t o = 0; o < pass_.y_channels_per_group(); ++o)
      for (int64_t i = 0; i < pass_.x_channels_per_group(); ++i) {
        const int64_t at = (group * pass_.y_channels_per_group() + o) * s[0] + i * s[1];
        // Taps that never read inside x are in no list: their gradient is zero.
        for (int64_t d = 0; d < pass_.axes[0].kernel; ++d)
          for (int64_t h = 0; h < pass_.axes[1].kernel; ++h)
            for (int64_t w = 0; w < pass_.axes[2].kernel; ++w) put(at + d * s[2] + h * s[3] + w * s[4], 0.0F);
        for (const PhaseTap& d : axes_[0].taps)
          for (const PhaseTap& h : axes_[1].taps)
            for (const PhaseTap& w : axes_[2].taps)
              put(at + d.tap * s[2] + h.tap * s[3] + w.tap * s[4], *total++);
      }
  }

  ConvPass pass_;
  int64_t slots_;
  std::unique_ptr<const Step> reference_;
  std::array<AxisPhase, 3> axes_;
  BoxGrid grid_;
  std::array<int64_t, 3> extent_{};  // of the strip of one residue
  std::vector<int64_t> offsets_;
  int64_t boxes_per_split_ = 0, splits_ = 0, sums_ = 0;
  size_t sum_bytes_ = 0, strip_bytes_ = 0, slot_bytes_ = 0;
};

class NarrowGradWeightCandidate final : public Candidate {
 public:
  const char* name() const override { return "cpu.narrow_grad_weight"; }
  Support supports(const problem::Pass& pass) const override {
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (conv == nullptr || conv->kind != ConvPassKind::kGradWeight)
      return Support::no("computes grad_weight only");
    if (const auto reason = unfit_size(*conv)) return Support::no(*reason);
    if (conv->y_channels_per_group() >= kernels::cpu::tile_width() / 4)
      return Support::no("a group has channels enough to fill a vector with them");
    if (conv->x_channels_per_group() > kMostSourceChannels)
      return Support::no("a group has more than 2048 input channels to keep in strips");
    Checked residues = 1;
    for (const problem::Window& w : conv->axes) residues = residues * w.stride;
    if (residues.get().value_or(INT64_MAX) > kMostResidues)
      return Support::no("the strides make more than 64 strips");
    if (conv->axes[2].y < 4) return Support::no("rows of fewer than 4 places do not fill a vector");
    return Support::yes();
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass) const override {
    return std::make_unique<NarrowGradWeightStep>(std::get<ConvPass>(pass));
  }
};

}  // namespace

const Candidate& narrow_grad_weight() {
  static const NarrowGradWeightCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cpu
