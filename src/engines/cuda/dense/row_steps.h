// SPDX-License-Identifier: Apache-2.0
// The steps of row_products: operands to rows of channels, then the product of rows.
#pragma once

#include <memory>

#include "engines/engine.h"
#include "kernels/cuda/layout/channel_rows.h"

namespace retrograd::engines::cuda {

// The narrowest type that holds both operands of a pass exactly. FP16 holds both 8-bit types.
kernels::cuda::RowType row_type_of(const problem::ConvPass& pass);

// in_tf32: FP32 operands are rounded to TF32 on their way to rows.
std::unique_ptr<const Step> make_row_step(const problem::ConvPass& pass, bool in_tf32,
                                          const Machine& machine);
// What that step takes: tiles that are not full included.
Effort row_effort(const problem::ConvPass& pass, bool in_tf32, const Machine& machine);

}  // namespace retrograd::engines::cuda
