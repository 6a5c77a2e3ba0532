// SPDX-License-Identifier: Apache-2.0
// Chunks of rows.
#include "engines/cpu/depthwise/depthwise_lines.h"

#include <algorithm>

#include "base/checked.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/taps.h"
#include "kernels/cpu/depthwise/depthwise_line.h"

namespace retrograd::engines::cpu {
namespace {

constexpr int64_t kChunkPositions = 2048;  // 8 KiB: source and result stay in L1
constexpr int64_t kMostPositions = int64_t{1} << 22;
constexpr int64_t kMostReach = 8192;
constexpr int64_t kMostTaps = 16;  // more pay for transposing 16 rows, whose loads are aligned
constexpr int64_t kLeastPositions = 16;

}  // namespace

std::optional<Reason> unfit_for_lines(const problem::ConvPass& pass, const Machine& /*machine*/) {
  if (pass.x_channels != pass.groups || pass.y_channels != pass.groups)
    return "a group has more than one channel";
  for (size_t axis = 0; axis < 2; ++axis) {
    const problem::Window& w = pass.axes[axis];
    if (w.x != 1 || w.y != 1 || w.kernel != 1) return "there is more than one row";
    if (w.pad_lo != 0) return "the only row is read from the padding";
  }
  const problem::Window& w = pass.axes[2];
  if (w.stride != 1) return "the stride leaves gaps in the rows";
  if (pass.x.strides[4] != 1 || pass.y.strides[4] != 1) return "places along W lie apart";
  if (std::min(w.x, w.y) < kLeastPositions) return "rows are short";
  if (std::max(w.x, w.y) > kMostPositions) return "rows are longer than 2^22";
  if (w.kernel > kMostTaps) return "the kernel has more than 16 taps";
  if (has_dead_taps(pass)) return "there are taps that read padding alone";
  if ((w.kernel - 1) * w.dilation > kMostReach) return "taps lie more than 2^13 places apart";
  return std::nullopt;
}

LineChunks::LineChunks(const AxisPhase& phase, const VectorShape& vectors)
    : total_(phase.count),
      size_(phase.source_size),
      behind_(std::max(kernels::cpu::kMostLineLanes, vectors.row_overrun())),
      lowest_(phase.lowest_offset()),
      reach_(phase.highest_offset() - phase.lowest_offset()),
      positions_(ceil_div(total_, ceil_div(total_, kChunkPositions))) {
  for (const PhaseTap& tap : phase.taps) offsets_.push_back(tap.offset - lowest_);
}

int64_t LineChunks::count() const { return ceil_div(total_, positions_); }

problem::Range LineChunks::at(int64_t chunk) const {
  return {chunk * positions_, std::min((chunk + 1) * positions_, total_)};
}

int64_t LineChunks::source_floats() const { return positions_ + reach_ + behind_; }

template <class Load>
void LineChunks::load_chunk(int64_t chunk, float* out, const Load& load) const {
  const problem::Range positions = at(chunk);
  const int64_t first = positions.begin + lowest_, end = positions.end + lowest_ + reach_;
  const int64_t inside = std::clamp<int64_t>(first, 0, size_), inside_end = std::clamp(end, inside, size_);
  float* const begin = out;
  out = std::fill_n(out, inside - first, 0.0F);
  load(inside, inside_end - inside, out);
  out += inside_end - inside;
  std::fill(out, begin + (end - first) + behind_, 0.0F);
}

void LineChunks::load_source(const problem::PassTensor& tensor, OperandRounding rounding,
                             const std::byte* row, int64_t chunk, float* out) const {
  load_chunk(chunk, out, [&](int64_t first, int64_t places, float* to) {
    load_row(tensor.dtype, rounding, row + first * static_cast<int64_t>(size_of(tensor.dtype)), 1, places,
             to);
  });
}

void LineChunks::load_valid(int64_t chunk, float* out) const {
  load_chunk(chunk, out, [](int64_t, int64_t places, float* to) { std::fill_n(to, places, 1.0F); });
}

}  // namespace retrograd::engines::cpu
