// SPDX-License-Identifier: Apache-2.0
// grad_weight of up to 16 pixels: outer products, bound by the bytes of the weights. Weights are dense,
// planes or channels last, and rows of them are what a block writes; x and y lie anyhow.
#pragma once

#include "base/checked.h"
#include "base/host_device.h"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

inline constexpr int64_t kMostFewPlaces = 16;

// The columns of a y channel's weights in their order: (tap, x channel), or (x channel, tap).
struct FewPlaces {
  Conv conv;
  int places, columns;
  bool channels_inside;
  bool padded;  // some place has a tap beyond the edge
  FastDiv by_inner, by_kernel[3], by_output[3];
};
// channels_inside: weights are channels last. Of a convolution with at least one place and column.
inline FewPlaces few_places_of(const Conv& conv, bool channels_inside) {
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

inline constexpr int kFewThreads = 128, kFewColumns = 4, kFewRows = 32;  // of a block; columns of a thread
inline int64_t few_places_blocks(const FewPlaces& p) {
  return ceil_div(p.columns, kFewThreads * kFewColumns) * ceil_div(p.conv.y_channels, kFewRows) *
         p.conv.groups;
}

struct FewColumn {
  int64_t channel;
  int64_t shift[3];  // from stride times output to the position in x
};
RG_DEVICE inline FewColumn column_of(const FewPlaces& p, int number) {
  auto inner = static_cast<uint32_t>(number);
  const uint32_t outer = p.by_inner.split(inner);
  uint32_t kw = p.channels_inside ? outer : inner;
  uint32_t kh = p.by_kernel[2].split(kw);
  const uint32_t kd = p.by_kernel[1].split(kh), taps[3] = {kd, kh, kw};
  FewColumn column{p.channels_inside ? inner : outer, {}};
  for (int i = 0; i < 3; ++i) column.shift[i] = taps[i] * p.conv.axes[i].dilation - p.conv.axes[i].pad;
  return column;
}

struct FewPlace {
  int64_t image, output[3];
};
RG_DEVICE inline FewPlace place_of(const FewPlaces& p, int number) {
  auto w = static_cast<uint32_t>(number);
  uint32_t h = p.by_output[2].split(w);
  uint32_t d = p.by_output[1].split(h);
  const uint32_t image = p.by_output[0].split(d);
  return {image, {d, h, w}};
}

// Where a column meets x at a place; false: beyond the edge.
RG_DEVICE inline bool meets(const FewPlaces& p, const FewPlace& place, const FewColumn& column,
                            int64_t (&position)[3]) {
  bool inside = true;
  for (int i = 0; i < 3; ++i) {
    position[i] = place.output[i] * p.conv.axes[i].stride + column.shift[i];
    inside = inside && position[i] >= 0 && position[i] < p.conv.axes[i].x;
  }
  return inside;
}

// x and y are both FP32, FP16 or BF16, w is any of them.
void few_places(const FewPlaces& problem, Stream stream);

}  // namespace retrograd::kernels::cuda
