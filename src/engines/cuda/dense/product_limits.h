// SPDX-License-Identifier: Apache-2.0
// What every product of tiles on a GPU asks of a convolution.
#pragma once

#include "engines/cuda/layouts.h"
#include "engines/engine.h"

namespace retrograd::engines::cuda {

// Whether kernels cannot count places along an axis with 32 bits.
bool is_far(const Window& w, int64_t end = int64_t{1} << 29);
// The longest sum of a result.
int64_t terms_of(const ConvPass& pass);
// Whether f32 sums of so many terms may be made of three TF32 products each: those leave out up to 2^-21 of a
// product, which is within the error of FP32 only in a sum.
Support takes_split_products(int64_t terms);

// Something to add up, more than one channel a group, and sizes that 32-bit counts of places, taps and
// channels hold.
Support takes_products(const ConvPass& pass);

}  // namespace retrograd::engines::cuda
