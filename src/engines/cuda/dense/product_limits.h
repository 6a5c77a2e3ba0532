// SPDX-License-Identifier: Apache-2.0
// What every product of tiles on a GPU asks of a convolution.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cuda {

// The longest sum of a result.
int64_t terms_of(const problem::ConvPass& pass);
// Whether f32 sums of so many terms may be made of three TF32 products each: those leave out up to 2^-21 of a
// product, which is within the error of FP32 only in a sum.
Support takes_split_products(int64_t terms);

// Something to add up, more than one channel a group, and sizes that 32-bit counts of places, taps and
// channels hold.
Support takes_products(const problem::ConvPass& pass);

}  // namespace retrograd::engines::cuda
