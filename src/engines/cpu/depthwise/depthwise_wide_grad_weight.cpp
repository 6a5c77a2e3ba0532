// SPDX-License-Identifier: Apache-2.0
// w[c, t] = Σ_n Σ_p x[n, c, p·stride + offset(t)] · y[n, c, p]   with one channel a group
//
// A task takes some channels of some images and sums a vector for each channel and tap over all their rows,
// where they lie; types other than FP32 are converted some planes at a time. Strides along H are residues of
// rows, dilations classes of them.
//
// Pixels outside a row count as zeros, which differs from leaving them out only where what they are
// multiplied with is not finite: then a sum is not finite either, and its task runs again with masks.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/checked.h"
#include "engines/cpu/depthwise/depthwise_blocks.h"
#include "engines/cpu/effort.h"
#include "engines/cpu/implementations.h"
#include "engines/cpu/limits.h"
#include "engines/cpu/machine_vectors.h"
#include "engines/cpu/task_slots.h"
#include "kernels/cpu/depthwise/depthwise_wide_dots.h"
#include "kernels/cpu/float_at.h"

namespace retrograd::engines::cpu {
namespace {

using kernels::cpu::DepthwiseWideDots;
using problem::ConvPass;
using problem::ConvPassKind;
using problem::Window;

constexpr int64_t kMostTaps = 1024;
constexpr int64_t kMostPlaneFloats = int64_t{1} << 18;  // of a plane that is converted
constexpr int64_t kLeastPlanes = 8;

// The taps of one residue of the stride, as a phase over the places of x with that residue.
AxisPhase residue_phase(const Window& w, int64_t residue) {
  AxisPhase phase{.count = w.y,
                  .first = 0,
                  .step = 1,
                  .source_size = ceil_div(std::max<int64_t>(w.x - residue, 0), w.stride),
                  .source_step = 1,
                  .taps = {}};
  for (int64_t tap = 0; tap < w.kernel; ++tap) {
    const int64_t at = tap * w.dilation - w.pad_lo;
    if (at - floor_div(at, w.stride) * w.stride != residue) continue;
    phase.taps.push_back({tap, floor_div(at, w.stride)});
  }
  return phase;
}

int64_t taps_of(const ConvPass& pass) {
  return pass.axes[0].kernel * pass.axes[1].kernel * pass.axes[2].kernel;
}

int64_t round_up(int64_t count, int64_t unit) { return ceil_div(count, unit) * unit; }

std::array<int64_t, 3> x_sizes(const ConvPass& p) { return {p.axes[0].x, p.axes[1].x, p.axes[2].x}; }
std::array<int64_t, 3> y_sizes(const ConvPass& p) { return {p.axes[0].y, p.axes[1].y, p.axes[2].y}; }

class DepthwiseWideGradWeightStep final : public Step {
 public:
  DepthwiseWideGradWeightStep(const ConvPass& pass, const Machine& machine)
      : pass_(pass),
        slots_(machine.cpu.threads),
        x_(pass.x, pass.rounding, x_sizes(pass)),
        y_(pass.y, pass.rounding, y_sizes(pass)),
        lanes_(vectors_of(machine).wide_lanes(pass.axes[2].y)),
        taps_(taps_of(pass)) {
    list_taps();
    int64_t tap_rows = 0;
    for (const RowPhase& rows : row_phases_)
      tap_rows = std::max(tap_rows, static_cast<int64_t>(rows.taps.size()));
    pair_ = vectors_of(machine).wide_planes(lanes_, tap_rows);
    sum_floats_ = taps_ * pair_ * lanes_;
    const auto& [wd, wh, ww] = pass_.axes;
    const int64_t vectors = wd.y * wh.y * ceil_div(ww.y, lanes_);
    // Where several passes go over a part, it stays in L1.
    const int64_t share = row_phases_.size() > 1 || row_phases_.front().classes.size() > 1 ? 4 : 1;
    cut_ = cut_into_image_blocks(pass.batch, pass.groups, vectors * (taps_ + 2),
                                 (x_.plane_floats() + y_.plane_floats()) * share);
    total_bytes_ = part_bytes<float>(cut_.image_blocks() * cut_.channels * taps_);
    cut_.channels_per_part = std::min(round_up(cut_.channels_per_part, pair_), cut_.channels_per_task);
    sum_bytes_ = part_bytes<float>(ceil_div(cut_.channels_per_task, pair_) * sum_floats_);
    const int64_t planes = cut_.channels_per_part;
    x_bytes_ = x_.in_place() ? 0 : part_bytes<float>(planes * x_.plane_floats());
    y_bytes_ = y_.in_place() ? 0 : part_bytes<float>(planes * y_.plane_floats());
    slot_bytes_ = sum_bytes_ + x_bytes_ + y_bytes_ + part_bytes<float>(taps_);
  }

