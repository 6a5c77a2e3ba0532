// SPDX-License-Identifier: Apache-2.0
// In what form row_products reads the operands of a grad_weight: the form is the order of sums, so it is a
// function of the problem and WeightGpu alone, chosen for an H200.
#pragma once

#include "kernels/cuda/dense_weight/plane_weight_plan.h"

namespace retrograd::kernels::cuda {

enum class WeightForm : unsigned char {
  kRows,        // rows of channels of both
  kPatches,     // rows of y by windows of x, one row a place of y (im2col)
  kPlanes,      // both in place
  kPatchPlanes  // y in place by windows of x, one plane a channel and tap
};
inline bool in_planes(WeightForm form) {
  return form == WeightForm::kPlanes || form == WeightForm::kPatchPlanes;
}

struct WeightWay {
  WeightForm form = WeightForm::kRows;
  WeightChoice choice{};  // of kRows and kPatches
  PlaneChoice planes{};   // of kPlanes and kPatchPlanes
  // Bytes that copies of x and y read and write; 0: in place, or patches.
  double x_copied = 0, y_copied = 0;
  double patches = 0;  // elements of x in them
  double product = 0;  // microseconds on an H200, copies left out
};
// in_place: operands that are rows of channels already.
WeightWay weight_way(const Conv& conv, ProductMath math, const WeightGpu& gpu, bool x_in_place,
                     bool y_in_place);

// Of the patches' copy, on an H200: elements are read one by one.
double patch_microseconds(const WeightWay& way);

// Elements of a group's row of patches, filled up.
inline int64_t patch_row(const Conv& conv, ProductMath math) {
  return filled_to(conv.x_channels * taps_of(conv), chunk_elements(math));
}

// The product of patches as planes [image][group][x channel, tap][place] by y: one tap.
Conv conv_of_patch_planes(const Conv& conv, ProductMath math);

// The same sums with nothing but the read places of x along axes that have one tap and a stride.
Conv without_unread_places(const Conv& conv);

}  // namespace retrograd::kernels::cuda
