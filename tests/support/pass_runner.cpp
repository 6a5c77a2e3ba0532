// SPDX-License-Identifier: Apache-2.0
// Blocks are kept from problem to problem: mapping pages and allocating on a GPU would take most of the time.
#include "support/pass_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "engines/machines.h"
#include "plan/plan.h"
#include "support/guarded_memory.h"

namespace retrograd::test {
namespace {

using problem::Operand;

constexpr size_t kMargin = 256;  // bytes beside a tensor that are looked at
constexpr size_t kAlignment = 64;
constexpr std::byte kGarbage{0xFF};         // of a workspace: NaN as a float
constexpr size_t kMostGarbage = 4U << 20U;  // beyond that, filling would take longer than running

Status failed(std::string text) { return {Code::kInternal, std::move(text)}; }

bool all_are(std::span<const std::byte> bytes, std::byte value) {
  return std::all_of(bytes.begin(), bytes.end(), [&](std::byte b) { return b == value; });
}

size_t with_room(size_t bytes) { return std::bit_ceil(std::max<size_t>(bytes + 2 * kMargin, 1U << 16U)); }

class GuardedRunner final : public PassRunner {
 public:
  Status place(const Operands& operands, const DataSketch& data) override {
    for (size_t i = 0; i < problem::kOperandCount; ++i) {
      if (!operands.tensors[i]) continue;
      const HostTensor& tensor = *operands.tensors[i];
      const size_t bytes = tensor.storage().size(), width = size_of(tensor.view().dtype);
      const Placement& placement = data.placements[i];
      GuardedMemory& block = room_for(blocks_[i], with_room(bytes));
      const size_t odd = width > 1 ? static_cast<size_t>(placement.odd_bytes) % width : 0;
      const size_t size = block.bytes().size();
      begins_[i] =
          placement.against == Placement::Against::kStart ? odd
          : placement.against == Placement::Against::kEnd
              ? size - bytes - (odd == 0 ? 0 : width - odd)
              : kMargin + static_cast<size_t>(placement.offset) % (kMargin / width / 2) * width + odd;
      std::memcpy(block.data() + begins_[i], tensor.storage().data(), bytes);
    }
    return Status::ok();
  }

  Status run(const engines::Candidate& candidate, const problem::Problem&, const problem::Pass& pass,
             runtime::ThreadPool& pool, Operands& operands) override {
    const Operand result = result_of(pass).operand;
    engines::Bindings bindings;
    for (size_t i = 0; i < problem::kOperandCount; ++i)
      if (const auto operand = static_cast<Operand>(i);
          operands.tensors[i] && (operand == result || reads(pass, operand)))
        bindings.set(operand, blocks_[i]->data() + begins_[i] + operands.tensors[i]->origin());
    step_ = candidate.make_step(pass, engines::machine_of(runtime::DeviceKind::kCpu));
    // A step's workspace is aligned: what is too short to end at the page is followed by garbage that must
    // stay.
    const size_t asked = step_->workspace_bytes(),
                 aligned = (asked + kAlignment - 1) / kAlignment * kAlignment;
    GuardedMemory& memory = room_for(workspace_, std::bit_ceil(std::max<size_t>(aligned, 1U << 16U)));
    std::byte* const workspace = memory.data() + (memory.bytes().size() - aligned);
    std::fill_n(workspace, std::min(aligned, kMostGarbage), kGarbage);
    std::fill_n(workspace + asked, aligned - asked, kGarbage);

    const auto around = surroundings(result, *operands[result]);
    std::fill(around.begin(), around.end(), kPoison);
    runtime::ExecutionContext context{.pool = &pool};
    step_->run(bindings, workspace, context);

    if (!all_are({workspace + asked, aligned - asked}, kGarbage))
      return failed("bytes behind the workspace were written");
    return look(pass, operands);
  }

 private:
  static GuardedMemory& room_for(std::unique_ptr<GuardedMemory>& block, size_t bytes) {
    if (!block || block->bytes().size() < bytes)
      block = std::make_unique<GuardedMemory>(bytes, retrograd::test::Against::kStart);
    return *block;
  }

  // The tensor and its margins, as far as the block goes.
  std::span<std::byte> surroundings(Operand operand, const HostTensor& tensor) {
    const auto i = static_cast<size_t>(operand);
    const size_t begin = begins_[i] - std::min(begins_[i], kMargin);
    const size_t end = std::min(begins_[i] + tensor.storage().size() + kMargin, blocks_[i]->bytes().size());
    return {blocks_[i]->data() + begin, end - begin};
  }

  Status look(const problem::Pass& pass, Operands& operands) {
    const Operand result = result_of(pass).operand;
    const auto r = static_cast<size_t>(result);
    const auto around = surroundings(result, *operands[result]);
    std::byte* const begin = blocks_[r]->data() + begins_[r];
    std::byte* const end = begin + operands[result]->storage().size();
    if (!all_are({around.data(), begin}, kPoison) || !all_are({end, around.data() + around.size()}, kPoison))
      return failed("bytes beside the result were written");
    std::memcpy(operands[result]->storage().data(), begin, operands[result]->storage().size());
    for (size_t i = 0; i < problem::kOperandCount; ++i) {
      if (const auto operand = static_cast<Operand>(i); !operands.tensors[i] || !reads(pass, operand))
        continue;
      const auto storage = std::as_const(*operands.tensors[i]).storage();
      if (std::memcmp(blocks_[i]->data() + begins_[i], storage.data(), storage.size()) != 0)
        return failed(fmt::format("{}, which is read, was written", name_of(static_cast<Operand>(i))));
    }
    return Status::ok();
  }