  std::string describe() const override {
    return fmt::format("vectors of {} along W, up to 8 rows; {} tasks of {} images x {} channels", lanes_,
                       tasks(), cut_.images_per_task, cut_.channels_per_task);
  }

  size_t workspace_bytes() const override {
    return total_bytes_ + static_cast<size_t>(std::min(slots_, tasks())) * slot_bytes_;
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    auto* totals = reinterpret_cast<float*>(workspace);
    const int64_t blocks = cut_.channel_blocks();
    run_tasks_nearby(*context.pool, tasks(), slots_, [&](int64_t task, int64_t slot) {
      const ImageBlock block = cut_.task(task % blocks, task / blocks);
      std::byte* memory = workspace + total_bytes_ + static_cast<size_t>(slot) * slot_bytes_;
      float* total = totals + (task / blocks * cut_.channels + block.channel) * taps_;
      if (!sum_block(bindings, block, false, memory, total)) sum_block(bindings, block, true, memory, total);
      if (cut_.image_blocks() == 1)
        store_channels(bindings, block.channel, block.channels, totals, row_of(memory));
    });
    if (cut_.image_blocks() > 1)
      store_channels(bindings, 0, cut_.channels, totals, row_of(workspace + total_bytes_));
  }

 private:
  int64_t tasks() const { return cut_.channel_blocks() * cut_.image_blocks(); }
  float* row_of(std::byte* memory) const {
    return reinterpret_cast<float*>(memory + sum_bytes_ + x_bytes_ + y_bytes_);
  }

  // Sums of a plane, or pair of planes, are [residue along H][tap along D][tap along W][tap along H].
  void list_taps() {
    const auto& [wd, wh, ww] = pass_.axes;
    for (int64_t tap = 0; tap < ww.kernel; ++tap) offsets_.push_back(tap * ww.dilation - ww.pad_lo);
    for (int64_t residue = 0; residue < wh.stride; ++residue) {
      RowPhase rows;
      make_row_phase(residue_phase(wh, residue), rows);
      if (rows.taps.empty()) continue;
      first_sums_.push_back(static_cast<int64_t>(order_.size()));
      for (int64_t d = 0; d < wd.kernel; ++d)
        for (int64_t column = 0; column < ww.kernel; ++column)
          for (const int64_t row : rows.taps) order_.push_back((d * wh.kernel + row) * ww.kernel + column);
      residues_.push_back(residue);
      row_phases_.push_back(std::move(rows));
    }
  }

