// SPDX-License-Identifier: Apache-2.0
// What an implementation for GPUs is written with, and the step of one whose kernels read and write operands
// where they lie: a plan, and the launch that it is for.
#pragma once

#include <string>
#include <utility>

#include "engines/cuda/effort.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"
#include "engines/pass_candidate.h"

namespace retrograd::engines::cuda {

// Of plan functions: what they take.
template <class Plan, class Pass>
Pass pass_of(Plan (*plan)(const Pass&));

// Kernels tells, in static functions, whose types Pass and Plan are its own choice:
//   plan(pass)
//   describe(pass, plan)
//   launch(pass, shape, plan, sums, stream)      shape: the pass with addresses
//   sums(pass, plan)                             floats of the workspace, where there are any
template <class Kernels>
class PlannedStep final : public Step {
 public:
  using Pass = decltype(pass_of(&Kernels::plan));
  explicit PlannedStep(const Pass& pass) : pass_(pass), plan_(Kernels::plan(pass)) {}
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
  Pass pass_;
  decltype(Kernels::plan(std::declval<Pass>())) plan_;
};

}  // namespace retrograd::engines::cuda