  std::unique_ptr<const engines::Step> step_;  // freed by the next run where a fault has ended this one
  std::unique_ptr<GuardedMemory> blocks_[problem::kOperandCount], workspace_;
  size_t begins_[problem::kOperandCount] = {};
};

// Copies on a device: margin, tensor, margin. Elements are aligned there, as a GPU's loads must be.
class CopyingRunner final : public PassRunner {
 public:
  explicit CopyingRunner(runtime::Device& device) : device_(device) {}
  ~CopyingRunner() override {
    for (Block* block : all_blocks())
      if (block->address != nullptr) device_.deallocate(block->address);
  }

  Status place(const Operands& operands, const DataSketch& data) override {
    for (size_t i = 0; i < problem::kOperandCount; ++i) {
      if (!operands.tensors[i]) continue;
      const HostTensor& tensor = *operands.tensors[i];
      const size_t bytes = tensor.storage().size(), width = size_of(tensor.view().dtype);
      RG_CHECK(room_for(blocks_[i], with_room(bytes)));
      const Placement& placement = data.placements[i];
      // Against a page, elsewhere: the address of a fresh allocation.
      const size_t shift = placement.against == Placement::Against::kNeither
                               ? static_cast<size_t>(placement.offset) % (kMargin / width / 2) * width
                               : 0;
      begins_[i] = kMargin / 2 + shift;
      RG_CHECK(device_.copy(blocks_[i].address + begins_[i], tensor.storage().data(), bytes));
    }
    return Status::ok();
  }

  Status run(const engines::Candidate& candidate, const problem::Problem& problem, const problem::Pass& pass,
             runtime::ThreadPool&, Operands& operands) override {
    const Operand result = result_of(pass).operand;
    const auto r = static_cast<size_t>(result);
    problem::Problem one = problem;
    one.passes = {pass};
    const engines::Candidate* const only[] = {&candidate};
    RG_TRY(const auto plan, plan::make_plan(one, device_, "fuzz", only));
    engines::Bindings bindings;
    for (size_t i = 0; i < problem::kOperandCount; ++i)
      if (const auto operand = static_cast<Operand>(i);
          operands.tensors[i] && (operand == result || reads(pass, operand)))
        bindings.set(operand, blocks_[i].address + begins_[i] + operands.tensors[i]->origin());
    const size_t asked = plan->workspace_bytes();
    RG_CHECK(room_for(workspace_, asked + kMargin));
    RG_CHECK(device_.fill(workspace_.address, 0xFF, std::min(asked, kMostGarbage)));
    RG_CHECK(device_.fill(workspace_.address + asked, 0xFF, kMargin));

    const auto storage = operands[result]->storage();
    around_.assign(begins_[r] + storage.size() + kMargin / 2, kPoison);
    RG_CHECK(device_.copy(blocks_[r].address, around_.data(), around_.size()));
    RG_CHECK(plan::Plan::execute(plan, bindings, workspace_.address, asked, *device_.null_stream()));
    RG_CHECK(device_.synchronize());
    RG_CHECK(device_.copy(around_.data(), blocks_[r].address, around_.size()));
    const std::span<const std::byte> all = around_;
    if (!all_are(all.first(begins_[r]), kPoison) || !all_are(all.last(kMargin / 2), kPoison))
      return failed("bytes beside the result were written");
    std::memcpy(storage.data(), all.data() + begins_[r], storage.size());
    around_.resize(kMargin);
    RG_CHECK(device_.copy(around_.data(), workspace_.address + asked, kMargin));
    if (!all_are(around_, kGarbage)) return failed("bytes behind the workspace were written");
    return Status::ok();
  }

 private:
  struct Block {
    std::byte* address = nullptr;
    size_t bytes = 0;
  };
  std::vector<Block*> all_blocks() {
    std::vector<Block*> all{&workspace_};
    for (Block& block : blocks_) all.push_back(&block);
    return all;
  }
  Status room_for(Block& block, size_t bytes) {
    if (block.bytes >= bytes) return Status::ok();
    if (block.address != nullptr) device_.deallocate(block.address);
    block = {};
    bytes = std::bit_ceil(bytes);
    RG_TRY(void* const address, device_.allocate(bytes));
    block = {static_cast<std::byte*>(address), bytes};
    return Status::ok();
  }

  runtime::Device& device_;
  Block blocks_[problem::kOperandCount], workspace_;
  size_t begins_[problem::kOperandCount] = {};
  std::vector<std::byte> around_;
};

}  // namespace

std::unique_ptr<PassRunner> PassRunner::make(runtime::Device& device) {
  if (device.kind() == runtime::DeviceKind::kCpu) return std::make_unique<GuardedRunner>();
  return make_copying(device);
}
std::unique_ptr<PassRunner> PassRunner::make_copying(runtime::Device& device) {
  return std::make_unique<CopyingRunner>(device);
}

}  // namespace retrograd::test
