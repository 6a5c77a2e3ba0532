// SPDX-License-Identifier: Apache-2.0
// Translates a call's arguments.
#include "run.h"

#include <array>
#include <string>
#include <vector>

#include "arrays.h"
#include "texts.h"
#include "workspaces.h"

namespace retrograd::python {
namespace {

constexpr int kFirstResult = RETROGRAD_GRAD_INPUT;

class Operands {
 public:
  Operands(const nb::tuple& objects, const nb::tuple& dtypes, uint64_t stream) {
    for (int i = 0; i < kOperands; ++i) {
      const auto place = static_cast<size_t>(i);
      if (objects[place].is_none()) continue;
      arrays_[place].borrow(objects[place], kOperandNames[i], nb::cast<int>(dtypes[place]), stream);
      if (i >= kFirstResult && arrays_[place].read_only())
        throw nb::value_error(
            (std::string(kOperandNames[i]) + " is read-only, expected an array to write to").c_str());
    }
  }
  const retrogradTensor_t* operator[](int i) const { return arrays_[static_cast<size_t>(i)].tensor(); }
  retrogradAddresses_t addresses() const {
    const auto data = [&](int i) { return arrays_[static_cast<size_t>(i)].data(); };
    return {data(0), data(1), data(2), data(3), data(4), data(5)};
  }

 private:
  std::array<Array, kOperands> arrays_;
};

std::vector<int64_t> integers(nb::handle list) {
  std::vector<int64_t> values;
  for (const nb::handle value : list) values.push_back(nb::cast<int64_t>(value));
  return values;
}

class Problem {
 public:
  Problem(int operation, const Operands& operands, const nb::tuple& lists, const nb::tuple& numbers) {
    check(retrogradInitProblem(&problem_, sizeof problem_, static_cast<retrogradOperation_t>(operation)));
    problem_.grad_output = operands[0];
    problem_.input = operands[1];
    problem_.weight = operands[2];
    problem_.grad_input = operands[3];
    problem_.grad_weight = operands[4];
    problem_.grad_bias = operands[5];
    retrogradInts_t* const fields[] = {&problem_.kernel, &problem_.stride, &problem_.padding,
                                       &problem_.dilation, &problem_.output_padding};
    for (size_t i = 0; i < lists_.size(); ++i) {
      lists_[i] = integers(lists[i]);
      *fields[i] = {lists_[i].data(), lists_[i].size()};
    }
    const std::vector<int64_t> n = integers(numbers);
    problem_.groups = n.at(0);
    problem_.divisor_override = n.at(1);
    problem_.spatial_rank = static_cast<int32_t>(n.at(2));
    problem_.transposed = static_cast<int32_t>(n.at(3));
    problem_.ceil_mode = static_cast<int32_t>(n.at(4));
    problem_.count_include_pad = static_cast<int32_t>(n.at(5));
    problem_.winograd = static_cast<int32_t>(n.at(6));
    problem_.math = static_cast<retrogradMath_t>(n.at(7));
    for (const int64_t number : n) add(number);
  }
  const retrogradProblem_t& get() const { return problem_; }

  // Everything that a plan depends on, as bytes.
  std::string key(const Operands& operands) const {
    std::string key = numbers_;
    const auto append = [&](int64_t value) {
      key.append(reinterpret_cast<const char*>(&value), sizeof value);
    };
    append(problem_.operation);
    for (const auto& list : lists_) {
      append(static_cast<int64_t>(list.size()));
      for (const int64_t value : list) append(value);
    }
    for (int i = 0; i < kOperands; ++i) {
      const retrogradTensor_t* const tensor = operands[i];
      append(tensor == nullptr ? -1 : tensor->rank);
      if (tensor == nullptr) continue;
      append(tensor->dtype);
      append(tensor->device.type);
      append(tensor->device.index);
      for (int axis = 0; axis < tensor->rank; ++axis) {
        append(tensor->shape[axis]);
        append(tensor->strides[axis]);
      }
    }
    return key;
  }

