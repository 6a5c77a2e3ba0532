// SPDX-License-Identifier: Apache-2.0
// Copies sizes and strides into the kernels' structs.
#include "engines/cuda/shapes.h"

#include <algorithm>

namespace retrograd::engines::cuda {
namespace {

kernels::cuda::Tensor tensor_of(const PassTensor& tensor) {
  kernels::cuda::Tensor result;
  result.dtype = tensor.dtype;
  std::copy(tensor.strides.begin(), tensor.strides.end(), result.strides);
  return result;
}

}  // namespace

Conv shape_of(const ConvPass& pass) {
  Conv conv{};
  conv.batch = pass.batch;
  conv.groups = pass.groups;
  conv.x_channels = pass.x_channels_per_group();
  conv.y_channels = pass.y_channels_per_group();
  for (size_t i = 0; i < 3; ++i) {
    const Window& w = pass.axes[i];
    conv.axes[i] = {w.x, w.y, w.kernel, w.stride, w.dilation, w.pad_lo};
  }
  conv.x = tensor_of(pass.x);
  conv.y = tensor_of(pass.y);
  conv.w = tensor_of(pass.w);
  if (pass.bias) conv.bias = {nullptr, pass.bias->dtype, pass.bias->strides[1]};
  conv.rounding = pass.rounding;
  return conv;
}

kernels::cuda::Bias shape_of(const BiasPass& pass) {
  kernels::cuda::Bias bias{};
  bias.batch = pass.batch;
  bias.channels = pass.channels;
  std::copy(pass.spatial.begin(), pass.spatial.end(), bias.spatial);
  bias.grad_output = tensor_of(pass.grad_output);
  bias.grad_bias = tensor_of(pass.grad_bias);
  return bias;
}

kernels::cuda::Pool shape_of(const AvgPoolPass& pass) {
  kernels::cuda::Pool pool{};
  pool.batch = pass.batch;
  pool.channels = pass.channels;
  for (size_t i = 0; i < 3; ++i) {
    const problem::PoolWindow& w = pass.axes[i];
    // A single window overlaps no other, whatever its stride.
    const int64_t stride = w.y == 1 ? std::max(w.stride, w.kernel) : w.stride;
    pool.axes[i] = {w.x, w.y, w.kernel, stride, w.pad};
  }
  pool.count_include_pad = pass.count_include_pad;
  pool.divisor_override = pass.divisor_override;
  pool.y = tensor_of(pass.y);
  pool.x = tensor_of(pass.x);
  return pool;
}

Conv bind(const ConvPass& pass, const Bindings& bindings) {
  Conv conv = shape_of(pass);
  conv.x.data = bindings[pass.x.operand];
  conv.y.data = bindings[pass.y.operand];
  conv.w.data = bindings[pass.w.operand];
  if (pass.bias) conv.bias.data = bindings[pass.bias->operand];
  return conv;
}

kernels::cuda::Bias bind(const BiasPass& pass, const Bindings& bindings) {
  kernels::cuda::Bias bias = shape_of(pass);
  bias.grad_output.data = bindings[pass.grad_output.operand];
  bias.grad_bias.data = bindings[pass.grad_bias.operand];
  return bias;
}

kernels::cuda::Pool bind(const AvgPoolPass& pass, const Bindings& bindings) {
  kernels::cuda::Pool pool = shape_of(pass);
  pool.y.data = bindings[pass.y.operand];
  pool.x.data = bindings[pass.x.operand];
  return pool;
}

}  // namespace retrograd::engines::cuda
