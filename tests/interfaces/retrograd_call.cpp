// SPDX-License-Identifier: Apache-2.0
// Requests as calls of our own interface.
#include <array>

#include "calls.h"
#include "problem/problem_text.h"
#include "retrograd/retrograd.h"

namespace retrograd::test {
namespace {

using problem::Operand;

// DType and retrogradDtype_t have the same order.
retrogradDtype_t own_type(DType dtype) { return static_cast<retrogradDtype_t>(dtype); }

retrogradInts_t ints(const std::vector<int64_t>& values) { return {values.data(), values.size()}; }

// A problem and the tensors it points at.
class OwnProblem {
 public:
  OwnProblem(retrogradOperation_t operation, Operands& operands) : operands_(operands) {
    retrogradInitProblem(&problem_, sizeof problem_, operation);
  }
  retrogradProblem_t* operator->() { return &problem_; }
  const retrogradProblem_t* get() const { return &problem_; }

  const retrogradTensor_t* tensor(Operand operand, const problem::TensorView& view) {
    retrogradTensor_t& made = tensors_[static_cast<size_t>(operand)];
    void* const data = operands_[operand] ? operands_[operand]->data() : nullptr;
    made = {data,
            own_type(view.dtype),
            view.shape.rank(),
            view.shape.begin(),
            view.strides.begin(),
            {RETROGRAD_CPU, 0}};
    return &made;
  }
  const retrogradTensor_t* tensor(Operand operand, const std::optional<problem::TensorView>& view) {
    return view ? tensor(operand, *view) : nullptr;
  }
  // The output of a forward request is where the gradient of a backward one is.
  template <class Request>
  void set_y(const Request& r) {
    (r.forward ? problem_.output : problem_.grad_output) =
        tensor(r.forward ? Operand::kOutput : Operand::kGradOutput, r.grad_output);
  }

 private:
  Operands& operands_;
  retrogradProblem_t problem_;
  std::array<retrogradTensor_t, problem::kOperandCount> tensors_{};
};

CallResult failure(const char* what, retrogradStatus_t status) {
  return {std::string(what) + " returned " + std::to_string(status) + ": " + retrogradGetLastError()};
}

// One call in two ways, into the same results: as one, and with a plan.
CallResult run(const OwnProblem& problem) {
  const retrogradProblem_t& p = *problem.get();
  if (const auto status = retrogradRun(&p, nullptr); status != RETROGRAD_OK) return failure("run", status);
  retrogradPlan_t plan = nullptr;
  if (const auto status = retrogradCreatePlan(&plan, &p); status != RETROGRAD_OK)
    return failure("create", status);
  size_t size = 0;
  retrogradGetWorkspaceSize(plan, &size);
  std::vector<std::byte> workspace(size);
  const auto data = [](const retrogradTensor_t* tensor) {
    return tensor == nullptr ? nullptr : tensor->data;
  };
  const retrogradAddresses_t addresses{data(p.grad_output), data(p.input),       data(p.weight),
                                       data(p.grad_input),  data(p.grad_weight), data(p.grad_bias),
                                       data(p.bias),        data(p.output)};
  const auto status = retrogradExecute(plan, &addresses, workspace.data(), size, nullptr);
  if (status != RETROGRAD_OK) return failure("execute", status);
  retrogradDestroyPlan(plan);
  return {"", size};
}

CallResult call(const problem::ConvRequest& r, Operands& o) {
  OwnProblem problem(r.forward ? RETROGRAD_CONV : RETROGRAD_CONV_BACKWARD, o);
  problem.set_y(r);
  problem->bias = problem.tensor(Operand::kBias, r.bias);
  problem->input = problem.tensor(Operand::kInput, r.input);
  problem->weight = problem.tensor(Operand::kWeight, r.weight);
  problem->grad_input = problem.tensor(Operand::kGradInput, r.grad_input);
  problem->grad_weight = problem.tensor(Operand::kGradWeight, r.grad_weight);
  problem->grad_bias = problem.tensor(Operand::kGradBias, r.grad_bias);
  problem->stride = ints(r.stride);
  problem->padding = ints(r.padding);
  problem->dilation = ints(r.dilation);
  problem->output_padding = ints(r.output_padding);
  problem->groups = r.groups;
  problem->transposed = r.transposed ? 1 : 0;
  problem->math = static_cast<retrogradMath_t>(r.math.mode);
  return run(problem);
}

CallResult call(const problem::ConvTbcRequest& r, Operands& o) {
  OwnProblem problem(r.forward ? RETROGRAD_CONV_TBC : RETROGRAD_CONV_TBC_BACKWARD, o);
  problem.set_y(r);
  problem->input = problem.tensor(Operand::kInput, r.input);
  problem->weight = problem.tensor(Operand::kWeight, r.weight);
  if (r.forward) {
    problem->bias = problem.tensor(Operand::kBias, r.bias);
  } else {
    problem->grad_input = problem.tensor(Operand::kGradInput, r.grad_input);
    problem->grad_weight = problem.tensor(Operand::kGradWeight, r.grad_weight);
    problem->grad_bias = problem.tensor(Operand::kGradBias, r.grad_bias);
  }
  problem->padding = {&r.pad, 1};
  problem->math = static_cast<retrogradMath_t>(r.math.mode);
  return run(problem);
}

CallResult call(const problem::AvgPoolRequest& r, Operands& o) {
  OwnProblem problem(r.forward ? RETROGRAD_AVG_POOL : RETROGRAD_AVG_POOL_BACKWARD, o);
  problem.set_y(r);
  problem->input = problem.tensor(Operand::kInput, r.input);
  if (!r.forward) problem->grad_input = problem.tensor(Operand::kGradInput, r.grad_input);
  problem->kernel = ints(r.kernel);
  problem->stride = ints(r.stride);
  problem->padding = ints(r.padding);
  problem->ceil_mode = r.ceil_mode ? 1 : 0;
  problem->count_include_pad = r.count_include_pad ? 1 : 0;
  problem->divisor_override = r.divisor_override;
  problem->spatial_rank = r.spatial_rank;
  return run(problem);
}

}  // namespace

bool retrograd_offers(const problem::Request& request) {
  const auto* const pool = std::get_if<problem::AvgPoolRequest>(&request);
  return pool == nullptr || !pool->uncorrected_ceil_sizes;
}

CallResult call_retrograd(const problem::Request& request, Operands& operands) {
  return std::visit([&](const auto& r) { return call(r, operands); }, request);
}

}  // namespace retrograd::test
