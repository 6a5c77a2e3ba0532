// SPDX-License-Identifier: Apache-2.0
// grad_weight as a matrix product of planes in place: no operand is copied, or x alone, as patches.
#pragma once

#include "kernels/cuda/dense_weight/plane_weight_plan.h"

namespace retrograd::kernels::cuda {

struct PlaneWeight {
  Conv conv;   // as it is multiplied: of patches, one tap (conv_of_patch_planes)
  Conv asked;  // as it was asked for: w is written
  PlaneChoice choice;
  bool padded;  // a tap may lie beyond the edge
  ProductMath math;
  float* workspace;  // plane_weight_floats() of them
};

// The addresses must suit choice's copies (with_addresses).
void plane_weight(const PlaneWeight& product, Stream stream);

}  // namespace retrograd::kernels::cuda
