// SPDX-License-Identifier: Apache-2.0
// What an implementation for GPUs is written with, and the step of one whose kernels read and write operands
// where they lie: a plan, and the launch that it is for.
#pragma once

#include <string>

#include "engines/cuda/effort.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"
#include "engines/pass_candidate.h"

namespace retrograd::engines::cuda {

// Of plan functions: what they take, and what they make.
template <class P, class M>
struct PlanTypes {
  using Pass = P;
  using Plan = M;
};
template <class Plan, class Pass>
PlanTypes<Pass, Plan> types_of(Plan (*plan)(const Pass&));
template <class Plan, class Pass>
PlanTypes<Pass, Plan> types_of(Plan (*plan)(const Pass&, const Machine&));

// Kernels tells, in static functions, whose types Pass and Plan are its own choice:
//   plan(pass), or plan(pass, machine)
//   describe(pass, plan)
//   launch(pass, shape, plan, sums, stream)      shape: the pass with addresses
//   sums(pass, plan)                             floats of the workspace, where there are any
template <class Kernels>
class PlannedStep final : public Step {
 public:
  using Pass = typename decltype(types_of(&Kernels::plan))::Pass;
  using Plan = typename decltype(types_of(&Kernels::plan))::Plan;
  PlannedStep(const Pass& pass, const Machine& machine) : pass_(pass), plan_(plan(pass, machine)) {}
  size_t workspace_bytes() const override {
    if constexpr (requires { Kernels::sums(pass_, plan_); })
      return static_cast<size_t>(Kernels::sums(pass_, plan_)) * sizeof(float);
    else
      return 0;
  }
  std::string describe() const override { return Kernels::describe(pass_, plan_); }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    Kernels::launch(pass_, bind(pass_, bindings), plan_, reinterpret_cast<float*>(workspace),
                    stream_of(context));
  }

 private:
  static Plan plan(const Pass& pass, const Machine& machine) {
    if constexpr (requires { Kernels::plan(pass, machine); })
      return Kernels::plan(pass, machine);
    else
      return Kernels::plan(pass);
  }
  Pass pass_;
  Plan plan_;
};

}  // namespace retrograd::engines::cuda
