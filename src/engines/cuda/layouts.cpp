// SPDX-License-Identifier: Apache-2.0
// Recognises NCHW and NHWC from strides.
#include "engines/cuda/layouts.h"

#include <algorithm>
#include <cstdlib>

#include "base/checked.h"

namespace retrograd::engines::cuda {
namespace {

constexpr std::array<size_t, 5> kPlanes{4, 3, 2, 1, 0}, kChannelsLast{1, 4, 3, 2, 0};  // innermost first

problem::Strides5 strides_of(const Sizes5& sizes, const std::array<size_t, 5>& order) {
  problem::Strides5 strides{};
  int64_t stride = 1;
  for (size_t axis : order) {
    strides[axis] = stride;
    stride *= sizes[axis];
  }
  return strides;
}

bool has_strides(const PassTensor& tensor, const Sizes5& sizes, const problem::Strides5& strides) {
  for (size_t axis = 0; axis < sizes.size(); ++axis)
    if (sizes[axis] == 0 || (sizes[axis] != 1 && tensor.strides[axis] != strides[axis])) return false;
  return true;
}

}  // namespace

problem::Strides5 plane_strides(const Sizes5& sizes) { return strides_of(sizes, kPlanes); }
problem::Strides5 channels_last_strides(const Sizes5& sizes) { return strides_of(sizes, kChannelsLast); }

bool is_planes(const PassTensor& tensor, const Sizes5& sizes) {
  return has_strides(tensor, sizes, plane_strides(sizes));
}

bool is_channels_last(const PassTensor& tensor, const Sizes5& sizes) {
  return has_strides(tensor, sizes, channels_last_strides(sizes));
}

bool fits_31_bits(const Sizes5& sizes) {
  Checked count = 1;
  for (int64_t size : sizes) count = count * size;
  const auto elements = count.get();
  return elements && *elements > 0 && *elements < (int64_t{1} << 31);
}

bool fits_31_bits(const ConvPass& pass) {
  return fits_31_bits(x_sizes(pass)) && fits_31_bits(y_sizes(pass)) && fits_31_bits(w_sizes(pass));
}

bool has_small_windows(const ConvPass& pass) {
  constexpr int64_t kLargest = 1 << 24;
  return std::all_of(pass.axes.begin(), pass.axes.end(), [](const Window& w) {
    for (const int64_t size : {w.x, w.y, w.kernel, std::abs(w.pad_lo)})
      if (size >= kLargest) return false;
    return (w.y == 1 || (w.stride < kLargest && w.y * w.stride < kLargest)) &&
           (w.kernel == 1 || (w.dilation < kLargest && w.kernel * w.dilation < kLargest));
  });
}

bool is_rounded(const ConvPass& pass, DType dtype) {
  return (dtype == DType::kF32 && pass.rounding != OperandRounding::kNone) ||
         (dtype == DType::kBF16 && pass.rounding == OperandRounding::kF16);
}

bool are_weights_near(const ConvPass& pass) {
  constexpr int64_t kEnd31 = int64_t{1} << 31;
  Checked reach = 0;
  const Sizes5 sizes = w_sizes(pass);
  for (size_t axis = 1; axis < 5; ++axis) {
    const int64_t stride = pass.w.strides[axis];
    if (sizes[axis] == 1) continue;
    if (stride <= -kEnd31 || stride >= kEnd31) return false;
    reach = reach + Checked(sizes[axis] - 1) * std::abs(stride);
  }
  const auto elements = reach.get();
  return elements && *elements < kEnd31;
}

size_t size_in_bytes(const Sizes5& sizes, DType dtype) {
  size_t bytes = size_of(dtype);
  for (const int64_t size : sizes) bytes *= static_cast<size_t>(size);
  return bytes;
}
size_t room_of(const Sizes5& sizes, DType dtype) { return room_of(size_in_bytes(sizes, dtype)); }

bool is_wide_type(DType dtype) { return !is_8bit(dtype); }

bool has_one_wide_type(const ConvPass& pass) {
  return is_wide_type(pass.x.dtype) && pass.x.dtype == pass.y.dtype &&
         (is_grad_weight(pass) || pass.w.dtype == pass.x.dtype);
}

Sizes5 x_sizes(const ConvPass& pass) {
  return {pass.batch, pass.x_channels, pass.axes[0].x, pass.axes[1].x, pass.axes[2].x};
}

Sizes5 y_sizes(const ConvPass& pass) {
  return {pass.batch, pass.y_channels, pass.axes[0].y, pass.axes[1].y, pass.axes[2].y};
}

Sizes5 x_sizes(const AvgPoolPass& p) { return {p.batch, p.channels, p.axes[0].x, p.axes[1].x, p.axes[2].x}; }
Sizes5 y_sizes(const AvgPoolPass& p) { return {p.batch, p.channels, p.axes[0].y, p.axes[1].y, p.axes[2].y}; }
Sizes5 sizes_of(const BiasPass& p) { return {p.batch, p.channels, p.spatial[0], p.spatial[1], p.spatial[2]}; }

Sizes5 result_sizes(const ConvPass& pass) { return is_forward(pass) ? y_sizes(pass) : x_sizes(pass); }
Sizes5 source_sizes(const ConvPass& pass) { return is_forward(pass) ? x_sizes(pass) : y_sizes(pass); }

Sizes5 w_sizes(const ConvPass& p) {
  return {p.y_channels, p.x_channels_per_group(), p.axes[0].kernel, p.axes[1].kernel, p.axes[2].kernel};
}

}  // namespace retrograd::engines::cuda
