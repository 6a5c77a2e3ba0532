// SPDX-License-Identifier: Apache-2.0
// Where the columns (x channel, tap) of a row of patches lie in x.
#pragma once

#include <algorithm>

#include "base/host_device.h"
#include "kernels/cuda/counts.h"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/layout/channel_rows.h"

namespace retrograd::kernels::cuda::patches {

struct Patches {
  Elements x;
  int64_t strides[5];
  FastDiv outputs[3];
  int stride[3], dilation[3], pad[3], source[3], kernel[3];
  uint32_t places;
  int taps, columns, chunks, groups;  // chunks: of a group
  int64_t x_channels, row;            // row: elements from place to place
};

constexpr int kNowhere = -(1 << 30);  // beyond every edge, whatever is added to it

// Of a column: its tap's distance from tap 0 along the axes, and with its channel's in memory.
struct Column {
  int64_t offset;
  int shift[3];
};
RG_DEVICE inline Column column_of(const Patches& p, int64_t group, int column) {
  const int channel = column / p.taps, tap = column % p.taps;
  Column c;
  c.shift[0] = tap / (p.kernel[1] * p.kernel[2]) * p.dilation[0];
  c.shift[1] = tap / p.kernel[2] % p.kernel[1] * p.dilation[1];
  c.shift[2] = tap % p.kernel[2] * p.dilation[2];
  c.offset = (group * p.x_channels + channel) * p.strides[1] + c.shift[0] * p.strides[2] +
             c.shift[1] * p.strides[3] + c.shift[2] * p.strides[4];
  if (column >= p.columns) c.shift[0] = kNowhere;
  return c;
}

// Where tap 0 of a place lies along the axes, and in memory.
struct Place {
  int64_t at;
  int d, h, w;
  RG_DEVICE Place(const Patches& p, uint32_t place) {
    uint32_t to_w = place;
    uint32_t to_h = p.outputs[2].split(to_w);
    uint32_t to_d = p.outputs[1].split(to_h);
    const uint32_t n = p.outputs[0].split(to_d);
    d = static_cast<int>(to_d) * p.stride[0] - p.pad[0];
    h = static_cast<int>(to_h) * p.stride[1] - p.pad[1];
    w = static_cast<int>(to_w) * p.stride[2] - p.pad[2];
    at = n * p.strides[0] + d * p.strides[2] + h * p.strides[3] + w * p.strides[4];
  }
  RG_DEVICE bool reaches(const Patches& p, const Column& c) const {
    return static_cast<unsigned>(d + c.shift[0]) < static_cast<unsigned>(p.source[0]) &&
           static_cast<unsigned>(h + c.shift[1]) < static_cast<unsigned>(p.source[1]) &&
           static_cast<unsigned>(w + c.shift[2]) < static_cast<unsigned>(p.source[2]);
  }
};

inline Patches patches_of(const Conv& conv, RowType type) {
  Patches p;
  p.x = {conv.x.data, conv.x.dtype, conv.rounding};
  std::copy(conv.x.strides, conv.x.strides + 5, p.strides);
  set_axes(conv, p);
  int64_t places = conv.batch, taps = 1;
  for (const Axis& axis : conv.axes) {
    places *= axis.y;
    taps *= axis.kernel;
  }
  const int64_t chunk = chunk_elements(type);
  p.places = static_cast<uint32_t>(places);
  p.taps = static_cast<int>(taps);
  p.columns = static_cast<int>(conv.x_channels * taps);
  p.chunks = static_cast<int>((p.columns + chunk - 1) / chunk);
  p.groups = static_cast<int>(conv.groups);
  p.x_channels = conv.x_channels;
  p.row = p.groups * p.chunks * chunk;
  return p;
}

}  // namespace retrograd::kernels::cuda::patches
