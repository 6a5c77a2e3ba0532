// SPDX-License-Identifier: Apache-2.0
// Which layouts and sizes kernels for dense tensors take.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/machine.h"
#include "problem/pass.h"

namespace retrograd::engines::cuda {

using problem::AvgPoolPass;
using problem::BiasPass;
using problem::ConvPass;
using problem::ConvPassKind;
using problem::PassTensor;
using problem::Window;
using Sizes5 = std::array<int64_t, 5>;  // (N, C, D, H, W)

// Row-major, axes of one element aside.
bool is_planes(const PassTensor& tensor, const Sizes5& sizes);
// Channels innermost, otherwise row-major.
bool is_channels_last(const PassTensor& tensor, const Sizes5& sizes);
problem::Strides5 plane_strides(const Sizes5& sizes);
problem::Strides5 channels_last_strides(const Sizes5& sizes);
// At least one element, and fewer than 2^31.
bool fits_31_bits(const Sizes5& sizes);
// Whether positions along every axis, padding and gaps between taps counted, are below 2^24.
bool has_small_windows(const ConvPass& pass);
// Whether distances between the weights of a y channel fit 31 bits.
bool are_weights_near(const ConvPass& pass);
// The same of all three tensors.
bool fits_31_bits(const ConvPass& pass);
// FP32, FP16 or BF16; one of the latter.
bool is_wide_type(DType dtype);
inline bool is_half_type(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }
// One of them for all operands that the pass reads, and for a result of places.
bool has_one_wide_type(const ConvPass& pass);

// Whether operands of the type differ after the pass's rounding: then they cannot be read where they lie.
bool is_rounded(const ConvPass& pass, DType dtype);

// Whether the GPU has Hopper's warpgroup products and copy engine, as sm_90a code knows them.
inline bool has_warpgroups(const Machine& machine) { return machine.gpu.architecture == 90; }

// Also of a machine that is not there.
inline int processors_of(const Machine& machine) { return std::max(machine.gpu.multiprocessors, 1); }

// Of memory in a workspace, in whole 256s.
inline size_t room_of(size_t bytes) { return (bytes + 255) / 256 * 256; }
size_t room_of(const Sizes5& sizes, DType dtype);
size_t size_in_bytes(const Sizes5& sizes, DType dtype);

Sizes5 x_sizes(const ConvPass& pass);
Sizes5 y_sizes(const ConvPass& pass);
Sizes5 w_sizes(const ConvPass& pass);
Sizes5 x_sizes(const AvgPoolPass& pass);
Sizes5 y_sizes(const AvgPoolPass& pass);
Sizes5 sizes_of(const BiasPass& pass);  // of grad_output
// Of forward and grad_input: the result, and what is read beside the weights.
Sizes5 result_sizes(const ConvPass& pass);
Sizes5 source_sizes(const ConvPass& pass);
inline bool is_forward(const ConvPass& pass) { return pass.kind == ConvPassKind::kForward; }
inline bool is_grad_weight(const ConvPass& pass) { return pass.kind == ConvPassKind::kGradWeight; }
inline const PassTensor& source_of(const ConvPass& pass) { return is_forward(pass) ? pass.x : pass.y; }

// Of a convolution or a pooling: whether x and y are both so.
template <class Pass>
bool both_planes(const Pass& pass) {
  return is_planes(pass.x, x_sizes(pass)) && is_planes(pass.y, y_sizes(pass));
}
template <class Pass>
bool both_channels_last(const Pass& pass) {
  return is_channels_last(pass.x, x_sizes(pass)) && is_channels_last(pass.y, y_sizes(pass));
}

}  // namespace retrograd::engines::cuda
