// SPDX-License-Identifier: Apache-2.0
// Cutting a pass for narrow_gather.
#include "engines/cpu/narrow_phases.h"

#include <algorithm>

#include "base/checked.h"
#include "engines/cpu/gather_sides.h"
#include "kernels/cpu/row_sums.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;

constexpr int64_t kLineFloats = 16;
constexpr int64_t kFloatsInL1 = 6144;    // of weights and rows that one call of the kernel goes through
constexpr int64_t kStripFloats = 49152;  // of one task: with the sums it stays in L2
constexpr int64_t kSumFloats = 98304;
constexpr int64_t kResultsPerTask = 384;
constexpr int64_t kFewestPositions = 256;
constexpr int64_t kPositionsPerTask = 2048;  // small planes are handed out together
constexpr int64_t kWantedTasks = 16;         // enough for the threads to share evenly

int64_t in_lines(int64_t floats) { return ceil_div(floats, kLineFloats) * kLineFloats; }

void cut_results(NarrowPhase& phase) {
  const auto most = static_cast<int64_t>(kernels::cpu::row_results());
  phase.block = ceil_div(phase.results, ceil_div(phase.results, most));
  phase.parts = ceil_div(phase.results, kResultsPerTask);
  phase.results_per_task = ceil_div(ceil_div(phase.results, phase.parts), phase.block) * phase.block;
  phase.parts = ceil_div(phase.results, phase.results_per_task);
  phase.results_per_task = std::min(phase.results_per_task, phase.results);
}

// Source channels whose weights and rows one call of the kernel finds in L1 again.
int64_t channels_in_l1(const NarrowPhase& phase) {
  const auto& [d, h, w] = phase.axes;
  const auto across = static_cast<int64_t>(w.offsets.size());
  const int64_t rows =
      static_cast<int64_t>(d.offsets.size() * h.offsets.size()) * std::min(across, w.source_step);
  const int64_t row = kernels::cpu::row_positions(static_cast<int>(phase.block)) + kLineFloats;
  const int64_t floats = rows * row + rows * across * phase.block;
  return std::clamp<int64_t>(kFloatsInL1 / std::max<int64_t>(floats, 1), 1, phase.source_channels);
}

void cut_positions(const ConvPass& pass, NarrowPhase& phase) {
  const auto& [d, h, w] = phase.axes;
  const Positions total{pass.batch, d.count, h.count, w.count};
  const int64_t per_task = ceil_div(count_of(total) * pass.groups * phase.parts, kWantedTasks);
  const int64_t wanted =
      std::min({kStripFloats / channels_in_l1(phase), kSumFloats / phase.results_per_task, per_task});
  phase.grid = cut_into_boxes({1, total[1], total[2], total[3]}, std::max(kFewestPositions, wanted));
  phase.grid.total[0] = phase.grid.boxes[0] = pass.batch;
  std::array<StripAxis, 3> strip_axes;
  for (size_t axis = 0; axis < 3; ++axis) {
    const AxisFold& a = phase.axes[axis];
    strip_axes[axis] = {a.lowest_offset(), a.highest_offset(), a.source_step, a.source_size};
  }
  phase.strips = ResidueStrips(strip_axes, phase.grid.box);
  phase.channels_per_block =
      std::clamp<int64_t>(kStripFloats / phase.strips.channel_pitch(), 1, channels_in_l1(phase));
  phase.groups_per_task = std::max<int64_t>(1, kPositionsPerTask / count_of(phase.grid.box));
  phase.groups_per_task =
      std::min(phase.groups_per_task, std::max<int64_t>(1, pass.groups * phase.grid.count() / kWantedTasks));
  phase.tasks = ceil_div(pass.groups, phase.groups_per_task) * phase.parts * phase.grid.count();
}

void lay_out_sums(NarrowPhase& phase) {
  const auto& box = phase.grid.box;
  // A wide dilation makes a pitch far beyond the row.
  const int64_t pitch = phase.strips.extent()[2];
  phase.whole_planes = 2 * pitch <= 3 * box[3];
  phase.row_pitch = phase.whole_planes ? pitch : in_lines(box[3] + kernels::cpu::row_overrun());
  phase.plane_pitch = in_lines(box[2] * phase.row_pitch + kernels::cpu::row_overrun());
  phase.out_pitch = box[1] * phase.plane_pitch;
}

