// SPDX-License-Identifier: Apache-2.0
// What a kernel is told: sizes, strides, types and addresses, in plain structs that go to the GPU by value.
#pragma once

#include <cstdint>

#include "base/dtype.h"

struct CUstream_st;

namespace retrograd::kernels::cuda {

using Stream = CUstream_st*;

struct Tensor {
  void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t strides[5] = {};  // in elements: (N, C, D, H, W), or (O, I, D, H, W) of weights
};

// problem/window.h: position(o, t) = o·stride − pad + t·dilation
struct Axis {
  int64_t x, y, kernel, stride, dilation, pad;
};

// Added to the sums of each channel of the result in FP32; null: none is.
struct ChannelBias {
  const void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t stride = 0;
};

// A convolution y = x ⋆ w; which of the three is written is the kernel's business.
struct Conv {
  int64_t batch, groups;
  int64_t x_channels, y_channels;  // a group's
  Axis axes[3];
  Tensor x, y, w;
  ChannelBias bias;
  OperandRounding rounding;
};

struct Bias {
  int64_t batch, channels;
  int64_t spatial[3];
  Tensor grad_output, grad_bias;
};

struct PoolAxis {
  int64_t x, y, kernel, stride, pad;
};

struct Pool {
  int64_t batch, channels;
  PoolAxis axes[3];
  bool count_include_pad;
  int64_t divisor_override;
  Tensor y, x;  // which of them is written is the kernel's business, too
};

}  // namespace retrograd::kernels::cuda
