// SPDX-License-Identifier: Apache-2.0
// Rules that group_rows and group_weights share.
#include "engines/cuda/few_channels/group_pass.h"

#include <algorithm>
#include <utility>

#include "engines/cuda/dense/product_limits.h"
#include "engines/cuda/layouts.h"

namespace retrograd::engines::cuda {

using problem::ConvPass;

Support takes_groups(const ConvPass& p) {
  if (const Support support = takes_products(p); !support.accepted()) return support;
  if (size_of(p.x.dtype) != 2 || !has_one_wide_type(p))
    return Support::no("needs tensors of one type, f16 or bf16");
  if (!is_channels_last(p.x, x_sizes(p)) || !is_channels_last(p.y, y_sizes(p)))
    return Support::no("needs channels last");
  if (p.x_channels % 8 != 0 || p.y_channels % 8 != 0) return Support::no("needs channels in multiples of 8");
  return Support::yes();
}

ConvPass in_one_line(ConvPass pass) {
  const bool is_plain = std::all_of(pass.axes.begin(), pass.axes.end(), [](const problem::Window& w) {
    return w.kernel == 1 && w.pad_lo == 0 && w.x == w.y && (w.stride == 1 || w.x == 1);
  });
  const auto is_one = [](const problem::Window& w) { return w.x == 1 && w.y == 1 && w.kernel == 1; };
  if (!is_plain) {
    if (!is_one(pass.axes[0]) || !is_one(pass.axes[1]) || pass.axes[1].pad_lo != 0) return pass;
    std::swap(pass.axes[1], pass.axes[2]);
    for (problem::PassTensor* tensor : {&pass.x, &pass.y, &pass.w})
      std::swap(tensor->strides[3], tensor->strides[4]);
    return pass;
  }
  int64_t places = pass.batch;
  for (problem::Window& w : pass.axes) {
    places *= w.x;
    w.x = w.y = w.stride = w.dilation = 1;
  }
  pass.batch = 1;
  pass.axes[1].x = pass.axes[1].y = places;
  pass.x.strides = channels_last_strides(x_sizes(pass));
  pass.y.strides = channels_last_strides(y_sizes(pass));
  return pass;
}

}  // namespace retrograd::engines::cuda
