// SPDX-License-Identifier: Apache-2.0
// Output shapes that fit, so that a fuzzer gets past the first checks; whatever does not fit gives some shape
// or other.
#pragma once

#include <cstdint>
#include <vector>

namespace retrograd::fuzz {

struct ConvAttributes {
  std::vector<int64_t> stride, padding, dilation, output_padding;
  bool transposed = false;
  int64_t groups = 1;
};

// Of the gradient of a convolution's output.
std::vector<int64_t> conv_output_shape(const std::vector<int64_t>& input, const std::vector<int64_t>& weight,
                                       const ConvAttributes& attributes);
std::vector<int64_t> pool_output_shape(const std::vector<int64_t>& input, const std::vector<int64_t>& kernel,
                                       const std::vector<int64_t>& stride,
                                       const std::vector<int64_t>& padding, bool ceil_mode);

}  // namespace retrograd::fuzz
