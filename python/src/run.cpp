// SPDX-License-Identifier: Apache-2.0
// Translates a call's arguments.
#include "run.h"

#include <array>
#include <string>

#include "arrays.h"
#include "numpy_layout.h"
#include "texts.h"
#include "workspaces.h"

namespace retrograd::python {
namespace {

bool is_result(int operand) {
  return (operand >= RETROGRAD_GRAD_INPUT && operand <= RETROGRAD_GRAD_BIAS) || operand == RETROGRAD_OUTPUT;
}

class Operands {
 public:
  // Null `dtypes`: each has its own.
  Operands(const nb::tuple& objects, const nb::tuple* dtypes, uint64_t stream) {
    const size_t count = objects.size();
    if (count > kOperands) throw nb::value_error("too many arrays");
    for (size_t i = 0; i < count; ++i) {
      const nb::handle object = objects[i];
      if (object.is_none()) continue;
      const char* const name = kOperandNames[i];
      arrays_[i].borrow(object, name, dtypes == nullptr ? Array::kOwnType : nb::cast<int>((*dtypes)[i]),
                        stream);
      if (is_result(static_cast<int>(i)) && arrays_[i].read_only())
        throw nb::value_error((std::string(name) + " is read-only, expected an array to write to").c_str());
    }
  }
  const retrogradTensor_t* operator[](int i) const { return arrays_[static_cast<size_t>(i)].tensor(); }
  retrogradAddresses_t addresses() const {
    const auto data = [&](int i) { return arrays_[static_cast<size_t>(i)].data(); };
    return {data(0), data(1), data(2), data(3), data(4), data(5), data(6), data(7)};
  }
  // Any of them: all lie on one device.
  bool on_gpu() const {
    for (const Array& array : arrays_)
      if (array.is_there()) return array.tensor()->device.type == RETROGRAD_CUDA;
    return false;
  }

 private:
  std::array<Array, kOperands> arrays_;
};

// One list of a call, without memory of its own.
class Integers {
 public:
  void read(nb::handle given, const char* name) {
    PyObject* const list = given.ptr();
    if (PyTuple_Check(list) == 0) {
      values_[0] = number(list, name);
      count_ = 1;
      return;
    }
    count_ = static_cast<size_t>(PyTuple_Size(list));
    if (count_ > kMost)
      throw nb::value_error((std::string(name) + " has " + std::to_string(count_) +
                             " entries, expected at most " + std::to_string(kMost))
                                .c_str());
    for (size_t i = 0; i < count_; ++i)
      values_[i] = number(PyTuple_GetItem(list, static_cast<Py_ssize_t>(i)), name);
  }
  const int64_t* data() const { return values_.data(); }
  size_t size() const { return count_; }
  int64_t at(size_t i) const { return values_.at(i); }

 private:
  static constexpr size_t kMost = 16;
  static int64_t number(PyObject* value, const char* name) {
    const long long read = PyLong_AsLongLong(value);
    if (read == -1 && PyErr_Occurred() != nullptr) {
      if (PyErr_ExceptionMatches(PyExc_OverflowError) == 0) nb::raise_python_error();
      PyErr_Clear();
      throw nb::value_error((std::string(name) + " has a number beyond 64 bits").c_str());
    }
    return read;
  }

  std::array<int64_t, kMost> values_{};
  size_t count_ = 0;
};

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
    problem_.bias = operands[6];
    problem_.output = operands[7];
    retrogradInts_t* const fields[] = {&problem_.kernel, &problem_.stride, &problem_.padding,
                                       &problem_.dilation, &problem_.output_padding};
    static constexpr const char* names[] = {"kernel", "stride", "padding", "dilation", "output_padding"};
    for (size_t i = 0; i < lists_.size(); ++i) {
      lists_[i].read(lists[i], names[i]);
      *fields[i] = {lists_[i].data(), lists_[i].size()};
    }
    Integers& n = numbers_;
    n.read(numbers, "numbers");
    problem_.groups = n.at(0);
    problem_.divisor_override = n.at(1);
    problem_.spatial_rank = static_cast<int32_t>(n.at(2));
    problem_.transposed = static_cast<int32_t>(n.at(3));
    problem_.ceil_mode = static_cast<int32_t>(n.at(4));
    problem_.count_include_pad = static_cast<int32_t>(n.at(5));
    problem_.winograd = static_cast<int32_t>(n.at(6));
    problem_.math = static_cast<retrogradMath_t>(n.at(7));
  }
  const retrogradProblem_t& get() const { return problem_; }

