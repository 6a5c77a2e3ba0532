// SPDX-License-Identifier: Apache-2.0
// aten::conv_tbc_backward, at the Autograd key: PyTorch's own kernel is a composite one that records its
// graph there.
#include <torch/csrc/inductor/aoti_torch/c/shim.h>

#include <vector>

#include "kernel_parts.h"
#include "kernels.h"
#include "layouts.h"

namespace retrograd_torch {
namespace {

using torch::stable::Tensor;

struct Arguments {
  explicit Arguments(StableIValue* stack)
      : grad_output(take<Tensor>(stack, 0)),
        input(take<Tensor>(stack, 1)),
        weight(take<Tensor>(stack, 2)),
        bias(take<Tensor>(stack, 3)),
        pad(take<int64_t>(stack, 4)) {}
  void put_back(StableIValue* stack) const {
    put(stack, 0, grad_output);
    put(stack, 1, input);
    put(stack, 2, weight);
    put(stack, 3, bias);
    put(stack, 4, pad);
  }
  Tensor grad_output, input, weight, bias;
  int64_t pad;
};

void fill(Entry& entry, const Operand& grad_output, const Operand& input, const Operand& weight, int64_t pad,
          retrogradMath_t math) {
  const retrogradDtype_t dtype = *input.dtype();
  const retrogradDevice_t device = input.device();
  const auto sizes = [](const Operand& of) {
    return std::vector<int64_t>(of.sizes(), of.sizes() + of.rank());
  };
  entry.grad_input = dense(sizes(input), Format::kContiguous);
  entry.grad_weight = dense(sizes(weight), Format::kContiguous);
  entry.grad_bias = dense({weight.size(2)}, Format::kContiguous);
  const retrogradTensor_t operands[] = {grad_output.described(dtype), input.described(dtype),
                                        weight.described(dtype)};
  const retrogradTensor_t results[] = {described(entry.grad_input, dtype, device),
                                       described(entry.grad_weight, dtype, device),
                                       described(entry.grad_bias, dtype, device)};
  retrogradProblem_t problem;
  retrogradInitProblem(&problem, sizeof problem, RETROGRAD_CONV_TBC_BACKWARD);
  problem.grad_output = &operands[0];
  problem.input = &operands[1];
  problem.weight = &operands[2];
  problem.grad_input = &results[0];
  problem.grad_weight = &results[1];
  problem.grad_bias = &results[2];
  problem.padding = {&pad, 1};
  problem.math = math;
  Facts facts;
  facts.device = device.type;
  facts.dtype = dtype;
  plan_into(entry, problem, facts);
}

bool ours(const Arguments& arguments, StableIValue* stack) {
  constexpr Op op = Op::kConvTbcBackward;
  const Operand grad_output(arguments.grad_output), input(arguments.input), weight(arguments.weight),
      bias(arguments.bias);
  const retrogradDeviceType_t device = where({&input, &weight, &grad_output, &bias});
  if (aoti_torch_grad_mode_is_enabled()) {
    count(op, device, Outcome::kRecordsGraph);
    return false;
  }
  Outcome outcome = judge({&input, &weight, &grad_output, &bias});
  if (outcome == Outcome::kTaken && (input.rank() != 3 || weight.rank() != 3 || grad_output.rank() != 3))
    outcome = Outcome::kRank;
  if (outcome != Outcome::kTaken) {
    count(op, device, outcome);
    return false;
  }
  if (bias.rank() != 1 || bias.size(0) != weight.size(2)) {
    count_refusal(op, device, "bias does not have one number for each output channel");
    return false;
  }
  const retrogradMath_t math = math_of(input, Products::kMatrix);  // PyTorch computes it by matrix products
  Key key;
  key.push(static_cast<int64_t>(op));
  input.append_kind_to(key);
  key.push(math);
  key.push(arguments.pad);
  grad_output.append_to(key);
  input.append_to(key);
  weight.append_to(key);
  const auto entry =
      entry_of(key, [&](Entry& made) { fill(made, grad_output, input, weight, arguments.pad, math); });
  const auto results = compute(op, *entry, grad_output, &input, &weight);
  if (!results) return false;
  put(stack, 0, results->grad_input);
  put(stack, 1, results->grad_weight);
  put(stack, 2, results->grad_bias);
  return true;
}

}  // namespace

void conv_tbc_backward(StableIValue* stack, uint64_t, uint64_t) {
  const Arguments arguments(stack);
  if (ours(arguments, stack)) return;
  arguments.put_back(stack);
  call_original(Op::kConvTbcBackward, stack);
}

}  // namespace retrograd_torch
