// SPDX-License-Identifier: Apache-2.0
// result[n, m, place(j)] = Σ_k Σ_t source[n, k, j + offset(t)] · weight[k, m, t]   with few m
//
// A task is a box of positions of one or more groups. All source channels of a group lie in one zero-padded
// strip; a whole plane of results is one long row in the pitch of the strip, the columns between two rows of
// results being computed and dropped, so that planes of 7 × 7 fill vectors too. As in dense_gather.cpp,
// weights that are not finite leave the pass to the reference.
#include "engines/cpu/narrow_gather.h"

#include <algorithm>
#include <atomic>

#include "base/checked.h"
#include "engines/cpu/dense_gather.h"
#include "engines/cpu/gather_sides.h"
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

constexpr int64_t kStripFloats = 65536;
constexpr int64_t kFewestPositions = 256;
constexpr int64_t kPositionsPerTask = 2048;  // small planes are handed out together
constexpr int64_t kMostSourceChannels = 2048;
constexpr int64_t kMostTerms = int64_t{1} << 20;

// A phase with boxes of this engine's own size.
struct NarrowPhase {
  GatherPhase gather;
  std::vector<int64_t> offsets;  // [k][tap] into the strip of one image
  int64_t groups_per_task = 1;
  int64_t tasks = 0;
  size_t weight_start = 0;  // floats
};

class NarrowGatherStep final : public Step {
 public:
  explicit NarrowGatherStep(const ConvPass& pass)
      : pass_(pass),
        slots_(runtime::ThreadPool::instance().threads()),
        reference_(reference::candidate().make_step(pass)) {
    size_t weights = 0;
    int64_t strip = 0, out = 0;
    for (GatherPhase& gather : plan_gather(pass, kernels::cpu::tile_width())) {
      NarrowPhase phase;
      phase.gather = std::move(gather);
      cut(phase);
      phase.weight_start = weights;
      weights += static_cast<size_t>(pass.groups * result_channels(pass) * terms(phase));
      first_task_.push_back(tasks_);
      tasks_ += phase.tasks;
      strip = std::max(strip, source_channels(pass) * plane(phase));
      out = std::max(out,
                     std::min<int64_t>(result_channels(pass), kernels::cpu::kRowResults) * out_stride(phase));
      for (const AxisPhase& axis : phase.gather.axes)
        leaves_source_ |= phase.gather.taps > 0 && axis.leaves_source();
      phases_.push_back(std::move(phase));
    }
    weight_bytes_ = part_bytes<float>(static_cast<int64_t>(weights));
    // Rows are read a little beyond their end.
    strip_bytes_ = part_bytes<float>(strip + kernels::cpu::row_overrun());
    slot_bytes_ = strip_bytes_ + part_bytes<float>(out);
  }

  size_t workspace_bytes() const override {
    return weight_bytes_ + static_cast<size_t>(std::min(slots_, tasks_)) * slot_bytes_;
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    if (!pack_weights(bindings, reinterpret_cast<float*>(workspace), *context.pool) && leaves_source_)
      return reference_->run(bindings, workspace, context);
    run_tasks(*context.pool, tasks_, slots_, [&](int64_t task, int64_t slot) {
      const auto index = static_cast<size_t>(std::upper_bound(first_task_.begin(), first_task_.end(), task) -
                                             first_task_.begin() - 1);
      const NarrowPhase& phase = phases_[index];
      const int64_t within = task - first_task_[index], boxes = phase.gather.grid.count();
      const int64_t first = within / boxes * phase.groups_per_task;
      for (int64_t group = first; group < std::min(first + phase.groups_per_task, pass_.groups); ++group)
        run_box(bindings, phase, group, within % boxes, reinterpret_cast<const float*>(workspace),
                workspace + weight_bytes_ + static_cast<size_t>(slot) * slot_bytes_);
    });
  }

 private:
  int64_t terms(const NarrowPhase& phase) const { return source_channels(pass_) * phase.gather.taps; }
  static int64_t plane(const NarrowPhase& phase) {
    return phase.gather.extent[0] * phase.gather.extent[1] * phase.gather.extent[2];
  }
  // Results of one depth of a box, in the pitch of the strip.
  static int64_t out_stride(const NarrowPhase& phase) {
    return phase.gather.grid.box[2] * phase.gather.extent[2] + kernels::cpu::row_overrun();
  }

