// SPDX-License-Identifier: Apache-2.0
// With stride 1, a convolution read backwards is one, too: x and y exchanged, taps in the opposite order,
//   y[o, p] = Σ x[i, p − pad + t·dilation] · w[o, i, t]
//   x[i, q] = Σ y[o, q − pad' + t'·dilation] · w'[i, o, t']
//   pad' = (kernel − 1)·dilation − pad      t' = kernel − 1 − t      w'[i, o, t'] = w[o, i, t]
// so grad_input is a forward pass and grad_weight one whose x is grad_output.
#pragma once

#include "engines/cuda/layouts.h"

namespace retrograd::engines::cuda {

struct MirroredPass {
  ConvPass pass;
  int64_t weight_offset = 0;  // elements from w's address to that of w'
};

// Of one group and stride 1 along every axis.
bool can_mirror(const ConvPass& pass);
MirroredPass mirror(const ConvPass& pass);

}  // namespace retrograd::engines::cuda
