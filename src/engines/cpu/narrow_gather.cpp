// SPDX-License-Identifier: Apache-2.0
// result[n, m, place(j)] = Σ_k Σ_t source[n, k, j·source_step + offset(t)] · weight[k, m, t]
//
// with positions j as the vector side. A task is a box of positions of one or more groups, or of a part of
// the results of one. Block by block of source channels it copies strips (residue_strips.h) and adds to the
// sums of all its results; a whole plane of results is one long row in the pitch of the strip, the columns
// between two rows being computed and dropped, so that planes of 7 × 7 fill vectors too. Residues of a
// strided grad_input are folded into the result channels (axis_folds.h).
//
// Zeros stand for places outside the source. They multiply weights that the mathematics skips, which differs
// only if those are not finite: weights are looked at while they are packed, and such a pass is left to the
// reference.
#include "engines/cpu/narrow_gather.h"

#include <algorithm>
#include <atomic>

#include "base/checked.h"
#include "engines/cpu/gather_sides.h"
#include "engines/cpu/limits.h"
#include "engines/cpu/narrow_phases.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/task_slots.h"
#include "engines/reference/reference.h"
#include "kernels/cpu/row_sums.h"
#include "kernels/cpu/tile_product.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;
using problem::PassTensor;

constexpr int64_t kFloatsPackedPerTask = 16384;
constexpr int64_t kMostPhases = 4096;
constexpr int64_t kMostSourceResidues = 64;
constexpr int64_t kMostTerms = int64_t{1} << 20;
// Fewer products than these take less time than waking a thread.
constexpr int64_t kProductsForThreads = int64_t{1} << 18;

class NarrowGatherStep final : public Step {
 public:
  explicit NarrowGatherStep(const ConvPass& pass)
      : pass_(pass),
        phases_(plan_narrow(pass)),
        slots_(runtime::ThreadPool::instance().threads()),
        reference_(reference::candidate().make_step(pass)) {
    int64_t weights = 0, strip = 0, out = 0, packing = 0, products = 0;
    first_task_.reserve(phases_.size());
    weight_start_.reserve(phases_.size());
    for (const NarrowPhase& phase : phases_) {
      first_task_.push_back(tasks_);
      tasks_ += phase.tasks;
      weight_start_.push_back(weights);
      weights += pass.groups * phase.group_weights();
      strip = std::max(strip, phase.channels_per_block * phase.strips.channel_pitch());
      out = std::max(out, phase.results_per_task * phase.out_pitch);
      packing = std::max<int64_t>(packing, phase.group_weights() > 0 ? phase.kernel_taps : 0);
      leaves_source_ |= phase.leaves_source;
      products += std::min(kProductsForThreads, pass.groups * phase.group_weights()) *
                  std::min(kProductsForThreads, count_of(phase.grid.total));
    }
    if (products < kProductsForThreads) slots_ = 1;
    weight_bytes_ = part_bytes<float>(weights);
    // Rows are read a little beyond their end.
    strip_bytes_ = part_bytes<float>(strip + kernels::cpu::row_overrun());
    slot_bytes_ =
        std::max(strip_bytes_ + part_bytes<float>(out), part_bytes<float>(packing * result_channels(pass)));
  }

  size_t workspace_bytes() const override {
    return weight_bytes_ +
           static_cast<size_t>(std::min(slots_, std::max(tasks_, packing_tasks_most()))) * slot_bytes_;
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    auto* weights = reinterpret_cast<float*>(workspace);
    const auto scratch_of = [&](int64_t slot) {
      return workspace + weight_bytes_ + static_cast<size_t>(slot) * slot_bytes_;
    };
    std::atomic<bool> finite{true};
    for (size_t i = 0; i < phases_.size(); ++i)
      run_tasks(*context.pool, packing_tasks(phases_[i]), slots_, [&](int64_t task, int64_t slot) {
        if (!pack_weights(bindings, phases_[i], task, weights + weight_start_[i],
                          reinterpret_cast<float*>(scratch_of(slot))))
          finite.store(false, std::memory_order_relaxed);
      });
    if (!finite && leaves_source_) return reference_->run(bindings, workspace, context);
    run_tasks(*context.pool, tasks_, slots_, [&](int64_t task, int64_t slot) {
      const auto index = static_cast<size_t>(std::upper_bound(first_task_.begin(), first_task_.end(), task) -
                                             first_task_.begin() - 1);
      run_task(bindings, phases_[index], task - first_task_[index], weights + weight_start_[index],
               scratch_of(slot));
    });
  }

