// SPDX-License-Identifier: Apache-2.0
// Passes as the kernels of the GPU take them.
#pragma once

#include "engines/cuda/layouts.h"
#include "engines/engine.h"
#include "kernels/cuda/shapes.h"

namespace retrograd::engines::cuda {

using kernels::cuda::Conv;
using kernels::cuda::Stream;

// Without addresses.
kernels::cuda::Conv shape_of(const ConvPass& pass);
kernels::cuda::Bias shape_of(const BiasPass& pass);
kernels::cuda::Pool shape_of(const AvgPoolPass& pass);
// With those of a run.
kernels::cuda::Conv bind(const ConvPass& pass, const Bindings& bindings);
kernels::cuda::Bias bind(const BiasPass& pass, const Bindings& bindings);
kernels::cuda::Pool bind(const AvgPoolPass& pass, const Bindings& bindings);

// The formula, for steps that find addresses they cannot read (direct.cpp). conv: the pass with addresses.
void run_directly(ConvPassKind kind, const kernels::cuda::Conv& conv, kernels::cuda::Stream stream);

inline kernels::cuda::Stream stream_of(const runtime::ExecutionContext& context) {
  return static_cast<kernels::cuda::Stream>(context.native_stream);
}

}  // namespace retrograd::engines::cuda
