// SPDX-License-Identifier: Apache-2.0
// aten::avg_pool2d_backward and aten::avg_pool3d_backward; PyTorch computes avg_pool1d by the former.
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
        kernel(take<Ints>(stack, 2)),
        stride(take<Ints>(stack, 3)),
        padding(take<Ints>(stack, 4)),
        ceil_mode(take<bool>(stack, 5)),
        count_include_pad(take<bool>(stack, 6)),
        divisor_override(take<std::optional<int64_t>>(stack, 7)) {}
  void put_back(StableIValue* stack) const {
    put(stack, 0, grad_output);
    put(stack, 1, input);
    put(stack, 2, kernel);
    put(stack, 3, stride);
    put(stack, 4, padding);
    put(stack, 5, ceil_mode);
    put(stack, 6, count_include_pad);
    put(stack, 7, divisor_override);
  }
  Tensor grad_output, input;
  Ints kernel, stride, padding;
  bool ceil_mode, count_include_pad;
  std::optional<int64_t> divisor_override;
};

void fill(Entry& entry, const Arguments& arguments, const Operand& grad_output, const Operand& input, Op op,
          int spatial_rank) {
  const retrogradDtype_t dtype = *input.dtype();
  const retrogradDevice_t device = input.device();
  const Format format = op == Op::kAvgPool2dBackward ? suggested(input.rank(), input.sizes(), input.strides())
                                                     : Format::kContiguous;
  entry.grad_input = dense(Ints(input.sizes(), input.sizes() + input.rank()), format);
  const retrogradTensor_t grad_output_tensor = grad_output.described(dtype);
  const retrogradTensor_t input_tensor = input.described(dtype);
  const retrogradTensor_t grad_input_tensor = described(entry.grad_input, dtype, device);
  retrogradProblem_t problem;
  retrogradInitProblem(&problem, sizeof problem, RETROGRAD_AVG_POOL_BACKWARD);
  problem.grad_output = &grad_output_tensor;
  problem.input = &input_tensor;
  problem.grad_input = &grad_input_tensor;
  problem.kernel = ints(arguments.kernel);
  problem.stride = ints(arguments.stride);
  problem.padding = ints(arguments.padding);
  problem.spatial_rank = spatial_rank;
  problem.ceil_mode = arguments.ceil_mode ? 1 : 0;
  problem.count_include_pad = arguments.count_include_pad ? 1 : 0;
  problem.divisor_override = arguments.divisor_override.value_or(0);
  Facts facts;
  facts.device = device.type;
  facts.dtype = dtype;
  plan_into(entry, problem, facts);
}

bool ours(const Arguments& arguments, StableIValue* stack, Op op, int spatial_rank) {
  const Operand grad_output(arguments.grad_output), input(arguments.input);
  const retrogradDeviceType_t device = where({&input, &grad_output});
  Outcome outcome = judge({&input, &grad_output});
  if (outcome == Outcome::kTaken && ((input.rank() != spatial_rank + 1 && input.rank() != spatial_rank + 2) ||
                                     grad_output.rank() != input.rank()))
    outcome = Outcome::kRank;
  if (outcome != Outcome::kTaken) {
    count(op, device, outcome);
    return false;
  }
  const auto fits = [&](const Ints& list) {
    return list.size() == 1 || list.size() == static_cast<size_t>(spatial_rank);
  };
  if (!fits(arguments.kernel) || (!arguments.stride.empty() && !fits(arguments.stride)) ||
      !fits(arguments.padding) || arguments.divisor_override.value_or(1) == 0) {
    count_refusal(op, device, "kernel_size, stride, padding or divisor_override are out of range");
    return false;
  }
  Key key;
  key.push(static_cast<int64_t>(op));
  input.append_kind_to(key);
  key.push((arguments.ceil_mode ? 1 : 0) + (arguments.count_include_pad ? 2 : 0));
  key.push(arguments.divisor_override.value_or(0));
  grad_output.append_to(key);
  input.append_to(key);
  key.push_list(arguments.kernel);
  key.push_list(arguments.stride);
  key.push_list(arguments.padding);
  const auto entry =
      entry_of(key, [&](Entry& made) { fill(made, arguments, grad_output, input, op, spatial_rank); });
  const auto results = compute(op, *entry, grad_output, nullptr, nullptr);
  if (!results) return false;
  put(stack, 0, results->grad_input);
  return true;
}

void run(StableIValue* stack, Op op, int spatial_rank) {
  const Arguments arguments(stack);
  if (ours(arguments, stack, op, spatial_rank)) return;
  arguments.put_back(stack);
  call_original(op, stack);
}

}  // namespace

void avg_pool2d_backward(StableIValue* stack, uint64_t, uint64_t) { run(stack, Op::kAvgPool2dBackward, 2); }
void avg_pool3d_backward(StableIValue* stack, uint64_t, uint64_t) { run(stack, Op::kAvgPool3dBackward, 3); }

}  // namespace retrograd_torch
