// SPDX-License-Identifier: Apache-2.0
// The products that forward and grad_input consist of, axis by axis.
#pragma once

#include <optional>
#include <vector>

#include "engines/cuda/layouts.h"
#include "kernels/cuda/dense/gather_product.h"

namespace retrograd::engines::cuda {

using kernels::cuda::ProductAxes;

// forward: one product. grad_input: one for each residue of the result's place modulo the strides, so that no
// product is spent on taps that do not match; residues without a place are left out.
std::vector<ProductAxes> product_axes(const ConvPass& pass);
bool has_no_tap(const ProductAxes& axes);
// grad_input as one folded product, where no place of x is read by two windows and some windows lie apart.
std::optional<ProductAxes> folded_axes(const ConvPass& pass);
// Whether its windows leave no place of x out and none lies beyond an edge.
bool folded_covers_x(const ConvPass& pass);
// Whether a tap of the product may lie beyond the edge of its source.
bool leaves_source(const ProductAxes& axes);
// The same for grad_weight.
bool leaves_source(const ConvPass& pass);

}  // namespace retrograd::engines::cuda
