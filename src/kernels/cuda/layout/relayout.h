// SPDX-License-Identifier: Apache-2.0
// A tensor's elements to where another tensor of the same sizes has them, as they are. Any strides, of the
// source 0 and negative ones, too.
//
// How it is cut: axes that follow each other in both tensors are one. Where both have the same fastest axis,
// threads go along it, in vectors where sizes, strides and addresses allow it; else tiles of the two fastest
// axes go through shared memory, so that both sides move whole sectors.
#pragma once

#include <cstdint>

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

struct RelayoutPlan {
  int axes = 1;    // outermost first; the last is the target's fastest
  int across = 0;  // the source's fastest; axes - 1 where it is the same
  int64_t sizes[5] = {1, 1, 1, 1, 1};
  int64_t from[5] = {}, to[5] = {};  // strides in elements
};
RelayoutPlan relayout_plan(const int64_t (&sizes)[5], const int64_t (&from)[5], const int64_t (&to)[5]);

// The same in vectors of the returned number of elements, 16 bytes at most; `alignment`: what the addresses
// are multiples of, in bytes. 1: nothing changes.
int widen(RelayoutPlan& plan, int element_bytes, int alignment);

// Fewer than 2^31 elements, at least one.
void relayout(const int64_t (&sizes)[5], const Tensor& source, const Tensor& target, Stream stream);

// Rows of elements side by side, from one pitch to another: channels-last tensors whose channels are no whole
// vectors, to rows of whole vectors and back. In elements; pitches are not below zero.
struct RowPitch {
  int64_t rows, length;
  int64_t from, to;
};

// What lies between a target's rows becomes zero. False: nothing was done, since an address is no multiple of
// 16, elements have one byte, rows fewer than 16, the target 4 GB, or 16 bytes and more lie between its rows.
bool change_row_pitch(const RowPitch& pitch, DType type, const void* source, void* target, Stream stream);

}  // namespace retrograd::kernels::cuda
