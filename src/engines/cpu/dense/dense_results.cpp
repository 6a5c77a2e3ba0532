// SPDX-License-Identifier: Apache-2.0
// Sums [position][m] are turned over to rows of the result; rows of a strided result are woven from the
// phases of W.
#include "engines/cpu/dense/dense_results.h"

#include <algorithm>
#include <array>

#include "engines/cpu/gather_sides.h"
#include "engines/cpu/rows.h"
#include "kernels/cpu/layout/row_copy.h"
#include "kernels/cpu/layout/transpose.h"

namespace retrograd::engines::cpu {

using problem::PassTensor;

DenseResults::DenseResults(const problem::ConvPass& pass, const DenseBlocking& cut)
    : pass_(pass), cut_(cut), phase_floats_(count_of(cut.grid.box) * cut.m_block) {}

int64_t DenseResults::row_floats() const {
  // Woven rows have one of all phases besides, which is converted.
  const auto ways = static_cast<int64_t>(cut_.w_phases);
  return cut_.m_block * cut_.grid.box[3] * ways * (rows_together() + (ways > 1 ? 1 : 0));
}

// Rows of a plane that are turned over at once.
int64_t DenseResults::rows_together() const {
  constexpr int64_t kFloats = 4096;
  const int64_t row = cut_.m_block * cut_.grid.box[3] * static_cast<int64_t>(cut_.w_phases);
  return std::clamp<int64_t>(kFloats / row, 1, cut_.grid.box[2]);
}

bool DenseResults::are_direct(bool cells) const {
  return pass_.result().dtype == (cells ? DType::kBF16 : DType::kF32) && pass_.result().strides[1] == 1 &&
         !cut_.images_inside;
}

std::byte* DenseResults::results_of(const Bindings& bindings, const DenseTask& task, size_t phase) const {
  const auto& s = pass_.result().strides;
  int64_t at = task.box.first[0] * s[0] + task.group * result_channels(pass_) + task.m_first;
  for (size_t i = 0; i < 3; ++i) {
    const AxisPhase& axis = cut_.phases[phase].axes[i];
    at += (axis.first + task.box.first[i + 1] * axis.step) * s[i + 2];
  }
  return static_cast<std::byte*>(bindings[pass_.result().operand]) +
         at * static_cast<int64_t>(size_of(pass_.result().dtype));
}

SumPlaces DenseResults::result_places(size_t phase) const {
  const auto& s = pass_.result().strides;
  const auto& [d, h, w] = cut_.phases[phase].axes;
  return {s[0], {d.step * s[2], h.step * s[3], w.step * s[4]}};
}

SumPlaces DenseResults::sum_places(const DenseTask& task) const {
  const auto& box = task.box.size;
  const int64_t w = cut_.m_block * (cut_.images_inside ? box[0] : 1), h = w * box[3], d = h * box[2];
  return {cut_.images_inside ? cut_.m_block : d * box[1], {d, h, w}};
}

void DenseResults::store(const Bindings& bindings, const DenseTask& task) const {
  for (size_t first = 0; first < cut_.phases.size(); first += cut_.w_phases)
    store_phases(bindings, task, first);
}

// Phases that differ along W only fill the same rows of the result, one after the other.
void DenseResults::store_phases(const Bindings& bindings, const DenseTask& task, size_t first) const {
  const auto& s = pass_.result().strides;
  const auto& [d, h, any_w] = cut_.phases[first].axes;
  const auto& box = task.box;
  const int64_t depth = std::min(box.size[1], d.count - box.first[1]);
  const int64_t height = std::min(box.size[2], h.count - box.first[2]);
  const int64_t images = cut_.images_inside ? box.size[0] : 1;  // between two neighbours of the sums
  const bool woven = cut_.w_phases > 1 && s[1] != 1;
  // Rows that follow each other in the sums and in the result are one; plain FP32 needs no room for them.
  const bool joined =
      cut_.w_phases == 1 && h.step == 1 && box.size[3] == any_w.count && s[4] == 1 && s[3] == any_w.count;
  const int64_t together = joined && pass_.result().dtype == DType::kF32 ? height
                           : joined || woven                             ? rows_together()
                                                                         : 1;
  for (int64_t n = 0; n < box.size[0]; ++n)
    for (int64_t z = 0; z < depth; ++z)
      for (int64_t y = 0; y < height; y += together) {
        const int64_t line = (z * box.size[2] + y) * box.size[3];
        const int64_t position =
            cut_.images_inside ? line * images + n : n * box.size[1] * box.size[2] * box.size[3] + line;
        const int64_t at =
            (box.first[0] + n) * s[0] + (task.group * result_channels(pass_) + task.m_first) * s[1] +
            (d.first + (box.first[1] + z) * d.step) * s[2] + (h.first + (box.first[2] + y) * h.step) * s[3];
        const Row row{.at = at + box.first[3] * any_w.step * s[4],
                      .channels = task.m_count,
                      .sums = task.sums + position * cut_.m_block +
                              (cut_.w_phases > 1 ? 0 : static_cast<int64_t>(first) * phase_floats_),
                      .sum_stride = images * cut_.m_block};
        const int64_t rows = std::min(together, height - y);
        if (woven)
          store_woven(bindings, task, row, first, rows, h.step * s[3]);
        else if (cut_.w_phases > 1)
          store_phase_places(bindings, task, row, first);
        else
          store_plain(bindings, row,
                      joined ? rows * any_w.count : std::min(box.size[3], any_w.count - box.first[3]),
                      task.row);
      }
}

// result[x·step + m] = sums[x·sum_stride + m]: channels lie side by side in both.
void DenseResults::store_places(std::byte* base, const Row& r, int64_t step, int64_t count) const {
  store_rows(pass_.result().dtype, base, step, r.sums, r.sum_stride, count, r.channels);
}

// result[m·s1 + x·s4] = rows[m·pitch + x]
void DenseResults::store_channels(std::byte* base, const float* rows, int64_t pitch, int64_t channels,
                                  int64_t count) const {
  const PassTensor& result = pass_.result();
  const int64_t channel = result.strides[1], step = result.strides[4];
  if (step == 1) return store_rows(result.dtype, base, channel, rows, pitch, channels, count);
  for (int64_t m = 0; m < channels; ++m)
    store_row(result.dtype, base + m * channel * static_cast<int64_t>(size_of(result.dtype)), step,
              rows + m * pitch, 1, count);
}

// result[at + m·s1 + x·s4] = sums[x·sum_stride + m]
void DenseResults::store_plain(const Bindings& bindings, const Row& r, int64_t count, float* scratch) const {
  const PassTensor& result = pass_.result();
  const auto& s = result.strides;
  const auto bytes = static_cast<int64_t>(size_of(result.dtype));
  std::byte* base = static_cast<std::byte*>(bindings[result.operand]) + r.at * bytes;
  if (s[1] == 1) {
    store_places(base, r, s[4], count);
  } else if (result.dtype == DType::kF32 && s[4] == 1) {
    kernels::cpu::transpose(r.sums, r.sum_stride, reinterpret_cast<float*>(base), s[1], count, r.channels);
  } else {
    kernels::cpu::transpose(r.sums, r.sum_stride, scratch, count, count, r.channels);
    store_channels(base, scratch, count, r.channels, count);
  }
}

// Phases of W whose channels lie side by side: each goes to its places, and nothing is woven.
void DenseResults::store_phase_places(const Bindings& bindings, const DenseTask& task, const Row& r,
                                      size_t first) const {
  const PassTensor& result = pass_.result();
  const auto bytes = static_cast<int64_t>(size_of(result.dtype));
  std::byte* base = static_cast<std::byte*>(bindings[result.operand]) + r.at * bytes;
  for (size_t way = 0; way < cut_.w_phases; ++way) {
    const DensePhase& phase = cut_.phases[first + way];
    const AxisPhase& w = phase.axes[2];
    Row part = r;
    part.sums += static_cast<int64_t>(first + way) * phase_floats_;
    if (phase.taps == 0) {  // the same for all of them
      part.sums = task.row;
      part.sum_stride = 0;
      for (int64_t m = 0; m < r.channels; ++m) task.row[m] = task.bias != nullptr ? task.bias[m] : 0.0F;
    }
    store_places(base + w.first * result.strides[4] * bytes, part, w.step * result.strides[4],
                 std::clamp<int64_t>(w.count - task.box.first[3], 0, task.box.size[3]));
  }
}

// The phases of W fill rows together: some rows are turned over to [phase][m][row][position], then each is
// woven.
void DenseResults::store_woven(const Bindings& bindings, const DenseTask& task, const Row& r, size_t first,
                               int64_t rows, int64_t row_step) const {
  const PassTensor& result = pass_.result();
  const auto& s = result.strides;
  const auto bytes = static_cast<int64_t>(size_of(result.dtype));
  const int64_t ways = static_cast<int64_t>(cut_.w_phases), begin = task.box.first[3];
  const int64_t length = task.box.size[3], channel = rows * length;
  kernels::cpu::WovenRows woven{.in = task.row,
                                .way_stride = cut_.m_block * channel,
                                .ways = ways,
                                .in_stride = channel,
                                .rows = r.channels};
  woven.end = std::min((begin + length) * ways, pass_.axes[2].x) - begin * ways;
  for (int64_t way = 0; way < ways; ++way) {
    const int64_t index = static_cast<int64_t>(first) + way;
    const DensePhase& phase = cut_.phases[static_cast<size_t>(index)];
    float* block = task.row + way * woven.way_stride;
    if (phase.taps == 0)
      for (int64_t m = 0; m < r.channels; ++m)
        std::fill_n(block + m * channel, channel, task.bias != nullptr ? task.bias[m] : 0.0F);
    else
      kernels::cpu::transpose(r.sums + index * phase_floats_, r.sum_stride, block, channel, channel,
                              r.channels);
  }
  auto* base = static_cast<std::byte*>(bindings[result.operand]) + r.at * bytes;
  const bool in_place = result.dtype == DType::kF32 && s[4] == 1;
  float* const row = task.row + ways * woven.way_stride;
  for (int64_t y = 0; y < rows; ++y, woven.in += length, base += row_step * bytes) {
    woven.out = in_place ? reinterpret_cast<float*>(base) : row;
    woven.out_stride = in_place ? s[1] : ways * length;
    kernels::cpu::weave_rows(woven);
    if (!in_place) store_channels(base, row, woven.out_stride, r.channels, woven.end);
  }
}

}  // namespace retrograd::engines::cpu
