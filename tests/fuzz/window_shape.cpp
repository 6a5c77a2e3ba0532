// SPDX-License-Identifier: Apache-2.0
// Shapes from the library's own window arithmetic, guarded against what it is never asked inside the library.
#include "window_shape.h"

#include "base/checked.h"
#include "problem/window.h"

namespace retrograd::fuzz {
namespace {

int64_t at(const std::vector<int64_t>& values, size_t index, int64_t otherwise) {
  return index < values.size() ? values[index] : otherwise;
}

}  // namespace

std::vector<int64_t> conv_output_shape(const std::vector<int64_t>& input, const std::vector<int64_t>& weight,
                                       const ConvAttributes& a) {
  std::vector<int64_t> shape = input;
  if (input.size() < 3 || weight.size() < 2) return shape;
  shape[1] = a.transposed ? checked_mul(weight[1], a.groups).value_or(1) : weight[0];
  const size_t axes = input.size() - 2;
  const bool both_sides = a.padding.size() == 2 * axes;
  for (size_t i = 0; i < axes; ++i) {
    const int64_t stride = at(a.stride, i, 1);
    if (stride < 1) continue;
    const int64_t before = at(a.padding, both_sides ? 2 * i : i, 0);
    const int64_t after = both_sides ? at(a.padding, 2 * i + 1, 0) : before;
    const problem::WindowSizes sizes{input[i + 2], at(weight, i + 2, 1), stride, at(a.dilation, i, 1), before,
                                     after};
    const auto size =
        a.transposed ? problem::transposed_output_size(sizes, input[i + 2], 0, at(a.output_padding, i, 0))
                     : problem::output_size(sizes);
    shape[i + 2] = size.value_or(1);
  }
  return shape;
}

std::vector<int64_t> pool_output_shape(const std::vector<int64_t>& input, const std::vector<int64_t>& kernel,
                                       const std::vector<int64_t>& stride,
                                       const std::vector<int64_t>& padding, bool ceil_mode) {
  std::vector<int64_t> shape = input;
  for (size_t i = 2; i < input.size(); ++i) {
    problem::PoolWindow window;
    window.x = input[i];
    window.kernel = at(kernel, i - 2, 1);
    window.stride = at(stride, i - 2, window.kernel);
    window.pad = at(padding, i - 2, 0);
    if (window.stride >= 1) shape[i] = problem::pool_output_size(window, ceil_mode, true).value_or(1);
  }
  return shape;
}

}  // namespace retrograd::fuzz
