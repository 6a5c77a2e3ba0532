// SPDX-License-Identifier: Apache-2.0
// aten::convolution_backward
#include <array>
#include <optional>
#include <vector>

#include "kernel_parts.h"
#include "kernels.h"
#include "layouts.h"

namespace retrograd_torch {
namespace {

using torch::stable::Tensor;
using Ints = std::vector<int64_t>;

struct Arguments {
  explicit Arguments(StableIValue* stack)
      : grad_output(take<Tensor>(stack, 0)),
        input(take<Tensor>(stack, 1)),
        weight(take<Tensor>(stack, 2)),
        bias_sizes(take<std::optional<Ints>>(stack, 3)),
        stride(take<Ints>(stack, 4)),
        padding(take<Ints>(stack, 5)),
        dilation(take<Ints>(stack, 6)),
        transposed(take<bool>(stack, 7)),
        output_padding(take<Ints>(stack, 8)),
        groups(take<int64_t>(stack, 9)),
        wanted(take<std::vector<bool>>(stack, 10)) {}

  void put_back(StableIValue* stack) const {
    put(stack, 0, grad_output);
    put(stack, 1, input);
    put(stack, 2, weight);
    put(stack, 3, bias_sizes);
    put(stack, 4, stride);
    put(stack, 5, padding);
    put(stack, 6, dilation);
    put(stack, 7, transposed);
    put(stack, 8, output_padding);
    put(stack, 9, groups);
    StableListHandle list = nullptr;  // std::vector<bool> has no array
    TORCH_ERROR_CODE_CHECK(torch_new_list_reserve_size(wanted.size(), &list));
    for (const bool one : wanted)
      TORCH_ERROR_CODE_CHECK(torch_list_push_back(list, torch::stable::detail::from(one)));
    put(stack, 10, list);
  }

  Tensor grad_output, input, weight;
  std::optional<Ints> bias_sizes;
  Ints stride, padding, dilation;
  bool transposed;
  Ints output_padding;
  int64_t groups;
  std::vector<bool> wanted;
};

struct Call {
  explicit Call(const Arguments& arguments)
      : arguments(arguments),
        grad_output(arguments.grad_output),
        input(arguments.input),
        weight(arguments.weight) {}
  const Arguments& arguments;
  Operand grad_output, input, weight;

