// SPDX-License-Identifier: Apache-2.0
// What few_places counts before it is launched.
#include "base/checked.h"
#include "kernels/cuda/dense_weight/few_places.h"

namespace retrograd::kernels::cuda {

FewPlaces few_places_of(const Conv& conv, bool channels_inside) {
  FewPlaces p{};
  p.conv = conv;
  p.channels_inside = channels_inside;
  int64_t places = conv.batch, taps = 1;
  for (int i = 0; i < 3; ++i) {
    const Axis& a = conv.axes[i];
    places *= a.y;
    taps *= a.kernel;
    p.by_kernel[i] = FastDiv(a.kernel);
    p.by_output[i] = FastDiv(a.y);
    const int64_t last = (a.y - 1) * a.stride + (a.kernel - 1) * a.dilation - a.pad;
    p.padded = p.padded || a.pad > 0 || last >= a.x;
  }
  p.places = static_cast<int>(places);
  p.columns = static_cast<int>(conv.x_channels * taps);
  p.by_inner = FastDiv(channels_inside ? conv.x_channels : taps);
  return p;
}

int64_t few_places_blocks(const FewPlaces& p) {
  return ceil_div(p.columns, kFewThreads * kFewColumns) * ceil_div(p.conv.y_channels, kFewRows) *
         p.conv.groups;
}

}  // namespace retrograd::kernels::cuda
