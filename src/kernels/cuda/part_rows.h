// SPDX-License-Identifier: Apache-2.0
// Which pixels of y a part of a grad_weight of one or two axes holds: runs of rows of all images.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace retrograd::kernels::cuda {

// A part holds `items` bands of `band_rows` rows, an image has `bands` of them; `slots` parts side by side
// share the columns of the same rows. items = 0: it holds something else.
struct PartRows {
  int64_t items = 0, bands = 1, band_rows = 0, slots = 1, height = 0;  // height: rows of an image

  static PartRows of_images(int64_t images, int64_t height) { return {images, 1, height, 1, height}; }
  // Of all images' rows, where part i begins; may lie beyond the last.
  RG_DEVICE int64_t first_row(int64_t i) const {
    const int64_t item = i * items, row = item % bands * band_rows;
    return item / bands * height + (row < height ? row : height);
  }
};

}  // namespace retrograd::kernels::cuda
