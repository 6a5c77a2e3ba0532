// SPDX-License-Identifier: Apache-2.0
// Windows of x as rows (im2col) or planes, the form in which forward or a grad_weight of few x channels is a
// product of one tap.
#pragma once

#include "kernels/cuda/layout/channel_rows.h"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// [batch · y places][groups][x channel][tap], each group filled up; zeros where a tap is beyond the edge.
// The rows are fewer than 2^31, the columns of a group at most kLongestPatch.
constexpr int64_t kLongestPatch = 1 << 21;
void make_patch_rows(const Conv& conv, RowType type, void* target, Stream stream);
// The same by a kernel for x whose places, not channels, lie side by side; not for others to call.
void make_patch_tiles(const Conv& conv, RowType type, void* target, Stream stream);

// [batch][groups][x channel][tap][y places]; an image has a whole number of 4 bytes of places.
void make_patch_planes(const Conv& conv, RowType type, void* target, Stream stream);

// Weights as [groups][y channel][x channel][tap], the last two filled up together; at most 2^38 of them.
void make_patch_weights(const Conv& conv, RowType type, void* target, Stream stream);

// The opposite (col2im), the second half of a grad_input whose taps are channels of a product: every pixel of
// x adds what the windows that hold it have for it. columns: [image][tap][x channel][place of y] in FP32. Of
// one group; x has fewer than 2^31 elements. A bias is added.
void add_columns(const Conv& conv, const float* columns, Stream stream);

}  // namespace retrograd::kernels::cuda
