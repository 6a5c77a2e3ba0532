// SPDX-License-Identifier: Apache-2.0
// Rules that the engines for few channels a group share.
#include "engines/cuda/few_channels/narrow_pass.h"

#include <fmt/format.h>

#include "engines/cuda/layouts.h"

namespace retrograd::engines::cuda {
namespace {

using problem::ConvPass;
using problem::ConvPassKind;

bool are_planes(const ConvPass& pass) {
  return is_planes(pass.x, x_sizes(pass)) && is_planes(pass.y, y_sizes(pass));
}

bool is_small(const problem::Window& w) {
  constexpr int64_t kMost = 1 << 24;
  for (int64_t size : {w.x, w.y, w.kernel, w.stride, w.dilation, w.pad_lo})
    if (size < 0 || size >= kMost) return false;
  return (w.kernel - 1) * w.dilation < kMost && w.y * w.stride < kMost * 16;
}

}  // namespace

Support is_narrow_pass(const ConvPass& pass) {
  if (pass.kind == ConvPassKind::kForward) return Support::no("grad_input and grad_weight only");
  if (pass.bias) return Support::no("adds no bias");
  if (!is_wide_type(pass.x.dtype) || pass.x.dtype != pass.y.dtype ||
      (pass.kind == ConvPassKind::kGradInput && pass.w.dtype != pass.x.dtype))
    return Support::no("needs f32, f16 or bf16, all the same");
  if (pass.rounding != OperandRounding::kNone) return Support::no("does not round operands");
  const auto& [d, h, w] = pass.axes;
  if (d.x != 1 || d.y != 1 || d.kernel != 1 || d.pad_lo != 0) return Support::no("one or two axes only");
  if (!fits_31_bits(x_sizes(pass)) || !fits_31_bits(y_sizes(pass)) || !is_small(h) || !is_small(w) ||
      pass.batch > 65535 || pass.groups > 65535)
    return Support::no("needs 1 to 2^31 - 1 elements and no negative padding");
  if (!are_planes(pass) &&
      !(is_channels_last(pass.x, x_sizes(pass)) && is_channels_last(pass.y, y_sizes(pass))))
    return Support::no("needs x and y dense, both row-major or both channels last");
  return Support::yes();
}

bool is_last(const ConvPass& pass) { return !are_planes(pass); }

size_t part_bytes(const ConvPass& pass) {
  return static_cast<size_t>(pass.y_channels * pass.x_channels_per_group() * pass.axes[1].kernel *
                             pass.axes[2].kernel) *
         sizeof(float);
}

std::string describe_narrow(bool last, int64_t parts) {
  const char* const layout = last ? "channels last" : "planes";
  return parts == 0 ? layout : fmt::format("{}, {} parts", layout, parts);
}

}  // namespace retrograd::engines::cuda
