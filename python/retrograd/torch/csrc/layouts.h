// SPDX-License-Identifier: Apache-2.0
// Strides that PyTorch gives its results.
#pragma once

#include <cstdint>
#include <vector>

#include "plan_cache.h"

namespace retrograd_torch {

enum class Format { kContiguous, kChannelsLast };

// (N, C, spatial…) dense in the given format; a rank below 3 is contiguous.
ResultLayout dense(const std::vector<int64_t>& sizes, Format format);

// PyTorch's suggested memory format of a tensor of rank 4 or 5: channels last where the strides of C, then
// the spatial axes from the last, then N do not fall. Sizes of 1 leave it open; a tensor that could be both
// is contiguous.
Format suggested(int rank, const int64_t* sizes, const int64_t* strides);

}  // namespace retrograd_torch
