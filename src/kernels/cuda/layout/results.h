// SPDX-License-Identifier: Apache-2.0
// From rows of channels and filters back to the caller's tensors.
#pragma once

#include "kernels/cuda/layout/channel_rows.h"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

enum class Result : unsigned char { kForward, kGradInput, kGradWeight };

// Weights as [y channels filled up][taps][x channels of a group filled up], FP16 or BF16, fewer than 2^31 of
// them.
void make_filter(const Conv& conv, int64_t y_filled, int64_t x_filled, RowType type, void* target,
                 Stream stream);
void take_filter(const Conv& conv, int64_t y_filled, int64_t x_filled, RowType type, const void* source,
                 Stream stream);
// Rows of all channels of all groups, filled up at their end.
void take_rows(const Conv& conv, Result result, int64_t filled, RowType type, const void* rows,
               Stream stream);

}  // namespace retrograd::kernels::cuda
