// SPDX-License-Identifier: Apache-2.0
// forward and grad_input of groups of 8 to 32 channels, channels last, 16-bit types: a block takes several
// groups, so that it reads and writes long runs of a place's channels.
#pragma once

#include "kernels/cuda/dense/gather_in_place.h"

namespace retrograd::kernels::cuda {

// Channels of a group in eights, and how groups and taps are shared out. groups == 0: is not taken.
struct GroupRows {
  int terms, columns;  // eights of source and result channels of a group
  int groups;          // of a block
  int slabs;           // blocks that all groups are shared out to
  int weight_bytes;    // of a block's weights in shared memory, at most
};
// Of sizes alone; layouts and types are the caller's business.
GroupRows group_rows_plan(const Conv& conv, bool forward);

// product: of 16-bit tensors, channels last, at multiples of 16 bytes.
void group_rows(const GatherProduct& product, const GroupRows& plan, std::span<const ProductAxes> residues,
                Stream stream);

}  // namespace retrograd::kernels::cuda
