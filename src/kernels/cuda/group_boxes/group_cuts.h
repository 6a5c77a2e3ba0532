// SPDX-License-Identifier: Apache-2.0
// Products of groups out of boxes (group_rows.h), as plans make them: without a cut first, then cut in some
// dozens of ways.
#pragma once

#include <algorithm>

#include "kernels/cuda/counts.h"
#include "kernels/cuda/group_boxes/group_rows.h"

namespace retrograd::kernels::cuda {

inline constexpr int64_t kGroupShared = 96 << 10;  // of a block: two of them share a multiprocessor
inline constexpr int kGroupChunks = 24;            // of a place that a block takes, at most

// All but groups of a block and boxes; axes hold what one position stages. False: it is not taken.
bool set_group_product(GroupProduct& p, const Conv& conv, bool forward,
                       std::span<const ProductAxes> residues);
void set_groups(GroupProduct& p, int groups);
// The divisions of a product that is cut.
void set_divisions(GroupProduct& p);

inline int slabs_of(const GroupProduct& p) { return ceil_of(p.all_groups, p.groups); }

// Rows of eight places that a matrix is read from meet in so many of them in a bank of shared memory.
inline int conflicts_of(const GroupProduct& p) {
  const int step = p.axes[p.axes[2].places > 1 ? 2 : 1].step;
  return step % 8 == 0 ? 8 : step % 4 == 0 ? 4 : step % 2 == 0 ? 2 : 1;
}

// Numbers of groups that blocks may take, several sizes of slabs.
template <class Try>
void each_slab(GroupProduct p, Try&& try_slab) {
  for (const int chunks : {2, 4, 8, 12, 16, kGroupChunks}) {
    const int most = std::max(1, chunks / std::max(p.terms, p.columns));
    const int groups = ceil_of(p.all_groups, ceil_of(p.all_groups, most));
    if (groups == p.groups) continue;
    set_groups(p, groups);
    if (p.chunks <= kGroupChunks && p.tiles <= kGroupChunks) try_slab(p);
  }
}

// Boxes of at most `most` positions whose two stages fit.
template <class Try>
void each_box(const GroupProduct& product, int64_t most, Try&& try_box) {
  const int64_t d = product.axes[0].positions, h = product.axes[1].positions, w = product.axes[2].positions;
  const auto cut = [&](int64_t images, int64_t of_d, int64_t of_h, int64_t of_w) {
    GroupProduct p = product;
    const int64_t wanted[3] = {of_d, of_h, of_w};
    int64_t boxes = ceil_div(int64_t{p.batch}, images), positions = images, staged = images;
    for (int a = 0; a < 3; ++a) {
      GroupAxis& axis = p.axes[a];
      axis.places = ceil_of(axis.positions, ceil_div(int64_t{axis.positions}, wanted[a]));
      const int64_t all = int64_t{axis.places - 1} * axis.step + axis.staged;
      if (all >= 1 << 15) return;
      axis.staged = static_cast<int>(all);
      boxes *= ceil_div(int64_t{axis.positions}, int64_t{axis.places});
      positions *= axis.places, staged *= all;
      if (2 * staged * p.pitch > kGroupShared || boxes >= int64_t{1} << 31) return;
    }
    p.images = static_cast<int>(images);
    p.positions = static_cast<int>(positions), p.staged = static_cast<int>(staged);
    p.boxes = static_cast<uint32_t>(boxes);
    p.stage_bytes = p.staged * p.pitch + 16;  // one chunk more: pairs of eights are read at once
    try_box(p);
  };
  for (int64_t of_w = 4; std::min(of_w, w) <= most; of_w *= 2) {
    for (int64_t of_h = 1; std::min(of_h, h) * std::min(of_w, w) <= most; of_h *= 2) {
      for (int64_t of_d = 1; std::min(of_d, d) * std::min(of_h, h) * std::min(of_w, w) <= most; of_d *= 2) {
        cut(1, of_d, of_h, of_w);
        if (of_d >= d) break;
      }
      if (of_h >= h) break;
    }
    if (of_w >= w) break;
  }
  for (int64_t images = 2; images <= product.batch && images * d * h * w <= most; images *= 2)
    cut(images, d, h, w);
}

}  // namespace retrograd::kernels::cuda
