// SPDX-License-Identifier: Apache-2.0
// How forward or grad_input becomes products of rows: a product a residue of the strides, one whose columns
// are taps and channels or one of patches, multiplied in tiles or by warpgroups, whichever should take least
// time.
#pragma once

#include <vector>

#include "engines/cuda/dense/product_axes.h"
#include "engines/cuda/dense/row_operand.h"
#include "engines/engine.h"

namespace retrograd::engines::cuda {

struct GatherWay {
  std::vector<ProductAxes> products;
  kernels::cuda::Columns columns = kernels::cuda::Columns::kChannels;
  bool patches = false;                   // the source is copied as windows, not as rows of channels
  bool warpgroups = false;                // a launch a product; tiles take all products at once
  bool cleared = false;                   // the result is set to zero before
  int parts = 1;                          // of each sum
  double copied = 0;                      // bytes that the source's copy reads and writes
  double microseconds = 0, launches = 1;  // of the products
};

// Whether there is any: with strides of many residues only windows that do not overlap have one.
bool has_gather_way(const ConvPass& pass);
// source: as rows of channels.
GatherWay gather_way(const ConvPass& pass, const RowOperand& source, kernels::cuda::RowType type,
                     kernels::cuda::ProductMath math, const Machine& machine);

// Whether grad_input can be one folded product; whether its residues are few enough for a launch or some.
bool can_fold(const ConvPass& pass);
bool is_few_residues(const ConvPass& pass);
// Whether the weights of a y channel lie side by side, taps fastest.
bool are_weights_rows(const ConvPass& pass);

// Columns of a product whose taps are not among them, places of its results.
int64_t columns_of(const ConvPass& pass);
int64_t places_of(const ConvPass& pass, const ProductAxes& axes);
int64_t taps_of(const ConvPass& pass);

// The pass with FP32 operands rounded to TF32, where asked for.
ConvPass rounded(const ConvPass& pass, bool in_tf32);

// What full tiles reach without warpgroups.
double tile_tflops(kernels::cuda::ProductMath math, bool weight, const Machine& machine);

}  // namespace retrograd::engines::cuda
