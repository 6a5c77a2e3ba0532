// SPDX-License-Identifier: Apache-2.0
// Which windows have kernels, and how many parts a grad_weight is cut into.
#include "kernels/cuda/few_channels/narrow.h"
#include "kernels/cuda/few_channels/narrow_weight_cut.h"

namespace retrograd::kernels::cuda {

bool has_narrow_grad_input(const Conv& conv) {
  return with_gather_shape(conv, [](auto) {});
}

bool has_narrow_grad_weight(const Conv& conv) {
  return conv.axes[1].kernel * conv.x_channels <= 256 && narrow_weight::with_any_shape(conv, [](auto) {});
}

int64_t narrow_weight_parts(const Conv& conv, bool channels_last) {
  int64_t parts = 0;
  narrow_weight::with_any_shape(conv, [&](auto shape) {
    const narrow_weight::Cut p = narrow_weight::cut_of<decltype(shape)>(conv, channels_last);
    parts = ceil_of(p.tiles, p.in_part);
  });
  return parts;
}

}  // namespace retrograd::kernels::cuda
