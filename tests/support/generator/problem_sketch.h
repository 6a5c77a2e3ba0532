// SPDX-License-Identifier: Apache-2.0
// ProblemSketch: a problem as the few numbers it is made of. Sizes that follow from others are not in it, so
// any of them may be changed by itself: a generator draws sketches, a failing one is made smaller.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "problem/problem.h"

namespace retrograd::test {

// How a tensor's axes lie in memory. Strides follow from it and the sizes.
struct LayoutSketch {
  enum class Order : unsigned char { kRowMajor, kChannelsLast, kGiven };
  Order order = Order::kRowMajor;
  std::array<int, 5> fastest_first{0, 1, 2, 3, 4};  // kGiven; entries beyond the rank are skipped
  int64_t step = 1;                                 // stride of the fastest axis
  std::array<int64_t, 5> gaps{};                    // elements left out behind an axis
  unsigned reversed = 0;                            // a bit an axis: its stride is negative
  unsigned broadcast = 0;                           // its stride is 0; operands that are read only
  unsigned overlapping = 0;   // its stride is that of the axis before: windows of one line; likewise
  int64_t lone_stride = 0;    // of axes with one element, where it means nothing
  bool lone_strides = false;  // whether they have that one
  bool operator==(const LayoutSketch&) const = default;
};

struct AxisSketch {
  int64_t size = 1;  // of the input
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_lo = 0, pad_hi = 0;
  int64_t extra_lo = 0, extra_hi = 0;  // output padding, transposed convolutions
  bool operator==(const AxisSketch&) const = default;
};

enum class ProblemKind : unsigned char { kConv, kConvTbc, kAvgPool };

struct ProblemSketch {
  ProblemKind kind = ProblemKind::kConv;
  bool forward = false, bias = false;  // a bias is a convolution's; conv_tbc always has one
  const char* shape_class = "";        // which distribution it was drawn from
  int64_t batch = 1;
  int64_t groups = 1;
  int64_t inputs = 1, outputs = 1;  // channels a group
  std::vector<AxisSketch> axes;     // one to three; conv_tbc has one
  bool transposed = false;
  int64_t math_mode = 0;
  bool winograd = false;
  // Pooling.
  bool ceil_mode = false, count_include_pad = true, uncorrected_ceil_sizes = false, without_batch = false;
  int64_t divisor = 0;
  // By operand, problem::Operand's order.
  std::array<DType, problem::kOperandCount> types{};
  std::array<LayoutSketch, problem::kOperandCount> layouts{};
  unsigned mask = 7;  // 1 grad_input, 2 grad_weight, 4 grad_bias; conv only

  LayoutSketch& layout(problem::Operand operand) { return layouts[static_cast<size_t>(operand)]; }
  const LayoutSketch& layout(problem::Operand operand) const { return layouts[static_cast<size_t>(operand)]; }
  DType& type(problem::Operand operand) { return types[static_cast<size_t>(operand)]; }
};

// nullopt where no legal request comes of it.
std::optional<problem::Request> to_request(const ProblemSketch& sketch);

// Multiplications of one gradient, those of padding left out.
double products_of(const ProblemSketch& sketch);
// Elements of all tensors; those of broadcast axes are counted as if they lay in memory.
double elements_of(const ProblemSketch& sketch);

// Legal sketches that are one step simpler, the largest steps first: sizes halved, an axis, an attribute or a
// layout dropped.
std::vector<ProblemSketch> simpler_than(const ProblemSketch& sketch);

}  // namespace retrograd::test
