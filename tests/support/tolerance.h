// SPDX-License-Identifier: Apache-2.0
// How far a result may be from the exact one: derived from type, length and magnitude of the sum, here and
// nowhere else.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace retrograd::test {

// Half a unit in the last place of `dtype` around `value`, subnormals included.
double half_ulp(DType dtype, double value);

enum class Accumulation { kDouble, kFloat };
// Bound of |result − exact| for a sum of `terms` products whose magnitudes add up to `magnitude`: the sum's
// own rounding errors, the rounding to FP32, and the rounding to the result's type.
double sum_bound(DType dtype, double exact, double magnitude, int64_t terms, Accumulation accumulation);

// What a GPU may lose besides (docs/numerics.md): of operands below 2^-103, all that lies below 2^-137.
double lost_small_products(int64_t terms, double largest_operand);

// Where reduced precision is allowed (docs/numerics.md, Winograd): bound of |result − exact| for every
// element of a tensor whose largest element is `largest`, in magnitude.
double reduced_precision_bound(double largest);

}  // namespace retrograd::test
