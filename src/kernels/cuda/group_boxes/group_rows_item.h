// SPDX-License-Identifier: Apache-2.0
// What group_rows' kernel knows of boxes, pixels, taps and weights, by their numbers.
#pragma once

#include "base/host_device.h"
#include "kernels/cuda/group_boxes/group_rows.h"

namespace retrograd::kernels::cuda {

// A box: its first image and positions.
struct GroupBoxAt {
  int n, at[3];
};
RG_DEVICE inline GroupBoxAt group_box_at(const GroupProduct& p, uint32_t number) {
  GroupBoxAt box;
  RG_UNROLL
  for (int a = 2; a >= 0; --a) {
    const uint32_t rest = p.by_boxes[a].quotient(number);
    box.at[a] = static_cast<int>(number - rest * p.by_boxes[a].divisor) * p.axes[a].places;
    number = rest;
  }
  box.n = static_cast<int>(number) * p.images;
  return box;
}

// A place in a box: image and index along the axes behind the box's first. Offsets: in chunks of 16 bytes.
struct GroupPlace {
  int offset;  // behind the box's first in memory
  int n, at[3];
};
RG_DEVICE inline GroupPlace group_place(int number, const FastDiv (&by)[3]) {
  GroupPlace place{};
  auto rest = static_cast<uint32_t>(number);
  RG_UNROLL
  for (int a = 2; a >= 0; --a) {
    const uint32_t more = by[a].quotient(rest);
    place.at[a] = static_cast<int>(rest - more * by[a].divisor);
    rest = more;
  }
  place.n = static_cast<int>(rest);
  return place;
}
// Place `number` of what is staged.
RG_DEVICE inline GroupPlace group_staged(const GroupProduct& p, int number) {
  GroupPlace place = group_place(number, p.by_staged);
  int at = place.n;
  RG_UNROLL
  for (int a = 0; a < 3; ++a) at = at * p.axes[a].source + place.at[a];
  place.offset = at * p.all_groups * p.terms;
  return place;
}
// Of the box's first staged place, which may lie outside.
RG_DEVICE inline int64_t group_source_offset(const GroupProduct& p, const GroupBoxAt& box) {
  int64_t at = box.n;
  RG_UNROLL
  for (int a = 0; a < 3; ++a)
    at = at * p.axes[a].source + int64_t{box.at[a]} * p.axes[a].step + p.axes[a].low;
  return at * p.all_groups * p.terms;
}
// Position `number` of a box: where residue 0 writes.
RG_DEVICE inline GroupPlace group_position(const GroupProduct& p, int number) {
  GroupPlace place = group_place(number, p.by_places);
  int at = place.n;
  RG_UNROLL
  for (int a = 0; a < 3; ++a) at = at * p.axes[a].result + place.at[a] * p.axes[a].result_step;
  place.offset = at * p.all_groups * p.columns;
  return place;
}
// The staged place that its first tap reads, if that lies at `low`.
RG_DEVICE inline int group_window(const GroupProduct& p, const GroupPlace& position) {
  int at = position.n;
  RG_UNROLL
  for (int a = 0; a < 3; ++a) at = at * p.axes[a].staged + position.at[a] * p.axes[a].step;
  return at;
}
// Of the box's first position and a residue.
RG_DEVICE inline int64_t group_result_offset(const GroupProduct& p, const GroupBoxAt& box,
                                             const int (&residue)[3]) {
  int64_t at = box.n;
  RG_UNROLL
  for (int a = 0; a < 3; ++a)
    at = at * p.axes[a].result + int64_t{box.at[a]} * p.axes[a].result_step + residue[a];
  return at * p.all_groups * p.columns;
}

RG_DEVICE inline void group_residue(const GroupProduct& p, int number, int (&residue)[3]) {
  auto w = static_cast<uint32_t>(number);
  uint32_t h = p.by_residues_w.split(w);
  const uint32_t d = p.by_residues_h.split(h);
  residue[0] = static_cast<int>(d), residue[1] = static_cast<int>(h), residue[2] = static_cast<int>(w);
}
RG_DEVICE inline int group_taps(const GroupProduct& p, const int (&residue)[3]) {
  return p.axes[0].residue[residue[0]].taps * p.axes[1].residue[residue[1]].taps *
         p.axes[2].residue[residue[2]].taps;
}
// Tap `number` of a residue: staged places behind the window's first, and which weights.
struct GroupTap {
  int staged, at[3];
};
RG_DEVICE inline GroupTap group_tap(const GroupProduct& p, const int (&residue)[3], int number) {
  GroupTap tap{};
  int scale = 1;
  RG_UNROLL
  for (int a = 2; a >= 0; --a) {
    const GroupAxis& axis = p.axes[a];
    const GroupAxis::Residue& r = axis.residue[residue[a]];
    const int j = number % r.taps;
    number /= r.taps;
    tap.staged += (r.first + j * axis.tap_step) * scale;
    tap.at[a] = r.tap_first + j * axis.tap_stride;
    scale *= axis.staged;
  }
  return tap;
}

// Which weights word (quad, eight k of source channels, lane, tile) of a tap holds: those of one result
// channel and of two source channels side by side. live: whether they are in one group, and there.
struct GroupWeight {
  int group, column;  // of a block: group before joining; result channel in it
  int term[2];        // source channels in it
  bool live[2];
};
RG_DEVICE inline GroupWeight group_weight(const GroupProduct& p, int quad, int k, int lane, int tile) {
  const int eight = quad * kGroupQuad + tile, column = eight % p.columns * 8 + lane / 4;
  const int in = column / p.result_channels;
  GroupWeight weight{eight / p.columns * p.joined + in, column % p.result_channels, {}, {}};
  RG_UNROLL
  for (int i = 0; i < 2; ++i) {
    const int term = k * 8 + lane % 4 * 2 + i;
    weight.term[i] = term % p.source_channels;
    weight.live[i] = eight < p.tiles && term / p.source_channels == in;
  }
  return weight;
}

}  // namespace retrograd::kernels::cuda
