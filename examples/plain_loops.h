// SPDX-License-Identifier: Apache-2.0
// The gradients of convolution and average pooling as plain loops in double, in any number of dimensions:
// written to be checked by eye, and independent of the library.
//
// A window ties a narrow side to a wide one: along each axis, tap k of narrow position o is wide position
//   o * stride - padding + k * dilation.
// Convolution and pooling read the wide side and write the narrow one; transposed convolution the reverse.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sample.h"

namespace sample {

struct Axis {
  int64_t wide, narrow, kernel, stride, padding, dilation;
};

inline std::vector<Axis> window(const Shape& wide, const Shape& narrow, const Shape& kernel,
                                const Shape& stride, const Shape& padding, const Shape& dilation) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < kernel.size(); ++i) {
    axes.push_back(Axis{wide[i + 2], narrow[i + 2], kernel[i], stride[i], padding[i], dilation[i]});
  }
  return axes;
}

// visit(narrow, wide, tap) for every tap that does not fall into the padding; the three count elements from
// the start of their channel.
template <typename Visit>
void for_each_tap(const std::vector<Axis>& axes, Visit visit) {
  int64_t positions = 1, taps = 1;
  for (const Axis& axis : axes) {
    positions *= axis.narrow;
    taps *= axis.kernel;
  }
  for (int64_t narrow = 0; narrow < positions; ++narrow) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      int64_t o = narrow, k = tap, wide = 0, pitch = 1;
      bool inside = true;
      for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
        const int64_t at =
            o % axis->narrow * axis->stride - axis->padding + k % axis->kernel * axis->dilation;
        inside = inside && at >= 0 && at < axis->wide;
        wide += at * pitch;
        pitch *= axis->wide;
        o /= axis->narrow;
        k /= axis->kernel;
      }
      if (inside) visit(narrow, wide, tap);
    }
  }
}

struct ConvSums {
  Sums grad_input, grad_weight, grad_bias;
};

// padding is what lies before each axis; what lies behind it follows from the sizes.
inline ConvSums conv_backward(const Tensor& grad_output, const Tensor& input, const Tensor& weight,
                              const Shape& stride, const Shape& padding, const Shape& dilation,
                              int64_t groups, bool transposed) {
  const Tensor& narrow = transposed ? input : grad_output;
  const Tensor& wide = transposed ? grad_output : input;
  const Shape kernel(weight.shape.begin() + 2, weight.shape.end());
  const std::vector<Axis> axes = window(wide.shape, narrow.shape, kernel, stride, padding, dilation);
  const int64_t narrow_size = product(narrow.shape.begin() + 2, narrow.shape.end());
  const int64_t wide_size = product(wide.shape.begin() + 2, wide.shape.end());
  const int64_t taps = product(kernel.begin(), kernel.end());
  const int64_t narrow_channels = narrow.shape[1], wide_channels = wide.shape[1];
  const int64_t wide_in_group = wide_channels / groups;

  ConvSums sums{Sums(input.values.size()), Sums(weight.values.size()),
                Sums(static_cast<size_t>(grad_output.shape[1]))};
  for (int64_t n = 0; n < narrow.shape[0]; ++n) {
    for (int64_t a = 0; a < narrow_channels; ++a) {
      const int64_t group = a / (narrow_channels / groups);
      for (int64_t b = 0; b < wide_in_group; ++b) {
        const int64_t narrow_start = (n * narrow_channels + a) * narrow_size;
        const int64_t wide_start = (n * wide_channels + group * wide_in_group + b) * wide_size;
        const int64_t weight_start = (a * wide_in_group + b) * taps;
        for_each_tap(axes, [&](int64_t i, int64_t j, int64_t tap) {
          const int64_t x = narrow_start + i, y = wide_start + j, w = weight_start + tap;
          const double from_output = transposed ? wide[y] : narrow[x];
          const double from_input = transposed ? narrow[x] : wide[y];
          sums.grad_input[transposed ? x : y].add(from_output * weight[w]);
          sums.grad_weight[w].add(from_output * from_input);
        });
      }
    }
  }
  const int64_t output_size = transposed ? wide_size : narrow_size;
  for (size_t i = 0; i < grad_output.values.size(); ++i) {
    const int64_t channel = static_cast<int64_t>(i) / output_size % grad_output.shape[1];
    sums.grad_bias[channel].add(grad_output.values[i]);
  }
  return sums;
}

// How many elements the window at a narrow position averages. Where it hangs over the end it is cut off
// there: behind the padding when padding counts, behind the input when it does not.
inline double divisor(const std::vector<Axis>& axes, int64_t narrow, bool count_padding) {
  int64_t count = 1;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    const int64_t start = narrow % axis->narrow * axis->stride - axis->padding, end = start + axis->kernel;
    count *= count_padding ? std::min(end, axis->wide + axis->padding) - start
                           : std::min(end, axis->wide) - std::max<int64_t>(start, 0);
    narrow /= axis->narrow;
  }
  return static_cast<double>(count);
}

inline Sums avg_pool_backward(const Tensor& grad_output, const Shape& input, const Shape& kernel,
                              const Shape& stride, const Shape& padding, bool count_padding) {
  const std::vector<Axis> axes =
      window(input, grad_output.shape, kernel, stride, padding, Shape(kernel.size(), 1));
  const int64_t output_size = product(grad_output.shape.begin() + 2, grad_output.shape.end());
  const int64_t input_size = product(input.begin() + 2, input.end());
  const int64_t channels = input[0] * input[1];
  Sums grad_input(static_cast<size_t>(channels * input_size));
  for (int64_t c = 0; c < channels; ++c) {
    for_each_tap(axes, [&](int64_t i, int64_t j, int64_t) {
      grad_input[c * input_size + j].add(grad_output[c * output_size + i] / divisor(axes, i, count_padding));
    });
  }
  return grad_input;
}

}  // namespace sample
