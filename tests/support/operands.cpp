// SPDX-License-Identifier: Apache-2.0
// Memory for the tensors of a request, and one run of it on the calling thread.
#include "support/operands.h"

#include "engines/registry.h"
#include "problem/operand_views.h"
#include "runtime/device.h"

namespace retrograd::test {

using problem::Operand;

Operands::Operands(const problem::Request& request) {
  const problem::OperandViews views = views_of(request);
  for (size_t i = 0; i < views.size(); ++i)
    if (views[i]) (*this)[static_cast<Operand>(i)].emplace(*views[i]);
}

void Operands::fill_integers(std::mt19937_64& random, int limit) {
  for (Operand operand : {Operand::kGradOutput, Operand::kInput, Operand::kWeight})
    if ((*this)[operand]) (*this)[operand]->fill_integers(random, limit);
}

void Operands::fill_normal(std::mt19937_64& random, double scale) {
  for (Operand operand : {Operand::kGradOutput, Operand::kInput, Operand::kWeight})
    if ((*this)[operand]) (*this)[operand]->fill_normal(random, scale);
}

void Operands::poison_results() {
  for (Operand operand : {Operand::kGradInput, Operand::kGradWeight, Operand::kGradBias})
    if ((*this)[operand]) (*this)[operand]->poison();
}

engines::Bindings Operands::bindings() {
  engines::Bindings all;
  for (int i = 0; i < problem::kOperandCount; ++i)
    if (tensors[i]) all.set(static_cast<Operand>(i), tensors[i]->data());
  return all;
}

Status run_on_cpu(const problem::Problem& problem, Operands& operands,
                  std::span<const engines::Candidate* const> candidates) {
  runtime::Device& cpu = *runtime::find_device(runtime::DeviceKind::kCpu, 0);
  if (candidates.empty()) candidates = engines::candidates(cpu.kind());
  RG_TRY(const auto plan, plan::make_plan(problem, cpu, "test", candidates));
  std::vector<std::byte> workspace(plan->workspace_bytes(), std::byte{0xFF});
  return plan::Plan::execute(plan, operands.bindings(), workspace.data(), workspace.size(),
                             *cpu.null_stream());
}

bool is_exact(const engines::Candidate& candidate) { return !candidate.reduces_precision(); }

}  // namespace retrograd::test