 private:
  void add(int64_t value) { numbers_.append(reinterpret_cast<const char*>(&value), sizeof value); }

  retrogradProblem_t problem_;
  std::array<std::vector<int64_t>, 5> lists_;
  std::string numbers_;
};

void execute(const Plan& plan, const Operands& operands, uint64_t stream, const nb::object& allocate) {
  const retrogradAddresses_t addresses = operands.addresses();
  const bool cuda = operands[0]->device.type == RETROGRAD_CUDA;
  const size_t bytes = plan.workspace_bytes();
  const Workspace host(cuda ? 0 : bytes);
  Array device;
  if (cuda && bytes > 0) device.borrow(allocate(bytes), "workspace", Array::kOwnType, stream, true);
  void* const workspace = cuda ? device.data() : host.address();
  retrogradStatus_t status;
  {
    const nb::gil_scoped_release others_run;
    status = retrogradExecute(plan.handle(), &addresses, workspace, bytes, reinterpret_cast<void*>(stream));
  }
  check(status);
}

std::string joined(const int64_t* values, int count) {
  std::string text = "(";
  for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + std::to_string(values[i]);
  return text + (count == 1 ? ",)" : ")");
}

void check_same(const retrogradTensor_t& given, const retrogradTensor_t& planned, const std::string& name) {
  const auto refuse = [&](const std::string& what) { throw nb::value_error((name + what).c_str()); };
  if (given.dtype != planned.dtype)
    throw nb::type_error((name + " has elements of another type than the plan's").c_str());
  if (given.device.type != planned.device.type || given.device.index != planned.device.index)
    refuse(" is on another device than the plan");
  bool same = given.rank == planned.rank;
  for (int i = 0; same && i < given.rank; ++i) same = given.shape[i] == planned.shape[i];
  if (!same)
    refuse(" has the shape " + joined(given.shape, given.rank) + ", the plan is for " +
           joined(planned.shape, planned.rank));
  for (int i = 0; i < given.rank; ++i)
    if (given.strides[i] != planned.strides[i] && given.shape[i] > 1)
      refuse(" has the strides " + joined(given.strides, given.rank) + ", the plan is for " +
             joined(planned.strides, planned.rank) + ", counted in elements");
}

}  // namespace

void run(int operation, nb::tuple arrays, nb::tuple dtypes, nb::tuple lists, nb::tuple numbers,
         uint64_t stream, nb::object allocate) {
  const Operands operands(arrays, dtypes, stream);
  const Problem problem(operation, operands, lists, numbers);
  const std::shared_ptr<Plan> plan = cached_plan(problem.get(), problem.key(operands));
  execute(*plan, operands, stream, allocate);
}

std::string problem_text(int operation, nb::tuple arrays, nb::tuple dtypes, nb::tuple lists,
                         nb::tuple numbers) {
  const Operands operands(arrays, dtypes, 0);
  const Problem problem(operation, operands, lists, numbers);
  return whole_text([&](char* text, size_t capacity, size_t* length) {
    return retrogradProblemText(&problem.get(), text, capacity, length);
  });
}

void run_plan(const Plan& plan, nb::tuple arrays, nb::tuple dtypes, uint64_t stream, nb::object allocate) {
  const Operands operands(arrays, dtypes, stream);
  for (int i = 0; i < kOperands; ++i) {
    if (operands[i] == nullptr) continue;
    retrogradTensor_t planned;
    check(retrogradGetPlanTensor(plan.handle(), static_cast<retrogradOperand_t>(i), &planned));
    if (planned.rank < 0)
      throw nb::value_error((std::string(kOperandNames[i]) + " is given, and the plan has none").c_str());
    check_same(*operands[i], planned, kOperandNames[i]);
  }
  if (operands[0] == nullptr) throw nb::value_error("grad_output is None, expected an array");
  execute(plan, operands, stream, allocate);
}

}  // namespace retrograd::python
