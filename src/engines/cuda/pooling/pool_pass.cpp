// SPDX-License-Identifier: Apache-2.0
// The checks of pool_pass.h: types, sizes and layouts.
#include "engines/cuda/pooling/pool_pass.h"

namespace retrograd::engines::cuda {
namespace {

using problem::AvgPoolPass;

bool both_channels_last(const AvgPoolPass& p) {
  return is_channels_last(p.x, x_sizes(p)) && is_channels_last(p.y, y_sizes(p));
}

}  // namespace

bool both_planes(const AvgPoolPass& p) { return is_planes(p.x, x_sizes(p)) && is_planes(p.y, y_sizes(p)); }

Support is_dense_pool(const AvgPoolPass& pass) {
  if (!is_wide_type(pass.x.dtype) || pass.x.dtype != pass.y.dtype)
    return Support::no("needs f32, f16 or bf16, the same on both sides");
  if (!fits_31_bits(x_sizes(pass)) || !fits_31_bits(y_sizes(pass)))
    return Support::no("needs 1 to 2^31 - 1 elements");
  for (const problem::PoolWindow& axis : pass.axes)
    for (const int64_t size : {axis.x + axis.pad, axis.kernel, axis.stride})
      if (size >= int64_t{1} << 28) return Support::no("needs windows under 2^28");
  if (!both_planes(pass) && !both_channels_last(pass))
    return Support::no("needs dense tensors of one layout, row-major or channels last");
  return Support::yes();
}

}  // namespace retrograd::engines::cuda