  void cut(NarrowPhase& phase) const {
    GatherPhase& g = phase.gather;
    const Positions total{pass_.batch, g.axes[0].count, g.axes[1].count, g.axes[2].count};
    const Positions image{1, total[1], total[2], total[3]};
    const int64_t wanted =
        std::max(kFewestPositions, kStripFloats / std::max<int64_t>(source_channels(pass_), 1));
    g.grid = cut_into_boxes(image, wanted);
    g.grid.total = total;
    g.grid.box[0] = 1;
    g.grid.boxes[0] = pass_.batch;
    for (size_t axis = 0; axis < 3; ++axis) {
      const AxisPhase& a = g.axes[axis];
      g.extent[axis] =
          (g.grid.box[axis + 1] - 1) * a.source_step + a.highest_offset() - a.lowest_offset() + 1;
    }
    for (int64_t k = 0; k < source_channels(pass_); ++k)
      for (const PhaseTap& d : g.axes[0].taps)
        for (const PhaseTap& h : g.axes[1].taps)
          for (const PhaseTap& w : g.axes[2].taps)
            phase.offsets.push_back(k * plane(phase) +
                                    ((d.offset - g.axes[0].lowest_offset()) * g.extent[1] + h.offset -
                                     g.axes[1].lowest_offset()) *
                                        g.extent[2] +
                                    w.offset - g.axes[2].lowest_offset());
    phase.groups_per_task = std::max<int64_t>(1, kPositionsPerTask / count_of(g.grid.box));
    phase.tasks = ceil_div(pass_.groups, phase.groups_per_task) * g.grid.count();
  }

  // weights[phase][group][m][k][tap]
  bool pack_weights(const Bindings& bindings, float* weights, runtime::ThreadPool& pool) const {
    std::atomic<bool> finite{true};
    for (const NarrowPhase& phase : phases_) {
      const int64_t floats = result_channels(pass_) * terms(phase);
      if (floats == 0) continue;
      pool.parallel_for(pass_.groups, std::max<int64_t>(1, 4096 / floats), [&](int64_t begin, int64_t end) {
        for (int64_t group = begin; group < end; ++group) {
          float* out = weights + phase.weight_start + static_cast<size_t>(group * floats);
          pack_group(bindings, phase, group, out);
          if (!all_finite(out, floats)) finite.store(false, std::memory_order_relaxed);
        }
      });
    }
    return finite;
  }

  void pack_group(const Bindings& bindings, const NarrowPhase& phase, int64_t group, float* out) const {
    const auto& s = pass_.w.strides;
    const auto bytes = static_cast<int64_t>(size_of(pass_.w.dtype));
    const auto* base = static_cast<const std::byte*>(bindings[pass_.w.operand]);
    const bool forward = is_forward(pass_);
    const int64_t m_stride = forward ? s[0] : s[1], k_stride = forward ? s[1] : s[0];
    for (int64_t m = 0; m < result_channels(pass_); ++m)
      for (int64_t k = 0; k < source_channels(pass_); ++k)
        for (const PhaseTap& d : phase.gather.axes[0].taps)
          for (const PhaseTap& h : phase.gather.axes[1].taps)
            for (const PhaseTap& w : phase.gather.axes[2].taps) {
              const int64_t at = group * pass_.y_channels_per_group() * s[0] + m * m_stride + k * k_stride +
                                 d.tap * s[2] + h.tap * s[3] + w.tap * s[4];
              load_row(pass_.w.dtype, pass_.rounding, base + at * bytes, 1, 1, out++);
            }
  }

