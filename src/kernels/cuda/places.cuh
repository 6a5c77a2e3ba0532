// SPDX-License-Identifier: Apache-2.0
// A number among all pixels of a product's results, taken apart into the image and the pixel on each axis.
#pragma once

#include <cstdint>

namespace retrograd::kernels::cuda {

struct Place {
  int n, at[3];
};
// p.results: FastDiv of the axes' sizes.
template <class Product>
__device__ Place place_of(const Product& p, uint32_t m) {
  Place place;
  uint32_t w = m;
  uint32_t h = p.results[2].split(w);
  uint32_t d = p.results[1].split(h);
  place.n = static_cast<int>(p.results[0].split(d));
  place.at[0] = static_cast<int>(d);
  place.at[1] = static_cast<int>(h);
  place.at[2] = static_cast<int>(w);
  return place;
}

}  // namespace retrograd::kernels::cuda