  int64_t c_out() const { return arguments.transposed ? weight.size(1) * arguments.groups : weight.size(0); }
};

// Asked once for a problem: which of PyTorch's own kernels would run decides how its results lie, and
// compiled graphs assert that.
std::optional<Format> format_of_results(const Arguments& arguments) {
  std::array<StableIValue, 9> stack{};
  put(stack.data(), 0, arguments.input);
  put(stack.data(), 1, arguments.weight);
  put(stack.data(), 2, arguments.bias_sizes);
  put(stack.data(), 3, arguments.stride);
  put(stack.data(), 4, arguments.padding);
  put(stack.data(), 5, arguments.dilation);
  put(stack.data(), 6, arguments.transposed);
  put(stack.data(), 7, arguments.output_padding);
  put(stack.data(), 8, arguments.groups);
  if (torch_call_dispatcher("retrograd::convolution_format", "", stack.data(), TORCH_ABI_VERSION) != 0)
    return std::nullopt;  // no legal convolution to PyTorch
  return take<int64_t>(stack.data(), 0) != 0 ? Format::kChannelsLast : Format::kContiguous;
}

Facts facts_of(const Call& call, retrogradDtype_t dtype) {
  // A transposed convolution is the gradient of an ordinary one, whose input is this one's output.
  const bool transposed = call.arguments.transposed;
  const Operand& wide = transposed ? call.grad_output : call.input;
  const Operand& narrow = transposed ? call.input : call.grad_output;
  int64_t places = 1, read = 1;
  for (int axis = 2; axis < wide.rank(); ++axis) {
    places *= wide.size(axis);
    read *= narrow.size(axis) * call.weight.size(axis);
  }
  return {.device = call.input.device().type,
          .dtype = dtype,
          .groups = call.arguments.groups,
          .windows_overlap = read > places};
}

void fill(Entry& entry, const Call& call, retrogradDtype_t dtype, retrogradMath_t math) {
  const Arguments& arguments = call.arguments;
  const retrogradDevice_t device = call.input.device();
  const std::optional<Format> format = format_of_results(arguments);
  if (!format) {
    entry.refusal = "PyTorch has no kernel of its own for it";
    return;
  }
  const auto sizes = [](const Operand& operand) {
    return Ints(operand.sizes(), operand.sizes() + operand.rank());
  };
  if (arguments.wanted[0]) entry.grad_input = dense(sizes(call.input), *format);
  if (arguments.wanted[1]) entry.grad_weight = dense(sizes(call.weight), *format);
  if (arguments.wanted[2]) entry.grad_bias = dense({call.c_out()}, Format::kContiguous);
  entry.depthwise =
      arguments.groups > 1 && call.weight.size(1) == 1 && call.weight.size(0) == arguments.groups;

  retrogradProblem_t problem;
  retrogradInitProblem(&problem, sizeof problem, RETROGRAD_CONV_BACKWARD);
  const retrogradTensor_t grad_output = call.grad_output.described(dtype);
  const retrogradTensor_t input = call.input.described(dtype);
  const retrogradTensor_t weight = call.weight.described(dtype);
  const retrogradTensor_t grad_input = described(entry.grad_input, dtype, device);
  const retrogradTensor_t grad_weight = described(entry.grad_weight, dtype, device);
  const retrogradTensor_t grad_bias = described(entry.grad_bias, dtype, device);
  problem.grad_output = &grad_output;
  problem.input = &input;
  problem.weight = &weight;
  if (arguments.wanted[0]) problem.grad_input = &grad_input;
  if (arguments.wanted[1]) problem.grad_weight = &grad_weight;
  if (arguments.wanted[2]) problem.grad_bias = &grad_bias;
  problem.stride = ints(arguments.stride);
  problem.padding = ints(arguments.padding);
  problem.dilation = ints(arguments.dilation);
  if (arguments.transposed) problem.output_padding = ints(arguments.output_padding);
  problem.transposed = arguments.transposed ? 1 : 0;
  problem.groups = arguments.groups;
  problem.math = math;
  plan_into(entry, problem, facts_of(call, dtype));
}

// kTaken, or what the arguments alone rule out.
Outcome judge_call(const Call& call) {
  const Outcome outcome = judge({&call.input, &call.weight, &call.grad_output});
  if (outcome != Outcome::kTaken) return outcome;
  const int rank = call.input.rank();
  if (rank < 3 || rank > kMaxRank || call.weight.rank() != rank || call.grad_output.rank() != rank)
    return Outcome::kRank;
  return Outcome::kTaken;
}

Key key_of(const Call& call, retrogradMath_t math) {
  const Arguments& arguments = call.arguments;
  Key key;
  key.push(static_cast<int64_t>(Op::kConvolutionBackward));
  call.input.append_kind_to(key);
  key.push(math);
  key.push(arguments.transposed ? 1 : 0);
  key.push(arguments.groups);
  key.push_list(arguments.wanted);
  call.grad_output.append_to(key);
  call.input.append_to(key);
  call.weight.append_to(key);
  key.push_list(arguments.stride);
  key.push_list(arguments.padding);
  key.push_list(arguments.dilation);
  key.push_list(arguments.output_padding);
  return key;
}

bool bias_fits(const Call& call) {
  const Arguments& arguments = call.arguments;
  return !arguments.wanted[2] || !arguments.bias_sizes ||
         (arguments.bias_sizes->size() == 1 && (*arguments.bias_sizes)[0] == call.c_out());
}

// True when results are on the stack.
bool ours(const Arguments& arguments, StableIValue* stack) {
  constexpr Op op = Op::kConvolutionBackward;
  const Call call(arguments);
  const retrogradDeviceType_t device = where({&call.input, &call.weight, &call.grad_output});
  const Outcome outcome = judge_call(call);
  if (outcome == Outcome::kTaken && (arguments.wanted.size() != 3 || !bias_fits(call))) {
    count_refusal(op, device, "bias_sizes or output_mask do not fit the other arguments");
    return false;
  }
  if (outcome != Outcome::kTaken) {
    count(op, device, outcome);
    return false;
  }
  const retrogradMath_t math = math_of(call.input, Products::kConvolution);
  const Key key = key_of(call, math);
  if (!key.fits()) {
    count_refusal(op, device, "lists of stride, padding or dilation are too long");
    return false;
  }
  const auto entry = entry_of(key, [&](Entry& made) { fill(made, call, *call.input.dtype(), math); });
  const auto results = compute(op, *entry, call.grad_output, &call.input, &call.weight);
  if (!results) return false;
  put(stack, 0, results->grad_input);
  put(stack, 1, results->grad_weight);
  put(stack, 2, results->grad_bias);
  return true;
}

}  // namespace

void convolution_backward(StableIValue* stack, uint64_t, uint64_t) {
  const Arguments arguments(stack);
  if (ours(arguments, stack)) return;
  arguments.put_back(stack);
  call_original(Op::kConvolutionBackward, stack);
}

}  // namespace retrograd_torch
