// SPDX-License-Identifier: Apache-2.0
// Memory for the tensors of a request, and one run of it on the calling thread.
#include "support/operands.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

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
  for (Operand operand : kSources)
    if ((*this)[operand]) (*this)[operand]->fill_integers(random, limit);
}

void Operands::fill_normal(std::mt19937_64& random, double scale) {
  for (Operand operand : kSources)
    if ((*this)[operand]) (*this)[operand]->fill_normal(random, scale);
}

void Operands::poison_results() {
  for (Operand operand : kResults)
    if ((*this)[operand]) (*this)[operand]->poison();
}

engines::Bindings Operands::bindings() {
  engines::Bindings all;
  for (int i = 0; i < problem::kOperandCount; ++i)
    if (tensors[i]) all.set(static_cast<Operand>(i), tensors[i]->data());
  return all;
}

namespace {

// Blocks of a device that are freed at the end.
class Blocks {
 public:
  explicit Blocks(runtime::Device& device) : device_(device) {}
  ~Blocks() {
    for (void* block : blocks_) device_.deallocate(block);
  }
  Result<std::byte*> add(size_t bytes) {
    RG_TRY(void* const block, device_.allocate(bytes));
    blocks_.push_back(block);
    return static_cast<std::byte*>(block);
  }

 private:
  runtime::Device& device_;
  std::vector<void*> blocks_;
};

Status run_on_copies(runtime::Device& device, const std::shared_ptr<const plan::Plan>& plan,
                     Operands& operands) {
  Blocks blocks(device);
  engines::Bindings bindings;
  std::byte* copies[problem::kOperandCount] = {};
  for (int i = 0; i < problem::kOperandCount; ++i) {
    if (!operands.tensors[i]) continue;
    HostTensor& tensor = *operands.tensors[i];
    RG_TRY(copies[i], blocks.add(tensor.storage().size()));
    RG_CHECK(device.copy(copies[i], tensor.storage().data(), tensor.storage().size()));
    bindings.set(static_cast<Operand>(i), copies[i] + tensor.origin());
  }
  RG_TRY(std::byte* const workspace, blocks.add(plan->workspace_bytes() + 1));
  RG_CHECK(device.fill(workspace, 0xFF, plan->workspace_bytes() + 1));
  RG_CHECK(plan::Plan::execute(plan, bindings, workspace, plan->workspace_bytes(), *device.null_stream()));
  for (Operand operand : kResults) {
    if (!operands[operand]) continue;
    const auto storage = operands[operand]->storage();
    RG_CHECK(device.copy(storage.data(), copies[static_cast<size_t>(operand)], storage.size()));
  }
  return Status::ok();
}

}  // namespace

std::vector<runtime::Device*> devices_under_test() {
  const char* asked = std::getenv("RETROGRAD_TEST_DEVICES");
  const std::string_view kinds = asked != nullptr ? asked : "cpu cuda";
  std::vector<runtime::Device*> chosen;
  for (runtime::Device* device : runtime::devices())
    if (kinds.find(device->kind() == runtime::DeviceKind::kCpu ? "cpu" : "cuda") != std::string_view::npos)
      chosen.push_back(device);
  return chosen;
}

Status run_on(runtime::Device& device, const problem::Problem& problem, Operands& operands,
              std::span<const engines::Candidate* const> candidates) {
  if (candidates.empty()) candidates = engines::candidates(device.kind());
  RG_TRY(const auto plan, plan::make_plan(problem, device, "test", candidates));
  if (device.kind() != runtime::DeviceKind::kCpu) return run_on_copies(device, plan, operands);
  std::vector<std::byte> workspace(plan->workspace_bytes(), std::byte{0xFF});
  return plan::Plan::execute(plan, operands.bindings(), workspace.data(), workspace.size(),
                             *device.null_stream());
}

Status run_on_cpu(const problem::Problem& problem, Operands& operands,
                  std::span<const engines::Candidate* const> candidates) {
  return run_on(*runtime::find_device(runtime::DeviceKind::kCpu, 0), problem, operands, candidates);
}

bool is_exact(const engines::Candidate& candidate) { return !candidate.reduces_precision(); }

std::vector<const engines::Candidate*> with_the_exact_behind(
    const engines::Candidate& first, std::span<const engines::Candidate* const> candidates) {
  std::vector<const engines::Candidate*> order{&first};
  if (&first == candidates.back()) return order;
  for (const engines::Candidate* candidate : candidates)
    if (candidate != &first && is_exact(*candidate)) order.push_back(candidate);
  return order;
}

}  // namespace retrograd::test
