// SPDX-License-Identifier: Apache-2.0
// Sizes of the im2col matrix x'.
#include "engines/cuda/dense/patches.h"

#include <algorithm>

#include "base/checked.h"
#include "engines/cuda/dense/product_limits.h"
#include "engines/cuda/effort.h"
#include "kernels/cuda/layout/channel_rows.h"

namespace retrograd::engines::cuda {

using kernels::cuda::RowType;

namespace {

constexpr int64_t kMostChannels = 64;  // more of them fill tiles of one tap
constexpr double kFreeBytes = 64 << 20, kMostGrowth = 2;

int64_t columns_of_patch(const ConvPass& pass) {
  return pass.x_channels_per_group() * pass.axes[0].kernel * pass.axes[1].kernel * pass.axes[2].kernel;
}
int64_t places_of_y(const ConvPass& pass) {
  return pass.batch * pass.axes[0].y * pass.axes[1].y * pass.axes[2].y;
}
double element_bytes(RowType type) { return static_cast<double>(kernels::cuda::row_element_bytes(type)); }

}  // namespace

bool has_patches(const ConvPass& pass, RowType type) {
  if (pass.kind == ConvPassKind::kGradInput || pass.x_channels_per_group() > kMostChannels) return false;
  Checked columns = pass.x_channels;
  int64_t taps = 1;
  for (const Window& w : pass.axes) {
    columns = columns * w.kernel;
    if (is_far(w) || !columns.get() || *columns.get() > kernels::cuda::kLongestPatch / 2) return false;
    taps *= w.kernel;
  }
  const double bytes = static_cast<double>(patch_elements(pass, type)) * element_bytes(type);
  return taps > 1 && bytes <= kMostGrowth * std::max(kFreeBytes, bytes_of(pass));
}

int64_t patch_row(const ConvPass& pass, RowType type) {
  const int64_t chunk = kernels::cuda::chunk_elements(type);
  return ceil_div(columns_of_patch(pass), chunk) * chunk;
}
int64_t patch_elements(const ConvPass& pass, RowType type) {
  return places_of_y(pass) * pass.groups * patch_row(pass, type);
}
double patch_traffic(const ConvPass& pass, RowType type) {
  return static_cast<double>(patch_elements(pass, type)) * element_bytes(type) +
         bytes_of(pass.x, x_sizes(pass));
}

ProductAxes patch_axes(const ConvPass& pass) {
  ProductAxes axes;
  for (size_t a = 0; a < axes.size(); ++a) axes[a] = {.results = pass.axes[a].y, .source = pass.axes[a].y};
  return axes;
}

}  // namespace retrograd::engines::cuda