 private:
  // Rows of weights are those of one (group, source channel).
  int64_t rows_per_packing_task(const NarrowPhase& phase) const {
    return std::max<int64_t>(1, kFloatsPackedPerTask / std::max<int64_t>(1, phase.results * phase.terms()));
  }
  int64_t packing_tasks(const NarrowPhase& phase) const {
    if (phase.terms() == 0) return 0;
    return ceil_div(pass_.groups * source_channels(pass_), rows_per_packing_task(phase));
  }
  int64_t packing_tasks_most() const {
    int64_t most = 0;
    for (const NarrowPhase& phase : phases_) most = std::max(most, packing_tasks(phase));
    return most;
  }

  // weights[group][block of results][k][offset][result]; whether all were finite.
  bool pack_weights(const Bindings& bindings, const NarrowPhase& phase, int64_t task, float* weights,
                    float* taps) const {
    const int64_t rows = rows_per_packing_task(phase), all = pass_.groups * source_channels(pass_);
    bool finite = true;
    for (int64_t row = task * rows; row < std::min((task + 1) * rows, all); ++row) {
      const int64_t group = row / source_channels(pass_), k = row % source_channels(pass_);
      load_taps(bindings, group, k, taps);
      finite &= all_finite(taps, result_channels(pass_) * phase.kernel_taps);
      phase.spread_weights(taps, k, weights + group * phase.group_weights());
    }
    return finite;
  }

  // taps[m][tap] of source channel k.
  void load_taps(const Bindings& bindings, int64_t group, int64_t k, float* taps) const {
    const auto& s = pass_.w.strides;
    const auto bytes = static_cast<int64_t>(size_of(pass_.w.dtype));
    const auto* base = static_cast<const std::byte*>(bindings[pass_.w.operand]);
    const bool forward = is_forward(pass_);
    const int64_t m_stride = forward ? s[0] : s[1], k_stride = forward ? s[1] : s[0];
    const auto& [d, h, w] = pass_.axes;
    // Taps that follow each other in memory are one row.
    const bool plane = s[3] == w.kernel * s[4], volume = plane && s[2] == h.kernel * s[3];
    const int64_t row = volume ? d.kernel * h.kernel * w.kernel : plane ? h.kernel * w.kernel : w.kernel;
    for (int64_t m = 0; m < result_channels(pass_); ++m)
      for (int64_t td = 0; td < (volume ? 1 : d.kernel); ++td)
        for (int64_t th = 0; th < (plane ? 1 : h.kernel); ++th, taps += row) {
          const int64_t at = group * pass_.y_channels_per_group() * s[0] + m * m_stride + k * k_stride +
                             td * s[2] + th * s[3];
          load_row(pass_.w.dtype, pass_.rounding, base + at * bytes, s[4], row, taps);
        }
  }

  void run_task(const Bindings& bindings, const NarrowPhase& phase, int64_t task, const float* weights,
                std::byte* scratch) const {
    const int64_t boxes = phase.grid.count();
    const BoxGrid::Box box = phase.grid.at(task % boxes);
    const int64_t part = task / boxes % phase.parts;
    const int64_t first_group = task / boxes / phase.parts * phase.groups_per_task;
    const int64_t first = part * phase.results_per_task;
    const int64_t last = std::min(first + phase.results_per_task, phase.results);
    auto* strip = reinterpret_cast<float*>(scratch);
    auto* out = reinterpret_cast<float*>(scratch + strip_bytes_);
    for (int64_t group = first_group; group < std::min(first_group + phase.groups_per_task, pass_.groups);
         ++group) {
      if (phase.terms() == 0) std::fill_n(out, (last - first) * phase.out_pitch, 0.0F);
      for (int64_t k = 0; k < source_channels(pass_) && phase.terms() > 0; k += phase.channels_per_block) {
        const int64_t channels = std::min(phase.channels_per_block, source_channels(pass_) - k);
        load_source(bindings, phase, group * source_channels(pass_) + k, channels, box, strip);
        add_block(phase, weights + group * phase.group_weights(), k, channels, first, last, box, strip, out);
      }
      for (int64_t result = first; result < last; ++result)
        store_result(bindings, phase, group, result, box, out + (result - first) * phase.out_pitch);
    }
  }

  void load_source(const Bindings& bindings, const NarrowPhase& phase, int64_t channel, int64_t channels,
                   const BoxGrid::Box& box, float* strip) const {
    const PassTensor& tensor = source_of(pass_);
    const auto bytes = static_cast<int64_t>(size_of(tensor.dtype));
    const auto* base = static_cast<const std::byte*>(bindings[tensor.operand]);
    phase.strips.load(tensor, pass_.rounding, base + channel * tensor.strides[1] * bytes, channels, box,
                      strip);
    std::fill_n(strip + channels * phase.strips.channel_pitch(), kernels::cpu::row_overrun(), 0.0F);
  }

