// SPDX-License-Identifier: Apache-2.0
// Convolutions whose first or last taps never meet x, as where the kernel is longer than the image: the same
// results from a shorter kernel.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines {

struct ShortKernel {
  problem::ConvPass pass;
  int64_t offset = 0;  // of the first tap that is left, in elements of the weight
};

// Along each axis the taps from the first to the last that meets x; those between them may meet nothing.
// Needs a pass that has_dead_ends accepts.
ShortKernel shorten(const problem::ConvPass& pass);

// Accepts a convolution with such taps, and at least one that meets x.
Support has_dead_ends(const problem::Pass& pass);

}  // namespace retrograd::engines