  // Whether all sums are finite, or masked.
  bool sum_block(const Bindings& bindings, const ImageBlock& block, bool masked, std::byte* memory,
                 float* total) const {
    auto* sums = reinterpret_cast<float*>(memory);
    auto* x = reinterpret_cast<float*>(memory + sum_bytes_);
    auto* y = reinterpret_cast<float*>(memory + sum_bytes_ + x_bytes_);
    void *const x_address = bindings[pass_.x.operand], *const y_address = bindings[pass_.y.operand];
    std::fill_n(sums, ceil_div(block.channels, pair_) * sum_floats_, 0.0F);
    for (int64_t n = 0; n < block.images; ++n)
      for (int64_t c = 0; c < block.channels; c += cut_.channels_per_part) {
        const ImageBlock part{block.image + n, 1, block.channel + c,
                              std::min(cut_.channels_per_part, block.channels - c)};
        x_.load(x_address, part, x);
        y_.load(y_address, part, y);
        sum_part(part, x_.view(x_address, part, x), y_.view(y_address, part, y), masked,
                 sums + c / pair_ * sum_floats_);
        // The first part tells of a tensor that is not finite at all.
        if (!masked && n + c == 0 && !all_finite(sums, ceil_div(part.channels, pair_) * sum_floats_))
          return false;
      }
    kernels::cpu::add_wide_lanes(sums, lanes_, pair_ > 1, block.channels, taps_, total);
    return masked || all_finite(total, block.channels * taps_);
  }

  void sum_part(const ImageBlock& part, const PlaneView& x, const PlaneView& y, bool masked,
                float* sums) const {
    const auto& [wd, wh, ww] = pass_.axes;
    DepthwiseWideDots dots;
    dots.lanes = lanes_;
    dots.planes = part.channels;
    dots.x_plane = x.strides[1];
    dots.y_plane = y.strides[1];
    dots.sum_plane = sum_floats_;
    dots.pairs = pair_ > 1;
    const int64_t sum_lanes = pair_ * lanes_;
    dots.x_depth = wd.dilation * x.strides[2];
    dots.width = ww.y;
    dots.x_width = ww.x;
    dots.offsets = offsets_.data();
    dots.taps = ww.kernel;
    dots.masked = masked;
    for (int64_t d = 0; d < wd.y; ++d) {
      const problem::Range live = live_taps(wd, d);
      if (live.size() == 0) continue;
      dots.depths = live.size();
      for (size_t i = 0; i < row_phases_.size(); ++i) {
        const RowPhase& rows = row_phases_[i];
        dots.tap_rows = static_cast<int64_t>(rows.taps.size());
        dots.sum_depth = dots.taps * dots.tap_rows * sum_lanes;
        dots.sums = sums + first_sums_[i] * sum_lanes + live.begin * dots.sum_depth;
        dots.x_row = wh.stride * rows.step * x.strides[3];
        dots.y_row = rows.step * y.strides[3];
        for (const RowClass& c : rows.classes) {
          dots.rows = c.positions;
          dots.first_row = c.first;
          dots.x_rows = c.source_rows;
          dots.x = x.at + position(wd, d, live.begin) * x.strides[2] +
                   (residues_[i] + c.source * wh.stride) * x.strides[3];
          dots.y = y.at + d * y.strides[2] + c.position * y.strides[3];
          kernels::cpu::depthwise_wide_dots(dots);
        }
      }
    }
  }

  // Adds the blocks of images in order; `row` holds the taps of a channel.
  void store_channels(const Bindings& bindings, int64_t first, int64_t channels, const float* totals,
                      float* row) const {
    const auto& s = pass_.w.strides;
    const auto& [kd, kh, kw] = pass_.axes;
    const auto bytes = static_cast<int64_t>(size_of(pass_.w.dtype));
    auto* base = static_cast<std::byte*>(bindings[pass_.w.operand]);
    const bool one_run = s[3] == kw.kernel * s[4] && s[2] == kh.kernel * s[3];
    const int64_t width = one_run ? taps_ : kw.kernel, blocks = cut_.image_blocks();
    const bool in_place = pass_.w.dtype == DType::kF32 && one_run && s[4] == 1;
    for (int64_t channel = first; channel < first + channels; ++channel) {
      if (in_place) row = reinterpret_cast<float*>(base) + channel * s[0];
      for (int64_t i = 0; i < taps_; ++i) {
        float total = totals[channel * taps_ + i];
        for (int64_t b = 1; b < blocks; ++b) total += totals[(b * cut_.channels + channel) * taps_ + i];
        kernels::cpu::put_float(total, row + order_[static_cast<size_t>(i)]);
      }
      if (in_place) continue;
      for (int64_t tap = 0; tap < taps_; tap += width) {
        const int64_t r = tap / kw.kernel;
        store_row(pass_.w.dtype,
                  base + (channel * s[0] + r / kh.kernel * s[2] + r % kh.kernel * s[3]) * bytes, s[4],
                  row + tap, 1, width);
      }
    }
  }