  // Everything that a plan depends on, as bytes.
  std::string key(const Operands& operands) const {
    std::string key;
    key.reserve(1024);
    const auto append = [&](int64_t value) {
      key.append(reinterpret_cast<const char*>(&value), sizeof value);
    };
    const auto append_all = [&](const Integers& list) {
      append(static_cast<int64_t>(list.size()));
      key.append(reinterpret_cast<const char*>(list.data()), list.size() * sizeof(int64_t));
    };
    append(problem_.operation);
    append_all(numbers_);
    for (const Integers& list : lists_) append_all(list);
    for (int i = 0; i < kOperands; ++i) {
      const retrogradTensor_t* const tensor = operands[i];
      append(tensor == nullptr ? -1 : tensor->rank);
      if (tensor == nullptr) continue;
      append(tensor->dtype);
      append(tensor->device.type);
      append(tensor->device.index);
      const size_t bytes = static_cast<size_t>(tensor->rank) * sizeof(int64_t);
      key.append(reinterpret_cast<const char*>(tensor->shape), bytes);
      key.append(reinterpret_cast<const char*>(tensor->strides), bytes);
    }
    return key;
  }

 private:
  retrogradProblem_t problem_;
  std::array<Integers, 5> lists_;
  Integers numbers_;
};

void execute(const Plan& plan, const Operands& operands, uint64_t stream, const nb::object& allocate) {
  const retrogradAddresses_t addresses = operands.addresses();
  const bool cuda = operands.on_gpu();
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

void run_operands(int operation, const Operands& operands, const nb::tuple& lists, const nb::tuple& numbers,
                  uint64_t stream, const nb::object& allocate) {
  const Problem problem(operation, operands, lists, numbers);
  const std::shared_ptr<Plan> plan = cached_plan(problem.get(), problem.key(operands));
  execute(*plan, operands, stream, allocate);
}

}  // namespace

void run(int operation, nb::tuple arrays, nb::tuple dtypes, nb::tuple lists, nb::tuple numbers,
         uint64_t stream, nb::object allocate) {
  const Operands operands(arrays, &dtypes, stream);
  run_operands(operation, operands, lists, numbers, stream, allocate);
}

bool run_plain(int operation, nb::tuple arrays, nb::tuple lists, nb::tuple numbers) {
  int dtype = 0;
  for (const nb::handle array : arrays)
    if (!array.is_none() && as_numpy(array.ptr(), dtype) == nullptr) return false;
  run_operands(operation, Operands(arrays, nullptr, 0), lists, numbers, 0, nb::object());
  return true;
}

std::string problem_text(int operation, nb::tuple arrays, nb::tuple dtypes, nb::tuple lists,
                         nb::tuple numbers) {
  const Operands operands(arrays, &dtypes, 0);
  const Problem problem(operation, operands, lists, numbers);
  return whole_text([&](char* text, size_t capacity, size_t* length) {
    return retrogradProblemText(&problem.get(), text, capacity, length);
  });
}

void run_plan(const Plan& plan, nb::tuple arrays, nb::tuple dtypes, uint64_t stream, nb::object allocate) {
  const Operands operands(arrays, &dtypes, stream);
  for (int i = 0; i < kOperands; ++i) {
    if (operands[i] == nullptr) continue;
    retrogradTensor_t planned;
    check(retrogradGetPlanTensor(plan.handle(), static_cast<retrogradOperand_t>(i), &planned));
    if (planned.rank < 0)
      throw nb::value_error((std::string(kOperandNames[i]) + " is given, and the plan has none").c_str());
    check_same(*operands[i], planned, kOperandNames[i]);
  }
  execute(plan, operands, stream, allocate);
}

}  // namespace retrograd::python
