// SPDX-License-Identifier: Apache-2.0
// Boxes and walks over pixels, as Hopper's copy engine knows them (tensor_map.h makes descriptions of them).
#pragma once

#include <cstdint>

namespace retrograd::kernels::cuda {

// Elements of 16 bits, or FP32.
enum class MapType : unsigned char { kF16, kBF16, kF32 };

// Boxes of a tensor of up to five axes, innermost first; strides in bytes, multiples of 16, of all axes but
// the first. A box's innermost axis is 128, 64 or 32 bytes, swizzled over eight rows of them; outside the
// tensor there are zeros.
struct BoxMap {
  int axes;
  uint64_t sizes[5], strides[4];
  uint32_t box[5];
  int row_bytes = 128;  // of the box's innermost axis
};

// Rows of channels of consecutive places of (c, w, h[, d], n), channels last and dense. Along an
// axis, the places begin at first, lie step apart, and there are `count` of them.
struct PlacesMap {
  int axes;  // w, h: 2; with d: 3
  int64_t channels, batch;
  int64_t sizes[3];  // w, h, d
  int64_t first[3], step[3], count[3];
  uint32_t places;  // of a box
  int row_bytes = 128;
};

// Past the last place, relative to the end of the axis.
inline int64_t upper_corner(const PlacesMap& map, int axis) {
  return map.first[axis] + (map.count[axis] - 1) * map.step[axis] + 1 - map.sizes[axis];
}

// What the hardware can say: first within ±128 (three axes: ±16), offsets of taps up to 255 (31), steps up
// to 8.
inline bool is_sayable(const PlacesMap& map, const int64_t (&largest_offset)[3]) {
  const int64_t corner = map.axes == 2 ? 128 : 16;
  for (int i = 0; i < map.axes; ++i) {
    const int64_t upper = upper_corner(map, i);
    if (map.first[i] < -corner || map.first[i] >= corner || upper < -corner || upper >= corner ||
        largest_offset[i] < 0 || largest_offset[i] >= 2 * corner || map.step[i] < 1 || map.step[i] > 8)
      return false;
  }
  return true;
}

}  // namespace retrograd::kernels::cuda
