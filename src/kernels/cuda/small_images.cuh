// SPDX-License-Identifier: Apache-2.0
// Sizes in 32 bits, and channels of an image in shared memory as FP32.
#pragma once

#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/formulas.cuh"

namespace retrograd::kernels::cuda {

constexpr int kSmallChannels = 8;  // that a thread takes at once

struct SmallAxis {
  int x, y, kernel, stride, dilation, pad;
};
struct SmallSizes {
  SmallAxis d, h, w;
  int x_places, y_places, taps;
  int x_channels, y_channels, chunks;  // of a group; chunks of kSmallChannels of the results' channels
};

inline SmallSizes small_sizes(const Conv& conv, int64_t result_channels) {
  const auto narrow = [](const Axis& a) {
    return SmallAxis{static_cast<int>(a.x),      static_cast<int>(a.y),        static_cast<int>(a.kernel),
                     static_cast<int>(a.stride), static_cast<int>(a.dilation), static_cast<int>(a.pad)};
  };
  SmallSizes s;
  s.d = narrow(conv.axes[0]);
  s.h = narrow(conv.axes[1]);
  s.w = narrow(conv.axes[2]);
  s.x_places = s.d.x * s.h.x * s.w.x;
  s.y_places = s.d.y * s.h.y * s.w.y;
  s.taps = s.d.kernel * s.h.kernel * s.w.kernel;
  s.x_channels = static_cast<int>(conv.x_channels);
  s.y_channels = static_cast<int>(conv.y_channels);
  s.chunks = static_cast<int>((result_channels + kSmallChannels - 1) / kSmallChannels);
  return s;
}

// −1: none
__device__ inline int small_output_reading(const SmallAxis& a, int index, int tap) {
  const int scaled = index + a.pad - tap * a.dilation;
  if (scaled < 0 || scaled % a.stride != 0) return -1;
  const int output = scaled / a.stride;
  return output < a.y ? output : -1;
}

}  // namespace retrograd::kernels::cuda
