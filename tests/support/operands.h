// SPDX-License-Identifier: Apache-2.0
// Operands: the tensors of one request with memory behind them, and running a plan on them.
#pragma once

#include <optional>
#include <random>
#include <span>
#include <vector>

#include "plan/plan.h"
#include "problem/problem.h"
#include "support/host_tensor.h"

namespace retrograd::test {

// What passes read, and what they write. No problem has all of them.
inline constexpr problem::Operand kSources[] = {problem::Operand::kGradOutput, problem::Operand::kInput,
                                                problem::Operand::kWeight, problem::Operand::kBias};
inline constexpr problem::Operand kResults[] = {problem::Operand::kGradInput, problem::Operand::kGradWeight,
                                                problem::Operand::kGradBias, problem::Operand::kOutput};

// The operands of any request, in the (N, C, spatial…) order of the engine for conv_tbc as well.
struct Operands {
  explicit Operands(const problem::Request& request);

  std::optional<HostTensor> tensors[problem::kOperandCount];
  std::optional<HostTensor>& operator[](problem::Operand operand) {
    return tensors[static_cast<size_t>(operand)];
  }
  const std::optional<HostTensor>& operator[](problem::Operand operand) const {
    return tensors[static_cast<size_t>(operand)];
  }

  void fill_integers(std::mt19937_64& random, int limit);
  void fill_normal(std::mt19937_64& random, double scale);
  void poison_results();
  engines::Bindings bindings();
};

// The devices that tests of engines run on: the CPU and every GPU, or what RETROGRAD_TEST_DEVICES names of
// them
// ("cpu", "cuda").
std::vector<runtime::Device*> devices_under_test();

// Plans with `candidates` (all of the device when empty) and runs to the end, with a workspace of exactly the
// size asked for. A GPU gets copies of the operands, gaps included, and gives the results back.
Status run_on(runtime::Device& device, const problem::Problem& problem, Operands& operands,
              std::span<const engines::Candidate* const> candidates = {});

// Plans with `candidates` (all of the CPU when empty) and runs to the end, with a workspace of exactly the
// size asked for.
Status run_on_cpu(const problem::Problem& problem, Operands& operands,
                  std::span<const engines::Candidate* const> candidates = {});

// Whether the candidate gives the bits of exact products on small integers: all but Winograd's do.
bool is_exact(const engines::Candidate& candidate);
// The candidate, then the exact ones in their order for what it declines; the reference has nobody behind it.
std::vector<const engines::Candidate*> with_the_exact_behind(
    const engines::Candidate& first, std::span<const engines::Candidate* const> candidates);

}  // namespace retrograd::test
