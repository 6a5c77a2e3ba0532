// SPDX-License-Identifier: Apache-2.0
// Windows, strides and kinds exchanged.
#include "engines/cuda/dense/mirrored_pass.h"

#include <algorithm>
#include <utility>

namespace retrograd::engines::cuda {

bool can_mirror(const ConvPass& pass) {
  return pass.groups == 1 && std::all_of(pass.axes.begin(), pass.axes.end(), [](const Window& w) {
           return w.stride == 1 && w.x > 0 && w.y > 0 && w.kernel > 0;
         });
}

MirroredPass mirror(const ConvPass& pass) {
  MirroredPass mirrored{pass, 0};
  ConvPass& p = mirrored.pass;
  if (pass.kind != ConvPassKind::kGradWeight)
    p.kind = pass.kind == ConvPassKind::kForward ? ConvPassKind::kGradInput : ConvPassKind::kForward;
  std::swap(p.x, p.y);
  std::swap(p.x_channels, p.y_channels);
  std::swap(p.w.strides[0], p.w.strides[1]);
  for (size_t a = 0; a < 3; ++a) {
    Window& w = p.axes[a];
    std::swap(w.x, w.y);
    w.pad_lo = (w.kernel - 1) * w.dilation - w.pad_lo;
    int64_t& stride = p.w.strides[2 + a];
    mirrored.weight_offset += (w.kernel - 1) * stride;
    stride = -stride;
  }
  return mirrored;
}

}  // namespace retrograd::engines::cuda
