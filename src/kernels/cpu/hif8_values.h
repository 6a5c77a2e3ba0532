// SPDX-License-Identifier: Apache-2.0
// The values of all HIFLOAT8 codes, for loops that decode: a table read by plain loads beats arithmetic.
#pragma once

namespace retrograd::kernels::cpu {

// 256 floats.
const float* hif8_values();

}  // namespace retrograd::kernels::cpu
