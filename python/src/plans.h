// SPDX-License-Identifier: Apache-2.0
// Plans as Python objects, and those that calls have made so far, by problem.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "retrograd/retrograd.h"

namespace retrograd::python {

namespace nb = nanobind;

// Destroys its plan at the end.
class Plan {
 public:
  explicit Plan(retrogradPlan_t handle);
  ~Plan() { retrogradDestroyPlan(handle_); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  retrogradPlan_t handle() const { return handle_; }
  size_t workspace_bytes() const { return workspace_bytes_; }
  double cost() const;
  std::string engines() const;
  // (dtype, shape, strides) of an operand, or None.
  nb::object tensor(int operand) const;

 private:
  retrogradPlan_t handle_;
  size_t workspace_bytes_ = 0;
};

// "cpu", "cpu:0", "cuda:1".
retrogradDevice_t parse_device(const std::string& name);

std::shared_ptr<Plan> plan_from_text(const std::string& problem, const std::string& device);

// The plan of the problem, made at its first call; the cache is for the holder of the GIL, which is given up
// while a plan is made.
std::shared_ptr<Plan> cached_plan(const retrogradProblem_t& problem, const std::string& key);
size_t cached_plans();
void forget_plans();

}  // namespace retrograd::python
