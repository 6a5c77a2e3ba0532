// SPDX-License-Identifier: Apache-2.0
// Rules that group_rows and group_weights share.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cuda {

// Whether they are of one 16-bit type, NHWC, channels in multiples of 8.
Support takes_groups(const problem::ConvPass& pass);

// The same pass with its one axis, or without a window all places of all images, along H: boxes of whole rows
// are short then.
problem::ConvPass in_one_line(problem::ConvPass pass);

}  // namespace retrograd::engines::cuda
