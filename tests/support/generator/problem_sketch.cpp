// SPDX-License-Identifier: Apache-2.0
// From the numbers of a sketch to the tensors of a request.
#include "support/generator/problem_sketch.h"

#include <algorithm>

#include "problem/window.h"
#include "support/operands.h"

namespace retrograd::test {
namespace {

using problem::Operand;
using problem::TensorView;
using Order = LayoutSketch::Order;

bool has_bit(unsigned bits, int axis) { return (bits >> static_cast<unsigned>(axis) & 1U) != 0; }

std::vector<int> fastest_first(const LayoutSketch& layout, int rank, int channel) {
  std::vector<int> order;
  if (layout.order == Order::kGiven) {
    for (int axis : layout.fastest_first)
      if (axis < rank) order.push_back(axis);
    return order;
  }
  if (layout.order == Order::kChannelsLast && channel < rank) order.push_back(channel);
  for (int axis = rank - 1; axis >= 0; --axis)
    if (order.empty() || axis != order.front()) order.push_back(axis);
  return order;
}

TensorView view_of(const ProblemSketch& sketch, Operand operand, const Dims& shape, int channel = 1) {
  const LayoutSketch& layout = sketch.layouts[static_cast<size_t>(operand)];
  const bool is_read = std::find(std::begin(kSources), std::end(kSources), operand) != std::end(kSources);
  TensorView view = problem::dense_view(sketch.types[static_cast<size_t>(operand)], shape);
  if (layout == LayoutSketch{}) return view;
  int64_t step = layout.step, before = 1;
  for (int axis : fastest_first(layout, shape.rank(), channel)) {
    const auto a = static_cast<size_t>(axis);
    int64_t stride = step;
    if (is_read && has_bit(layout.broadcast, axis)) {
      stride = 0;
    } else if (is_read && has_bit(layout.overlapping, axis)) {
      stride = before;
    } else {
      step = step * std::max<int64_t>(shape[axis], 1) + layout.gaps[a];
    }
    if (shape[axis] == 1 && layout.lone_strides) stride = layout.lone_stride;
    if (stride != 0) before = stride;
    view.strides[axis] = has_bit(layout.reversed, axis) ? -stride : stride;
  }
  return view;
}

// Sizes of grad_output along the axes; nullopt where the kernel does not fit.
std::optional<Dims> output_sizes(const ProblemSketch& s) {
  Dims sizes;
  for (const AxisSketch& a : s.axes) {
    std::optional<int64_t> size;
    const problem::WindowSizes window{a.size, a.kernel, a.stride, a.dilation, a.pad_lo, a.pad_hi};
    if (s.kind == ProblemKind::kAvgPool) {
      size = problem::pool_output_size({a.size, 0, a.kernel, a.stride, a.pad_lo}, s.ceil_mode,
                                       !s.uncorrected_ceil_sizes);
    } else if (s.transposed) {
      size = problem::transposed_output_size(window, a.size, a.extra_lo, a.extra_hi);
    } else {
      size = problem::output_size(window);
    }
    if (!size || *size < 1) return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}

// Pairs of a step and a tap that read inside `wide`.
double live_pairs(const AxisSketch& a, int64_t steps, int64_t wide) {
  double pairs = 0;
  for (int64_t tap = 0; tap < a.kernel; ++tap) {
    const int64_t shift =
        a.pad_lo - a.extra_lo - tap * a.dilation;  // the step that reads place 0, times stride
    const int64_t first = shift > 0 ? (shift + a.stride - 1) / a.stride : 0;
    const int64_t last = shift + wide - 1 < 0 ? -1 : (shift + wide - 1) / a.stride;
    pairs += static_cast<double>(std::max<int64_t>(0, std::min(last, steps - 1) - first + 1));
  }
  return pairs;
}

Dims with_axes(Dims dims, const Dims& axes) {
  for (int64_t size : axes) dims.push_back(size);
  return dims;
}

Operand y_operand(const ProblemSketch& s) { return s.forward ? Operand::kOutput : Operand::kGradOutput; }

problem::Request conv_request(const ProblemSketch& s, const Dims& outputs) {
  problem::ConvRequest r;
  Dims input{s.batch, s.groups * s.inputs};
  Dims weight = s.transposed ? Dims{s.groups * s.inputs, s.outputs} : Dims{s.groups * s.outputs, s.inputs};
  const auto differ = [](const AxisSketch& a) { return a.pad_lo != a.pad_hi; };
  const bool pairs = std::any_of(s.axes.begin(), s.axes.end(), differ);
  const bool extra_pairs =
      std::any_of(s.axes.begin(), s.axes.end(), [](const AxisSketch& a) { return a.extra_lo != 0; });
  for (const AxisSketch& a : s.axes) {
    input.push_back(a.size);
    weight.push_back(a.kernel);
    r.stride.push_back(a.stride);
    r.dilation.push_back(a.dilation);
    r.padding.push_back(a.pad_lo);
    if (pairs) r.padding.push_back(a.pad_hi);
    if (extra_pairs) r.output_padding.push_back(a.extra_lo);
    r.output_padding.push_back(a.extra_hi);
  }
  r.rules.asymmetric_any_rank = true;
  r.transposed = s.transposed;
  r.groups = s.groups;
  r.math.mode = s.math_mode;
  r.math.winograd = s.winograd;
  r.input = view_of(s, Operand::kInput, input);
  r.weight = view_of(s, Operand::kWeight, weight);
  r.grad_output = view_of(s, y_operand(s), with_axes({s.batch, s.groups * s.outputs}, outputs));
  r.forward = s.forward;
  if (s.forward) {
    r.names.grad_output = "output";
    if (s.bias) r.bias = view_of(s, Operand::kBias, {s.groups * s.outputs});
    return r;
  }
  if ((s.mask & 1U) != 0) r.grad_input = view_of(s, Operand::kGradInput, input);
  if ((s.mask & 2U) != 0) r.grad_weight = view_of(s, Operand::kGradWeight, weight);
  if ((s.mask & 4U) != 0) r.grad_bias = view_of(s, Operand::kGradBias, {s.groups * s.outputs});
  return r;
}

problem::Request conv_tbc_request(const ProblemSketch& s, const Dims& outputs) {
  problem::ConvTbcRequest r;
  const AxisSketch& a = s.axes.front();
  const Dims input{a.size, s.batch, s.inputs}, weight{a.kernel, s.inputs, s.outputs};
  constexpr int kChannel = 2;
  r.pad = a.pad_lo;
  r.math.mode = s.math_mode;
  r.forward = s.forward;
  r.grad_output = view_of(s, y_operand(s), {outputs[0], s.batch, s.outputs}, kChannel);
  r.input = view_of(s, Operand::kInput, input, kChannel);
  r.weight = view_of(s, Operand::kWeight, weight, kChannel);
  if (s.forward) {
    r.names.grad_output = "output";
    r.bias = view_of(s, Operand::kBias, {s.outputs});
    return r;
  }
  r.bias = problem::dense_view(r.grad_output.dtype, {s.outputs});
  r.grad_input = view_of(s, Operand::kGradInput, input, kChannel);
  r.grad_weight = view_of(s, Operand::kGradWeight, weight, kChannel);
  r.grad_bias = view_of(s, Operand::kGradBias, {s.outputs});
  return r;
}

problem::Request avgpool_request(const ProblemSketch& s, const Dims& outputs) {
  problem::AvgPoolRequest r;
  Dims channels{s.batch, s.groups};
  if (s.without_batch) {
    channels = {s.groups};
    r.spatial_rank = static_cast<int>(s.axes.size());
  }
  Dims input = channels;
  for (const AxisSketch& a : s.axes) {
    input.push_back(a.size);
    r.kernel.push_back(a.kernel);
    r.stride.push_back(a.stride);
    r.padding.push_back(a.pad_lo);
  }
  r.ceil_mode = s.ceil_mode;
  r.count_include_pad = s.count_include_pad;
  r.divisor_override = s.divisor;
  r.uncorrected_ceil_sizes = s.uncorrected_ceil_sizes;
  const int channel = s.without_batch ? 0 : 1;
  r.input = view_of(s, Operand::kInput, input, channel);
  r.forward = s.forward;
  if (s.forward) r.names.grad_output = "output";
  r.grad_output = view_of(s, y_operand(s), with_axes(channels, outputs), channel);
  if (s.forward) return r;
  r.grad_input = view_of(s, Operand::kGradInput, input, channel);
  return r;
}

}  // namespace

std::optional<problem::Request> to_request(const ProblemSketch& sketch) {
  const auto outputs = output_sizes(sketch);
  if (!outputs) return std::nullopt;
  problem::Request request = sketch.kind == ProblemKind::kConv      ? conv_request(sketch, *outputs)
                             : sketch.kind == ProblemKind::kConvTbc ? conv_tbc_request(sketch, *outputs)
                                                                    : avgpool_request(sketch, *outputs);
  if (!problem::make_problem(request).is_ok()) return std::nullopt;
  return request;
}

double products_of(const ProblemSketch& s) {
  const auto outputs = output_sizes(s);
  if (!outputs) return 0;
  double products = static_cast<double>(s.batch * s.groups) * static_cast<double>(s.inputs * s.outputs);
  for (size_t i = 0; i < s.axes.size(); ++i) {
    const AxisSketch& a = s.axes[i];
    const int64_t out = (*outputs)[static_cast<int>(i)];
    const int64_t steps = s.transposed ? a.size : out, wide = s.transposed ? out : a.size;
    products *= live_pairs(a, steps, wide);
  }
  return products;
}

double elements_of(const ProblemSketch& s) {
  const auto outputs = output_sizes(s);
  if (!outputs) return 0;
  double input = static_cast<double>(s.batch * s.groups * s.inputs);
  double output = static_cast<double>(s.batch * s.groups * s.outputs);
  double weight = static_cast<double>(s.groups * s.inputs * s.outputs);
  for (size_t a = 0; a < s.axes.size(); ++a) {
    input *= static_cast<double>(s.axes[a].size);
    output *= static_cast<double>((*outputs)[static_cast<int>(a)]);
    weight *= static_cast<double>(s.axes[a].kernel);
  }
  return 2 * input + output + (s.kind == ProblemKind::kAvgPool ? 0 : 2 * weight);
}

}  // namespace retrograd::test
