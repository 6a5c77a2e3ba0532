// SPDX-License-Identifier: Apache-2.0
// Two rows of FP32 made one: out[2i] = even[i], out[2i + 1] = odd[i].
//
// Gradients of strided convolutions are computed residue by residue; this puts them together.
#pragma once

#include <cstdint>

namespace retrograd::kernels::cpu {

// i < pairs. Any addresses; `out` may not overlap the others.
void interleave(const float* even, const float* odd, float* out, int64_t pairs);

}  // namespace retrograd::kernels::cpu