  ConvPass pass_;
  int64_t slots_;
  BlockTensor x_, y_;
  int64_t lanes_, taps_;
  int64_t pair_ = 1, sum_floats_ = 0;  // planes that share sums, and their size
  std::vector<int64_t> offsets_;       // along W
  std::vector<int64_t> residues_;      // along H, those that have taps
  std::vector<RowPhase> row_phases_;   // of each
  std::vector<int64_t> first_sums_;    // of each
  std::vector<int64_t> order_;         // of the sums, as taps of the tensor
  ImageCut cut_;
  size_t total_bytes_ = 0, sum_bytes_ = 0, x_bytes_ = 0, y_bytes_ = 0, slot_bytes_ = 0;
};

class DepthwiseWideGradWeightCandidate final : public Candidate {
 public:
  const char* name() const override { return "cpu.depthwise_wide_grad_weight"; }
  Effort effort(const problem::Pass& pass, const Machine& machine) const override {
    return depthwise_rows_effort(pass, machine);
  }
  Support supports(const problem::Pass& pass, const Machine& machine) const override {
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (conv == nullptr || conv->kind != ConvPassKind::kGradWeight)
      return Support::no("computes grad_weight only");
    if (const auto reason = unfit_size(*conv)) return Support::no(*reason);
    if (conv->x_channels != conv->groups || conv->y_channels != conv->groups)
      return Support::no("a group has more than one channel");
    if (conv->batch * conv->groups < kLeastPlanes) return Support::no("there are too few planes");
    if (conv->x.strides[4] != 1 || conv->y.strides[4] != 1) return Support::no("places along W lie apart");
    const BlockTensor x(conv->x, conv->rounding, x_sizes(*conv)), y(conv->y, conv->rounding, y_sizes(*conv));
    const bool copies = !x.in_place() || !y.in_place();
    if (copies && std::max(x.plane_floats(), y.plane_floats()) > kMostPlaneFloats)
      return Support::no("a plane to convert has more than 2^18 places");
    return supports_window(*conv, vectors_of(machine));
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass, const Machine& machine) const override {
    return std::make_unique<DepthwiseWideGradWeightStep>(std::get<ConvPass>(pass), machine);
  }

 private:
  static Support supports_window(const ConvPass& conv, const VectorShape& vectors) {
    const auto& [wd, wh, ww] = conv.axes;
    if (taps_of(conv) > kMostTaps) return Support::no("the kernel has more than 2^10 taps");
    if (ww.kernel > kernels::cpu::kMostWideTaps) return Support::no("the kernel is wider than 64");
    if (ww.stride > 1) return Support::no("the stride leaves gaps in the rows");
    if (wh.stride > wh.kernel * 8) return Support::no("the stride leaves most rows out");
    if (wh.y == 1) return Support::no("there is one row");
    const int64_t lanes = vectors.wide_lanes(ww.y);
    if (lanes == 0) return Support::no("there are no masked loads");
    if (ww.y * 2 <= lanes) return Support::no("rows are shorter than half a vector");
    RowPhase rows;
    for (int64_t residue = 0; residue < wh.stride; ++residue) {
      const AxisPhase phase = residue_phase(wh, residue);
      if (static_cast<int64_t>(phase.taps.size()) > kernels::cpu::kMostWideTapRows)
        return Support::no("more than 7 rows of taps reach a row");
      if (!make_row_phase(phase, rows)) return Support::no("taps are not the same distance apart");
    }
    return Support::yes();
  }
};

}  // namespace

const Candidate& depthwise_wide_grad_weight() {
  static const DepthwiseWideGradWeightCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cpu
