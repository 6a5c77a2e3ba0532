// SPDX-License-Identifier: Apache-2.0
// 16-bit elements from planes, pixels innermost, to rows of channels and back, as they are: nothing is
// converted, so both sides move 16 bytes at a time.
#pragma once

#include <cstdint>

#include "kernels/cuda/layout/channel_rows.h"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

struct PlaneRows {
  int64_t outer, channels;               // images, or the y channels of weights; channels of each
  int64_t spatial[3];                    // places of a plane, or taps
  int64_t outer_stride, channel_stride;  // of the planes, in elements
  // Rows are [filled_outer][places][filled_channels], with zeros behind the planes' own.
  int64_t filled_outer, filled_channels;
  int64_t places() const { return spatial[0] * spatial[1] * spatial[2]; }
};

// Whether the tensor, of `type`, has planes whose places lie side by side and that a kernel here takes; fills
// in the strides.
bool has_planes(const Tensor& tensor, RowType type, PlaneRows& shape);

void planes_to_rows(const PlaneRows& shape, const void* planes, void* rows, Stream stream);
void rows_to_planes(const PlaneRows& shape, const void* rows, void* planes, Stream stream);

}  // namespace retrograd::kernels::cuda
