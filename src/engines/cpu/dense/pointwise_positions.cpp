// SPDX-License-Identifier: Apache-2.0
// The index arithmetic of pointwise_positions.h.
#include "engines/cpu/dense/pointwise_positions.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "engines/cpu/dense/grad_weight_blocking.h"
#include "engines/cpu/rows.h"
#include "kernels/cpu/layout/row_space.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;
using problem::PassTensor;
using problem::Window;

// Positions that lie at equal distances: a row, a plane or a volume.
int64_t run_of(const ConvPass& pass, const PassTensor& tensor, bool has_idle_places) {
  int64_t run = pass.axes[2].y;
  for (size_t axis = 2; axis-- > 0 && !has_idle_places;) {
    const int64_t size = pass.axes[axis].y;
    if (size > 1 && tensor.strides[axis + 2] != run * tensor.strides[4]) break;
    run *= size;
  }
  return run;
}

}  // namespace

bool is_pointwise(const Window& w) {
  return w.kernel == 1 && w.pad_lo == 0 && w.stride > 0 && (w.y - 1) <= (w.x - 1) / w.stride;
}

PointwisePositions::PointwisePositions(const ConvPass& pass)
    : pass_(is_forward(pass) ? without_idle_places(pass) : pass),
      count_(pass.batch * pass.axes[0].y * pass.axes[1].y * pass.axes[2].y) {
  for (size_t axis = 0; !is_forward(pass) && axis < 3; ++axis) {
    step_[axis] = pass_.axes[axis].stride;
    has_idle_places_ |= pass_.axes[axis].x != pass_.axes[axis].y;
  }
  source_run_ = run_of(pass_, source_of(pass_), false);
  result_run_ = run_of(pass_, pass_.result(), has_idle_places_);
}

PointwisePositions::Place PointwisePositions::place_of(int64_t position) const {
  const int64_t w = pass_.axes[2].y, h = pass_.axes[1].y, d = pass_.axes[0].y;
  const int64_t row = position / w, plane = row / h;
  return {plane / d, {plane % d, row % h, position % w}};
}

int64_t PointwisePositions::source_at(int64_t position) const {
  const auto& s = source_of(pass_).strides;
  const Place place = place_of(position);
  return place.n * s[0] + place.at[0] * s[2] + place.at[1] * s[3] + place.at[2] * s[4];
}

int64_t PointwisePositions::result_at(int64_t position) const {
  const auto& s = pass_.result().strides;
  const Place place = place_of(position);
  return place.n * s[0] + place.at[0] * step_[0] * s[2] + place.at[1] * step_[1] * s[3] +
         place.at[2] * step_[2] * s[4];
}

void PointwisePositions::store(std::byte* base, int64_t position, int64_t count, const float* values,
                               int64_t stride, int64_t channels, bool stream) const {
  const PassTensor& result = pass_.result();
  const auto& s = result.strides;
  const auto bytes = static_cast<int64_t>(size_of(result.dtype));
  std::byte* out = base + result_at(position) * bytes;
  if (!has_idle_places_) {
    const bool plain = result.dtype == DType::kF32 && s[4] == 1;
    for (; channels > 0; --channels, values += stride, out += s[1] * bytes) {
      if (plain)
        std::memcpy(out, values, static_cast<size_t>(count) * sizeof(float));
      else
        store_row(result.dtype, out, s[4], values, 1, count);
    }
    return;
  }
  const Place place = place_of(position);
  // Places from `positions` positions on up to the next position; the last one owns the rest.
  const auto owned = [&](size_t axis, int64_t positions) {
    const Window& w = pass_.axes[axis];
    const int64_t end = place.at[axis] + positions;
    return (end == w.y ? w.x : end * w.stride) - place.at[axis] * w.stride;
  };
  const int64_t length = owned(2, count), height = owned(1, 1), depth = owned(0, 1);
  if (result.dtype == DType::kF32 && s[4] == 1) {
    // Rows of zeros that follow in memory are the end of the row with the values.
    const bool rows_touch = s[3] == length, planes_touch = rows_touch && s[2] == height * length;
    const int64_t joined = planes_touch ? depth * height : rows_touch ? height : 1;
    kernels::cpu::SpacedOutRows rows{.in = values,
                                     .in_stride = stride,
                                     .out_stride = s[1],
                                     .rows = channels,
                                     .step = step_[2],
                                     .length = joined * length,
                                     .stream = stream};
    for (int64_t row = 0; row < depth * height; row += joined) {
      rows.out = reinterpret_cast<float*>(out) + row / height * s[2] + row % height * s[3];
      rows.count = row == 0 ? count : 0;
      kernels::cpu::space_rows(rows);
    }
    return;
  }
  for (; channels > 0; --channels, values += stride, out += s[1] * bytes)
    for (int64_t d = 0; d < depth; ++d)
      for (int64_t h = 0; h < height; ++h)
        store_spaced(out + (d * s[2] + h * s[3]) * bytes, values, d + h == 0 ? count : 0, length);
}

// The values at their places, and zeros at all others of `length`.
void PointwisePositions::store_spaced(std::byte* row, const float* values, int64_t count,
                                      int64_t length) const {
  const PassTensor& result = pass_.result();
  const int64_t stride = result.strides[4];
  const float zero = 0;
  // The code 0 is zero in every type.
  if (stride == 1)
    std::memset(row, 0, static_cast<size_t>(length) * size_of(result.dtype));
  else
    store_row(result.dtype, row, stride, &zero, 0, length);
  store_row(result.dtype, row, step_[2] * stride, values, 1, count);
}

}  // namespace retrograd::engines::cpu
