// SPDX-License-Identifier: Apache-2.0
// The limits of im2col descriptions.
#include "kernels/cuda/dense/places_map.h"

namespace retrograd::kernels::cuda {

bool is_sayable(const PlacesMap& map, const int64_t (&largest_offset)[3]) {
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
