// SPDX-License-Identifier: Apache-2.0
// Loops that show what one core can do: fused multiply-adds from registers, copies. In the
// instruction set that all kernels use.
#pragma once

#include <cstdint>

namespace retrograd::tools {

// Runs `rounds` rounds of independent FMAs on vectors and returns how many operations (two an FMA) that was.
// `numbers` are kFmaNumbers: factor, summand and the start of each chain. The chains must differ, or a
// compiler runs equal ones once. The sum of all goes to the first number, so that none is left out.
inline constexpr int kFmaNumbers = 14;
int64_t run_fmas(int64_t rounds, float* numbers);

// Copies floats; both addresses are 64-byte aligned. `streaming` goes past the caches.
void copy_floats(const float* from, float* to, int64_t count, bool streaming);

}  // namespace retrograd::tools
