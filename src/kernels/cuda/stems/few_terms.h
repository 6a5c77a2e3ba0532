// SPDX-License-Identifier: Apache-2.0
// forward and grad_input whose results have at most 64 terms (few_terms_plan.h): FP32, FP16 and BF16, any
// strides.
#pragma once

#include "kernels/cuda/stems/few_terms_plan.h"

namespace retrograd::kernels::cuda {

void few_terms(const Conv& conv, const FewTermsPlan& plan, Stream stream);

}  // namespace retrograd::kernels::cuda
