// SPDX-License-Identifier: Apache-2.0
// What the overriding kernels share: find or make a plan, run it, or call the original.
#pragma once

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>

#include <functional>
#include <memory>
#include <optional>

#include "counters.h"
#include "gpu.h"
#include "operands.h"
#include "plan_cache.h"
#include "policy.h"
#include "retrograd/retrograd.h"

namespace retrograd_torch {

// One argument after the other, from the stack or onto it.
template <class T>
T take(StableIValue* stack, size_t place) {
  return torch::stable::detail::to<T>(stack[place]);
}
template <class T>
void put(StableIValue* stack, size_t place, const T& value) {
  stack[place] = torch::stable::detail::from(value);
}

inline retrogradInts_t ints(const std::vector<int64_t>& values) { return {values.data(), values.size()}; }

// The kernel that was there before, as the operator retrograd::original_… Takes the arguments off the stack
// and leaves results. Throws what it threw.
void call_original(Op op, StableIValue* stack);

// The entry of a problem: from the cache, or made by `fill`, which sets the result layouts and facts and
// hands the problem to plan_into.
std::shared_ptr<const Entry> entry_of(const Key& key, const std::function<void(Entry&)>& fill);
// Makes the plan, or notes the refusal. Also fills in our_microseconds and with it the choice.
void plan_into(Entry& entry, const retrogradProblem_t& problem, Facts facts);

// RETROGRAD_MATH_REDUCED where the user lets stock kernels round float32 operands to TF32. It is part of a
// problem's key, because the setting may change.
retrogradMath_t math_of(const Operand& operand, Products products);

struct Results {
  torch::stable::Tensor grad_input, grad_weight, grad_bias;  // undefined: not wanted
};

// Follows the policy: computes the results, or has none where the call is left to PyTorch. Counts either. An
// operand that the operator does not read is null. On a GPU everything is on PyTorch's current stream, and
// the workspace is PyTorch's, which gives it to nobody before that stream is done with it. Throws the
// library's sentence when it fails: a wrong result is not hidden by a second try.
std::optional<Results> compute(Op op, const Entry& entry, const Operand& grad_output, const Operand* input,
                               const Operand* weight);

}  // namespace retrograd_torch
