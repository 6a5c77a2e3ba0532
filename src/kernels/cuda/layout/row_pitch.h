// SPDX-License-Identifier: Apache-2.0
// Rows of elements side by side, from one pitch to another: channels-last tensors whose channels are no whole
// vectors, to rows of whole vectors and back.
#pragma once

#include <cstdint>

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// In elements; pitches are not below zero.
struct RowPitch {
  int64_t rows, length;
  int64_t from, to;
};

// What lies between a target's rows becomes zero. False: nothing was done, since an address is no multiple of
// 16, elements have one byte, rows fewer than 16, the target 4 GB, or 16 bytes and more lie between its rows.
bool change_row_pitch(const RowPitch& pitch, DType type, const void* source, void* target, Stream stream);

}  // namespace retrograd::kernels::cuda
