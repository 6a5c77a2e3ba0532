// SPDX-License-Identifier: Apache-2.0
// grad_weight of groups of few channels, NHWC, 16-bit types: w[o, c, t] = Σ_p y[p, o] · x[place(p, t), c] out
// of boxes in shared memory, as group_rows.h has them for forward.
//
// A block takes several groups and a part of all boxes: the box's y, and every pixel of x that some tap
// reads. A warp owns 16 channels of y by 16 of x and up to nine taps; warps that own the same share the
// pixels. The parts' sums go to the workspace and are added in order (part_sums.h). What lies between groups
// is dropped.
#pragma once

#include "base/host_device.h"
#include "kernels/cuda/group_boxes/group_rows.h"
#include "kernels/cuda/part_rows.h"

namespace retrograd::kernels::cuda {

struct GroupWeightsCut {
  GroupProduct product;  // of forward: terms are eights of x channels, columns of y channels
  int units;             // of a block: 16 channels of y by 16 of x
  bool paired;           // groups of eight channels on both sides: two a unit
  int of_warp, owners;   // taps of a warp; warps that have all of them
  int shares;            // warps of the same unit and taps
  int slices;            // blocks that share units and taps
  int filled;            // positions in whole 16s
  int y_pitch, y_bytes;  // of a staged place; of all
  int in_part, parts;    // boxes of a part
  int64_t weights;       // sums of a part
};
struct GroupWeights {
  GroupWeightsCut cut;
  bool fits = false;
  PartRows rows;
  double microseconds = 0;  // of a GPU with 132 multiprocessors, the parts' sums included
};
// axes: of forward. Of sizes alone.
GroupWeights group_weights_plan(const Conv& conv, const ProductAxes& axes);

// conv: 16-bit tensors, x and y NHWC at multiples of 16 bytes. sums: parts · weights floats.
void group_weights(const Conv& conv, const GroupWeights& plan, float* sums, Stream stream);

// Where unit `number` of a block begins: eights of channels of y and of x.
struct GroupUnit {
  int y, x;
  int y_end;  // of its group
};
RG_HOST_DEVICE inline GroupUnit group_unit(const GroupWeightsCut& cut, int number) {
  const GroupProduct& p = cut.product;
  if (cut.paired) return {2 * number, 2 * number, 2 * number + 2};
  const int across = (p.terms + 1) / 2, down = (p.columns + 1) / 2;
  const int group = number / (across * down), rest = number % (across * down);
  return {group * p.columns + rest / across * 2, group * p.terms + rest % across * 2,
          (group + 1) * p.columns};
}
// Whether channel o of y and c of x, of a unit's 16 each, are a weight's; their channels of the block.
struct GroupPair {
  int y, x;
  bool live;
};
RG_HOST_DEVICE inline GroupPair group_pair(const GroupWeightsCut& cut, const GroupUnit& unit, int groups,
                                           int o, int c) {
  const GroupProduct& p = cut.product;
  GroupPair pair{unit.y * 8 + o, unit.x * 8 + c, false};
  pair.live = pair.y < unit.y_end * 8 && pair.y < groups * p.columns * 8 &&
              pair.y / p.result_channels == pair.x / p.source_channels;
  return pair;
}

}  // namespace retrograd::kernels::cuda
