// SPDX-License-Identifier: Apache-2.0
// What every product of tiles on a GPU asks of a convolution.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cuda {

// Three TF32 products leave out up to 2^-21 of a product, which is within the error of FP32 only in a sum.
constexpr int64_t kFewestTerms = 8;
int64_t terms_of(const problem::ConvPass& pass);

// Something to add up, more than one channel a group, and sizes that 32-bit counts of places, taps and
// channels hold.
Support takes_products(const problem::ConvPass& pass);

}  // namespace retrograd::engines::cuda
