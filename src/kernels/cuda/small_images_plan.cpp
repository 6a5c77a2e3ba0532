// SPDX-License-Identifier: Apache-2.0
// What blocks need, and how many parts the images are cut into.
#include "kernels/cuda/small_images.h"

namespace retrograd::kernels::cuda {

size_t small_grad_input_bytes(const Conv& conv) {
  const SmallSizes s = small_sizes(conv, conv.x_channels);
  return static_cast<size_t>(s.y_channels) * static_cast<size_t>(s.taps * kSmallChannels + s.y_places) *
         sizeof(float);
}

size_t small_grad_weight_bytes(const Conv& conv) {
  const SmallSizes s = small_sizes(conv, conv.y_channels);
  return (static_cast<size_t>(s.y_places) * kSmallChannels +
          static_cast<size_t>(s.x_channels) * static_cast<size_t>(s.x_places)) *
         sizeof(float);
}

int64_t small_parts(const Conv& conv) {
  constexpr int64_t kMostParts = 256;
  const int64_t images = (conv.batch + kMostParts - 1) / kMostParts;
  return conv.batch <= 4 ? 1 : (conv.batch + images - 1) / images;
}

}  // namespace retrograd::kernels::cuda
