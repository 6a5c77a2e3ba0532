// SPDX-License-Identifier: Apache-2.0
// A convolution as a product of groups of few channels out of boxes.
#include "kernels/cuda/group_boxes/group_cuts.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int64_t kMostTerms = 16, kMostColumns = 16, kMostTaps = 512, kEnd = int64_t{1} << 31;

int64_t joined_groups(int64_t groups, int64_t terms, int64_t columns) {
  for (const int64_t joined : {1, 2, 4, 8})
    if (joined * terms % 8 == 0 && joined * columns % 8 == 0) return groups % joined == 0 ? joined : 0;
  return 0;
}

// False: too many residues.
bool set_axes(GroupProduct& p, std::span<const ProductAxes> residues) {
  p.residues = 1;
  for (size_t a = 0; a < 3; ++a) {
    GroupAxis& axis = p.axes[a];
    const ProductAxis& first = residues[0][a];
    int64_t low = kEnd, high = -kEnd;
    axis.residues = 0;
    for (const ProductAxes& axes : residues) {
      const ProductAxis& r = axes[a];
      if (r.result_first != axis.residues) continue;  // met before
      if (axis.residues == kGroupResidues) return false;
      axis.residue[axis.residues++] = {static_cast<int>(r.first), static_cast<int>(r.taps),
                                       static_cast<int>(r.tap_first), static_cast<int>(r.results)};
      if (r.taps == 0) continue;
      if (r.taps > 1)
        axis.tap_step = static_cast<int>(r.tap_step), axis.tap_stride = static_cast<int>(r.tap_stride);
      const int64_t last = r.first + (r.taps - 1) * r.tap_step;
      low = std::min({low, r.first, last}), high = std::max({high, r.first, last});
    }
    if (low > high) low = high = 0;
    axis.low = static_cast<int>(low);
    for (int r = 0; r < axis.residues; ++r)
      axis.residue[r].first = axis.residue[r].taps == 0 ? 0 : axis.residue[r].first - axis.low;
    axis.positions = static_cast<int>(first.results);
    axis.source = static_cast<int>(first.source);
    axis.step = static_cast<int>(first.step);
    axis.result_step = static_cast<int>(first.result_step);
    axis.staged = static_cast<int>(high - low) + 1;
    p.residues *= axis.residues;
  }
  return true;
}

bool leaves_source(const GroupAxis& axis) {
  for (int r = 0; r < axis.residues; ++r) {
    const GroupAxis::Residue& of = axis.residue[r];
    const int reach = (of.taps - 1) * axis.tap_step, at = axis.low + of.first;
    if (of.taps > 0 && (at + std::min(reach, 0) < 0 ||
                        at + (of.results - 1) * axis.step + std::max(reach, 0) >= axis.source))
      return true;
  }
  return false;
}

}  // namespace

bool set_group_product(GroupProduct& p, const Conv& conv, bool forward,
                       std::span<const ProductAxes> residues) {
  const int64_t terms = forward ? conv.x_channels : conv.y_channels,
                columns = forward ? conv.y_channels : conv.x_channels;
  const int64_t joined = joined_groups(conv.groups, terms, columns);
  int64_t taps = 1;
  for (const Axis& axis : conv.axes) taps *= axis.kernel;
  if (joined == 0 || terms == 0 || columns == 0 || joined * terms > kMostTerms * 8 ||
      joined * columns > kMostColumns * 8 || residues.empty() || taps > kMostTaps || !set_axes(p, residues))
    return false;
  p.forward = forward;
  p.batch = static_cast<int>(conv.batch);
  p.joined = static_cast<int>(joined);
  p.source_channels = static_cast<int>(terms), p.result_channels = static_cast<int>(columns);
  p.terms = static_cast<int>(joined * terms / 8), p.columns = static_cast<int>(joined * columns / 8);
  p.all_groups = static_cast<int>(conv.groups / joined);
  p.taps = 1;
  p.repair = joined > 1;
  int64_t source = conv.batch * conv.groups * terms / 8, result = conv.batch * conv.groups * columns / 8;
  for (int a = 0; a < 3; ++a) {
    GroupAxis& axis = p.axes[a];
    axis.result = static_cast<int>(forward ? conv.axes[a].y : conv.axes[a].x);
    source *= axis.source, result *= axis.result;
    int count = 0;
    for (int r = 0; r < axis.residues; ++r) count += axis.residue[r].taps;
    p.taps *= count;
    p.repair = p.repair || leaves_source(axis);
  }
  return source < kEnd && result < kEnd;  // chunks of 16 bytes
}

void set_groups(GroupProduct& p, int groups) {
  p.groups = groups;
  p.chunks = groups * p.terms, p.tiles = groups * p.columns;
  p.quads = ceil_of(p.tiles, kGroupQuad);
  p.pitch = (p.chunks | 1) * 16;
}

void set_divisions(GroupProduct& p) {
  p.by_chunks = FastDiv(p.chunks), p.by_quads = FastDiv(p.quads);
  p.by_tiles = FastDiv(ceil_of(p.positions, kGroupTile));
  p.by_residues_w = FastDiv(p.axes[2].residues), p.by_residues_h = FastDiv(p.axes[1].residues);
  for (int a = 0; a < 3; ++a) {
    p.by_places[a] = FastDiv(p.axes[a].places);
    p.by_staged[a] = FastDiv(p.axes[a].staged);
    p.by_boxes[a] = FastDiv(ceil_of(p.axes[a].positions, p.axes[a].places));
  }
}

}  // namespace retrograd::kernels::cuda
