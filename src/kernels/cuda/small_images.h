// SPDX-License-Identifier: Apache-2.0
// Gradients of small convolutions, with any strides and types, in few launches: at these sizes launches and
// index arithmetic are what takes time. Fewer than 2^31 elements everywhere.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

void small_grad_input(const Conv& conv, Stream stream);

// The workspace holds a float for each part of each weight; nothing where there is one part.
inline int64_t small_parts(const Conv& conv) {
  constexpr int64_t kMostParts = 256;
  const int64_t images = (conv.batch + kMostParts - 1) / kMostParts;
  return conv.batch <= 4 ? 1 : (conv.batch + images - 1) / images;
}
void small_grad_weight(const Conv& conv, float* workspace, Stream stream);

inline constexpr int kSmallChannels = 8;   // that a thread takes at once
inline constexpr int kSmallThreads = 256;  // of a block

// Sizes in 32 bits.
struct SmallAxis {
  int x, y, kernel, stride, dilation, pad;
};
// How a run of elements (channel, depth, row, column) is taken apart.
struct SmallRun {
  FastDiv places, rows, columns;  // of a channel, of a plane, of a row
};
struct SmallSizes {
  SmallAxis d, h, w;
  int x_places, y_places, taps;
  int x_channels, y_channels, chunks;  // of a group; chunks of kSmallChannels of the results' channels
  SmallRun of_x, of_y, of_w;
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
  s.of_x = {FastDiv(s.x_places), FastDiv(s.h.x), FastDiv(s.w.x)};
  s.of_y = {FastDiv(s.y_places), FastDiv(s.h.y), FastDiv(s.w.y)};
  s.of_w = {FastDiv(s.taps), FastDiv(s.h.kernel), FastDiv(s.w.kernel)};
  return s;
}

// What a block needs of shared memory.
inline size_t small_grad_input_bytes(const Conv& conv) {
  const SmallSizes s = small_sizes(conv, conv.x_channels);
  return static_cast<size_t>(s.y_channels) * static_cast<size_t>(s.taps * kSmallChannels + s.y_places) *
         sizeof(float);
}
inline size_t small_grad_weight_bytes(const Conv& conv) {
  const SmallSizes s = small_sizes(conv, conv.y_channels);
  return (static_cast<size_t>(s.y_places) * kSmallChannels +
          static_cast<size_t>(s.x_channels) * static_cast<size_t>(s.x_places)) *
         sizeof(float);
}

}  // namespace retrograd::kernels::cuda
