// SPDX-License-Identifier: Apache-2.0
// What the engines for few channels a group ask of a pass.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cuda {

// grad_input or grad_weight, one or two axes, x and y dense and of the same layout, FP32, FP16 or BF16
// throughout, no rounding of operands, no negative padding, sizes that 32-bit counts hold.
Support is_narrow_pass(const problem::ConvPass& pass);
// For such a pass: whether channels are innermost. A layout that is both counts as planes.
bool is_last(const problem::ConvPass& pass);
// FP32 sums of all weights.
size_t part_bytes(const problem::ConvPass& pass);
// What a step says of itself; no parts: grad_input.
std::string describe_narrow(bool last, int64_t parts);

}  // namespace retrograd::engines::cuda
