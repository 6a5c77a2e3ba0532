// SPDX-License-Identifier: Apache-2.0
// The products that forward and grad_input consist of, axis by axis.
#pragma once

#include <array>
#include <vector>

#include "kernels/cuda/dense/gather_product.h"
#include "problem/pass.h"

namespace retrograd::engines::cuda {

using ProductAxes = std::array<kernels::cuda::ProductAxis, 3>;

// forward: one product. grad_input: one for each residue of the result's place modulo the strides, so that no
// product is spent on taps that do not match; residues without a place are left out.
std::vector<ProductAxes> product_axes(const problem::ConvPass& pass);
// Whether a tap of the product may lie beyond the edge of its source.
bool leaves_source(const ProductAxes& axes);
// The same for grad_weight.
bool leaves_source(const problem::ConvPass& pass);

}  // namespace retrograd::engines::cuda
