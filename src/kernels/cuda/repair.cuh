// SPDX-License-Identifier: Apache-2.0
// One element of a result from its formula: rarely needed, so it is kept out of the loops that call it.
#pragma once

#include "kernels/cuda/formulas.cuh"
#include "kernels/cuda/layout/results.h"

namespace retrograd::kernels::cuda {

static __device__ __noinline__ float by_formula(const Conv& conv, Result result, const Index5& at) {
  switch (result) {
    case Result::kForward:
      return forward_sum(conv, at);
    case Result::kGradInput:
      return grad_input_sum(conv, at);
    case Result::kGradWeight:
      return grad_weight_sum(conv, at, 0, 1);
  }
  return 0;
}

}  // namespace retrograd::kernels::cuda
