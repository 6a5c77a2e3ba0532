// SPDX-License-Identifier: Apache-2.0
// The step of row_products for a grad_weight: operands in the form that weight_way chooses, then the product.
#pragma once

#include <memory>

#include "engines/cuda/dense/row_operand.h"
#include "engines/engine.h"
#include "kernels/cuda/dense_weight/weight_way_plan.h"

namespace retrograd::engines::cuda {

// A grad_weight in the form that it is made in.
struct RowWeightPass {
  ConvPass pass;  // without places of x that nothing reads
  RowOperand x, y;
  kernels::cuda::WeightWay way;

  RowWeightPass(const ConvPass& asked, kernels::cuda::RowType type, kernels::cuda::ProductMath math,
                const Machine& machine);

 private:
  void leave_out_unread(kernels::cuda::RowType type);
};

std::unique_ptr<const Step> make_row_weight_step(const ConvPass& pass, const Machine& machine);

}  // namespace retrograd::engines::cuda