  // out[result][plane][row] += the products of source channels k to k + channels.
  void add_block(const NarrowPhase& phase, const float* weights, int64_t k, int64_t channels, int64_t first,
                 int64_t last, const BoxGrid::Box& box, const float* strip, float* out) const {
    const auto& extent = phase.strips.extent();
    kernels::cpu::RowSums rows;
    rows.offsets = phase.offsets.data();
    rows.inner = phase.terms();
    rows.outer = channels;
    rows.outer_stride = phase.strips.channel_pitch();
    rows.out_stride = phase.out_pitch;
    rows.accumulate = k > 0;
    for (int64_t result = first; result < last; result += phase.block) {
      rows.results = static_cast<int>(std::min(phase.block, phase.results - result));
      rows.weights = weights + (result * source_channels(pass_) + k * rows.results) * phase.terms();
      for (int64_t z = 0; z < box.size[1]; ++z)
        for (int64_t y = 0; y < (phase.whole_planes ? 1 : box.size[2]); ++y) {
          rows.source = strip + (z * extent[1] + y) * extent[2];
          rows.out = out + (result - first) * phase.out_pitch + z * phase.plane_pitch + y * phase.row_pitch;
          rows.count = phase.whole_planes ? (box.size[2] - 1) * phase.row_pitch + box.size[3] : box.size[3];
          kernels::cpu::row_sums(rows);
        }
    }
  }

  void store_result(const Bindings& bindings, const NarrowPhase& phase, int64_t group, int64_t index,
                    const BoxGrid::Box& box, const float* out) const {
    const PassTensor& tensor = pass_.result();
    const auto& s = tensor.strides;
    const auto bytes = static_cast<int64_t>(size_of(tensor.dtype));
    const NarrowPhase::Result result = phase.result_at(index);
    int64_t at = box.first[0] * s[0] + (group * result_channels(pass_) + result.channel) * s[1];
    std::array<problem::Range, 3> inside;  // of the box
    for (size_t axis = 0; axis < 3; ++axis) {
      const FoldedResidue& residue = *result.residues[axis];
      const int64_t first = box.first[axis + 1];
      inside[axis] = {std::max(residue.positions.begin - first, int64_t{0}),
                      std::min(residue.positions.end - first, box.size[axis + 1])};
      at += (residue.first + first * phase.axes[axis].step) * s[axis + 2];
    }
    auto* base = static_cast<std::byte*>(bindings[tensor.operand]);
    const auto& [d, h, w] = inside;
    const int64_t x_stride = phase.axes[2].step * s[4];
    if (w.end <= w.begin) return;
    for (int64_t z = d.begin; z < d.end; ++z)
      for (int64_t y = h.begin; y < h.end; ++y) {
        const int64_t row = at + z * phase.axes[0].step * s[2] + y * phase.axes[1].step * s[3];
        store_row(tensor.dtype, base + (row + w.begin * x_stride) * bytes, x_stride,
                  out + z * phase.plane_pitch + y * phase.row_pitch + w.begin, 1, w.size());
      }
  }

  ConvPass pass_;
  std::vector<NarrowPhase> phases_;
  int64_t slots_;
  std::unique_ptr<const Step> reference_;
  std::vector<int64_t> first_task_, weight_start_;
  int64_t tasks_ = 0;
  bool leaves_source_ = false;
  size_t weight_bytes_ = 0, strip_bytes_ = 0, slot_bytes_ = 0;
};

class NarrowGatherCandidate final : public Candidate {
 public:
  const char* name() const override { return "cpu.narrow_gather"; }
  Support supports(const problem::Pass& pass) const override {
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (conv == nullptr || conv->kind == problem::ConvPassKind::kGradWeight)
      return Support::no("computes forward and grad_input only");
    if (const auto reason = unfit_size(*conv)) return Support::no(*reason);
    if (result_channels(*conv) >= kernels::cpu::tile_width() / 2)
      return Support::no("a group has channels enough to fill a vector with them");
    Checked residues = 1, terms = source_channels(*conv);
    for (const problem::Window& w : conv->axes) {
      residues = residues * (is_forward(*conv) ? w.stride : std::min(w.stride, w.x));
      terms = terms * w.kernel;
    }
    if (residues.get().value_or(INT64_MAX) > (is_forward(*conv) ? kMostSourceResidues : kMostPhases))
      return Support::no("the strides make more than 4096 phases or 64 strips");
    if (terms.get().value_or(INT64_MAX) > kMostTerms)
      return Support::no("a result is a sum of more than 2^20 products");
    const problem::Window& w = conv->axes[2];
    const int64_t row = is_forward(*conv) ? w.y : ceil_div(w.x, w.stride);
    if (row < 4) return Support::no("rows of fewer than 4 places do not fill a vector");
    return Support::yes();
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass) const override {
    return std::make_unique<NarrowGatherStep>(std::get<ConvPass>(pass));
  }
};

}  // namespace

const Candidate& narrow_gather() {
  static const NarrowGatherCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cpu