  void run_box(const Bindings& bindings, const NarrowPhase& phase, int64_t group, int64_t index,
               const float* weights, std::byte* scratch) const {
    const GatherPhase& g = phase.gather;
    const BoxGrid::Box box = g.grid.at(index);
    auto* strip = reinterpret_cast<float*>(scratch);
    auto* out = reinterpret_cast<float*>(scratch + strip_bytes_);
    const int64_t channels = result_channels(pass_), row_terms = terms(phase);
    if (row_terms > 0) load_source(bindings, phase, group, box, strip);
    const auto& [d, h, w] = g.axes;
    // Rows of results follow each other in the strip where the source advances by one row.
    const bool whole_planes = h.source_step == 1;
    const int64_t pitch = g.extent[2];
    kernels::cpu::RowSums rows;
    rows.offsets = phase.offsets.data();
    rows.terms = row_terms;
    rows.out_stride = out_stride(phase);
    for (int64_t m = 0; m < channels; m += kernels::cpu::kRowResults) {
      rows.results = static_cast<int>(std::min<int64_t>(kernels::cpu::kRowResults, channels - m));
      rows.weights = weights + phase.weight_start + static_cast<size_t>((group * channels + m) * row_terms);
      for (int64_t z = 0; z < box.size[1]; ++z) {
        for (int64_t y = 0; y < (whole_planes ? 1 : box.size[2]); ++y) {
          rows.source = strip + (z * d.source_step * g.extent[1] + y * h.source_step) * pitch;
          rows.out = out + y * pitch;
          rows.count = whole_planes ? (box.size[2] - 1) * pitch + box.size[3] : box.size[3];
          kernels::cpu::row_sums(rows);
        }
        for (int i = 0; i < rows.results; ++i)
          store_plane(bindings, g, group * channels + m + i, box, z, out + i * rows.out_stride);
      }
    }
  }

  void load_source(const Bindings& bindings, const NarrowPhase& phase, int64_t group, const BoxGrid::Box& box,
                   float* strip) const {
    const PassTensor& tensor = source_of(pass_);
    const auto bytes = static_cast<int64_t>(size_of(tensor.dtype));
    StripShape shape{.channels = source_channels(pass_), .extent = phase.gather.extent};
    for (size_t axis = 0; axis < 3; ++axis) {
      const AxisPhase& a = phase.gather.axes[axis];
      shape.start[axis] = box.first[axis + 1] * a.source_step + a.lowest_offset();
      shape.size[axis] = a.source_size;
    }
    const int64_t at = box.first[0] * tensor.strides[0] + group * source_channels(pass_) * tensor.strides[1];
    load_strip(tensor, pass_.rounding, static_cast<const std::byte*>(bindings[tensor.operand]) + at * bytes,
               shape, strip);
    std::fill_n(strip + shape.channels * shape.plane(), kernels::cpu::row_overrun(), 0.0F);
  }

  void store_plane(const Bindings& bindings, const GatherPhase& g, int64_t channel, const BoxGrid::Box& box,
                   int64_t z, const float* out) const {
    const PassTensor& result = pass_.result();
    const auto& s = result.strides;
    const auto bytes = static_cast<int64_t>(size_of(result.dtype));
    auto* base = static_cast<std::byte*>(bindings[result.operand]);
    const auto& [d, h, w] = g.axes;
    for (int64_t y = 0; y < box.size[2]; ++y) {
      const int64_t at =
          box.first[0] * s[0] + channel * s[1] + (d.first + (box.first[1] + z) * d.step) * s[2] +
          (h.first + (box.first[2] + y) * h.step) * s[3] + (w.first + box.first[3] * w.step) * s[4];
      store_row(result.dtype, base + at * bytes, w.step * s[4], out + y * g.extent[2], 1, box.size[3]);
    }
  }

  ConvPass pass_;
  int64_t slots_;
  std::unique_ptr<const Step> reference_;
  std::vector<NarrowPhase> phases_;
  std::vector<int64_t> first_task_;
  int64_t tasks_ = 0;
  bool leaves_source_ = false;
  size_t weight_bytes_ = 0, strip_bytes_ = 0, slot_bytes_ = 0;
};

class NarrowGatherCandidate final : public Candidate {
 public:
  const char* name() const override { return "cpu.narrow_gather"; }
  Support supports(const problem::Pass& pass) const override {
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (const Support dense = dense_gather().supports(pass); !dense.accepted()) return dense;
    if (result_channels(*conv) >= kernels::cpu::tile_width() / 2)
      return Support::no("a group has channels enough to fill a vector with them");
    if (is_forward(*conv) && conv->axes[2].stride > 1)
      return Support::no("a forward pass with a stride along W does not read rows of neighbours");
    int64_t terms = source_channels(*conv);
    if (terms > kMostSourceChannels)
      return Support::no("a group has more than 2048 source channels to keep in a strip");
    for (const problem::Window& window : conv->axes) terms *= window.kernel;
    if (terms > kMostTerms) return Support::no("a result is a sum of more than 2^20 products");
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
