// SPDX-License-Identifier: Apache-2.0
// Where a kernel of grad_weight stores its sums: where the weights lie, as a filter that is copied there, or
// as parts in FP32, which add_weight_parts adds.
#pragma once

#include <array>

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

enum class WeightResults : unsigned char {
  kInPlace,  // in w
  kFilter,   // as [y channel][tap][x channel, filled up] of the operands' type, which is w's, too
  kParts     // as [part][y channel][tap][x channel, filled up] in FP32
};

// Of sums over all places, of operands of the type `rows`: in place where eight channels can be stored at
// once, an aligned address given.
WeightResults whole_results(const Conv& conv, DType rows);

// From y channel to y channel, along d, h and w, in place or in a filter. Multiples of eight; x channels lie
// side by side.
using WeightStrides = std::array<int64_t, 4>;
WeightStrides strides_of(const Conv& conv, WeightResults results);

}  // namespace retrograd::kernels::cuda
