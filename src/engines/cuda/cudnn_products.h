// SPDX-License-Identifier: Apache-2.0
// Convolutions by cuDNN, where it is there: 16-bit types in channels-last form, into which operands of other
// layouts are brought in the workspace; FP32 as it lies.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cuda {

const Candidate& cudnn_products();

}  // namespace retrograd::engines::cuda
