// SPDX-License-Identifier: Apache-2.0
// To make a plan takes 20 us and more, to find one in the cache half a microsecond.
#include "plans.h"

#include <charconv>
#include <unordered_map>

#include "arrays.h"
#include "texts.h"

namespace retrograd::python {
namespace {

// A training step has a few hundred. When shapes change all the time, all are forgotten and made again.
constexpr size_t kMostPlans = 4096;

using Cache = std::unordered_map<std::string, std::shared_ptr<Plan>>;
// Never destroyed: the library may outlive the interpreter, not the other way round.
Cache& cache() {
  static Cache& plans = *new Cache;
  return plans;
}

std::shared_ptr<Plan> own(retrogradStatus_t status, retrogradPlan_t made) {
  check(status);
  return std::make_shared<Plan>(made);
}

nb::tuple tuple_of(const int64_t* values, int count) {
  nb::list list;
  for (int i = 0; i < count; ++i) list.append(values[i]);
  return nb::tuple(list);
}

}  // namespace

Plan::Plan(retrogradPlan_t handle) : handle_(handle) {
  check(retrogradGetWorkspaceSize(handle, &workspace_bytes_));
}

double Plan::cost() const {
  double microseconds = 0;
  check(retrogradGetPlanCost(handle_, &microseconds));
  return microseconds;
}

std::string Plan::engines() const {
  return whole_text([&](char* text, size_t capacity, size_t* length) {
    return retrogradDescribePlan(handle_, text, capacity, length);
  });
}

nb::object Plan::tensor(int operand) const {
  retrogradTensor_t tensor;
  check(retrogradGetPlanTensor(handle_, static_cast<retrogradOperand_t>(operand), &tensor));
  if (tensor.rank < 0) return nb::none();
  return nb::make_tuple(static_cast<int>(tensor.dtype), tuple_of(tensor.shape, tensor.rank),
                        tuple_of(tensor.strides, tensor.rank));
}

retrogradDevice_t parse_device(const std::string& name) {
  const size_t colon = name.find(':');
  const std::string kind = name.substr(0, colon);
  int32_t index = 0;
  bool legal = kind == "cpu" || kind == "cuda";
  if (colon != std::string::npos) {
    const char *const begin = name.data() + colon + 1, *const end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(begin, end, index);
    legal &= error == std::errc() && stop == end && index >= 0;
  }
  if (!legal) throw nb::value_error(("device is '" + name + "', expected cpu, cuda or cuda:<index>").c_str());
  return {kind == "cpu" ? RETROGRAD_CPU : RETROGRAD_CUDA, index};
}

std::shared_ptr<Plan> plan_from_text(const std::string& problem, const std::string& device) {
  const retrogradDevice_t where = parse_device(device);
  retrogradPlan_t made = nullptr;
  retrogradStatus_t status;
  {
    const nb::gil_scoped_release others_run;
    status = retrogradCreatePlanFromText(&made, problem.c_str(), where);
  }
  return own(status, made);
}

std::shared_ptr<Plan> cached_plan(const retrogradProblem_t& problem, const std::string& key) {
  if (const auto found = cache().find(key); found != cache().end()) return found->second;
  retrogradPlan_t made = nullptr;
  retrogradStatus_t status;
  {
    const nb::gil_scoped_release others_run;
    status = retrogradCreatePlan(&made, &problem);
  }
  auto plan = own(status, made);
  if (cache().size() >= kMostPlans) cache().clear();
  cache().emplace(key, plan);
  return plan;
}

size_t cached_plans() { return cache().size(); }

void forget_plans() { cache().clear(); }

}  // namespace retrograd::python
