// SPDX-License-Identifier: Apache-2.0
// What plain, transposed and (T,B,C) convolutions share once their sizes are judged: types, rounding and
// passes.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "problem/problem.h"

namespace retrograd::problem {

// The operands as (N, C, spatial…) views and the convolution between them, all judged.
struct ConvCanonical {
  bool forward = false;              // grad_output is the output, and written
  const TensorView* bias = nullptr;  // forward only; null: none
  const TensorView *grad_output = nullptr, *input = nullptr, *weight = nullptr;
  const TensorView *grad_input = nullptr, *grad_weight = nullptr,
                   *grad_bias = nullptr;  // null: not asked for
  bool transposed = false;
  int64_t groups = 1;
  std::array<Window, 3> axes;  // unit windows in front of the spatial axes there are
  OperandRounding rounding = OperandRounding::kNone;
  bool winograd_allowed = false, hf32_allowed = false;
};
// The passes, and what is said of each operand, of a judged convolution.
void fill_problem(const ConvCanonical& conv, const ConvNames& names, Problem& problem);

// Axes of `view` in another order: permuted(tbc, {1, 2, 0}) is (B, C, T).
TensorView permuted(const TensorView& view, std::initializer_list<int> order);
// A (N, C, spatial…) view's strides along (N, C, D, H, W); the axes it does not have get stride 0. Nothing is
// read with the stride of an axis of one place, and callers may leave any number there: it is cut down to the
// elements the view spans, so that the address of a next row that does not exist is still a number. A view of
// no elements has strides 0.
Strides5 strides_5d(const TensorView& view);

// Validates cubeMathType, which the caller names `name`, for products made in `compute`; a note worth a
// warning goes to `warnings`.
Result<OperandRounding> choose_rounding(const ConvMath& math, const char* name, DType compute,
                                        std::vector<std::string>& warnings);

// Messages for the two commonest rules.
Status expect_rank(const TensorView& view, int rank, const char* name, const char* why);
Status expect_shape(const TensorView& view, const Dims& shape, const char* name, const char* why);

}  // namespace retrograd::problem