void list_terms(const ConvPass& pass, NarrowPhase& phase) {
  const auto& [d, h, w] = phase.axes;
  const size_t terms = d.offsets.size() * h.offsets.size() * w.offsets.size();
  if (terms == 0) return;
  phase.offsets.reserve(terms);
  for (const int64_t od : d.offsets)
    for (const int64_t oh : h.offsets)
      for (const int64_t ow : w.offsets) phase.offsets.push_back(phase.strips.offset_of({od, oh, ow}));
  phase.tap_of.reserve(static_cast<size_t>(phase.residues()) * terms);
  for (size_t rd = 0; rd < d.residues.size(); ++rd)
    for (size_t rh = 0; rh < h.residues.size(); ++rh)
      for (size_t rw = 0; rw < w.residues.size(); ++rw)
        for (size_t od = 0; od < d.offsets.size(); ++od)
          for (size_t oh = 0; oh < h.offsets.size(); ++oh)
            for (size_t ow = 0; ow < w.offsets.size(); ++ow) {
              const int64_t td = d.taps[rd * d.offsets.size() + od], th = h.taps[rh * h.offsets.size() + oh],
                            tw = w.taps[rw * w.offsets.size() + ow];
              phase.tap_of.push_back((td * pass.axes[1].kernel + th) * pass.axes[2].kernel + tw);
            }
}

NarrowPhase plan_phase(const ConvPass& pass, const AxisFold& d, const AxisFold& h, const AxisFold& w) {
  NarrowPhase phase;
  phase.axes = {d, h, w};
  phase.kernel_taps = pass.axes[0].kernel * pass.axes[1].kernel * pass.axes[2].kernel;
  phase.channels = result_channels(pass);
  phase.source_channels = source_channels(pass);
  phase.results =
      phase.channels * static_cast<int64_t>(d.residues.size() * h.residues.size() * w.residues.size());
  cut_results(phase);
  cut_positions(pass, phase);
  lay_out_sums(phase);
  list_terms(pass, phase);
  for (const AxisFold& axis : phase.axes) phase.leaves_source |= phase.terms() > 0 && axis.leaves_source();
  return phase;
}

}  // namespace

NarrowPhase::Result NarrowPhase::result_at(int64_t index) const {
  const auto& [d, h, w] = axes;
  const auto in_w = static_cast<int64_t>(w.residues.size()), in_h = static_cast<int64_t>(h.residues.size());
  const int64_t residue = index % residues();
  return {index / residues(),
          {&d.residues[static_cast<size_t>(residue / in_w / in_h)],
           &h.residues[static_cast<size_t>(residue / in_w % in_h)],
           &w.residues[static_cast<size_t>(residue % in_w)]}};
}

void NarrowPhase::spread_weights(const float* taps, int64_t k, float* weights) const {
  for (int64_t first = 0; first < results; first += block) {
    const int64_t count = std::min(block, results - first);
    float* out = weights + (first * source_channels + k * count) * terms();
    for (int64_t i = 0; i < count; ++i) {
      const float* channel = taps + (first + i) / residues() * kernel_taps;
      const int64_t* index = tap_of.data() + (first + i) % residues() * terms();
      for (int64_t term = 0; term < terms(); ++term) out[term * count + i] = channel[index[term]];
    }
  }
}

std::vector<NarrowPhase> plan_narrow(const ConvPass& pass) {
  const auto folds_of = [&](const problem::Window& window) {
    return is_forward(pass) ? forward_folds(window) : grad_input_folds(window);
  };
  const std::vector<AxisFold> folds_d = folds_of(pass.axes[0]), folds_h = folds_of(pass.axes[1]),
                              folds_w = folds_of(pass.axes[2]);
  std::vector<NarrowPhase> phases;
  phases.reserve(folds_d.size() * folds_h.size() * folds_w.size());
  for (const AxisFold& d : folds_d)
    for (const AxisFold& h : folds_h)
      for (const AxisFold& w : folds_w) phases.push_back(plan_phase(pass, d, h, w));
  return phases;
}

}  // namespace retrograd::engines::cpu
