// SPDX-License-Identifier: Apache-2.0
// How weights are stored, by their strides: in place, as a filter whose channels are filled up to multiples
// of 8, or as parts.
#include <algorithm>

#include "kernels/cuda/counts.h"
#include "kernels/cuda/dense_weight/weight_results.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int64_t kMostFilter = int64_t{1} << 31;

int64_t filled(const Conv& conv) { return ceil_of(conv.x_channels, 8) * int64_t{8}; }

}  // namespace

WeightStrides strides_of(const Conv& conv, WeightResults results) {
  const int64_t* s = conv.w.strides;
  const Axis(&a)[3] = conv.axes;
  // Strides that lead nowhere are 0.
  if (results == WeightResults::kInPlace)
    return {conv.groups * conv.y_channels > 1 ? s[0] : 0, a[0].kernel > 1 ? s[2] : 0,
            a[1].kernel > 1 ? s[3] : 0, a[2].kernel > 1 ? s[4] : 0};
  const int64_t row = filled(conv), line = a[2].kernel * row, plane = a[1].kernel * line;
  return {a[0].kernel * plane, plane, line, row};
}

WeightResults whole_results(const Conv& conv, DType rows) {
  if (conv.w.dtype != rows) return WeightResults::kParts;
  const WeightStrides strides = strides_of(conv, WeightResults::kInPlace);
  if (conv.w.strides[1] == 1 && conv.x_channels % 8 == 0 &&
      std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride % 8 == 0; }))
    return WeightResults::kInPlace;
  const int64_t row = strides_of(conv, WeightResults::kFilter)[0];
  return conv.groups * conv.y_channels < kMostFilter / row ? WeightResults::kFilter : WeightResults::kParts;
}

}  // namespace retrograd::kernels::cuda
