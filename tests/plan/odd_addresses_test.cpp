// SPDX-License-Identifier: Apache-2.0
// Tensors may begin at any byte. Every candidate of the CPU gives the same bits there as at aligned
// addresses; the undefined-behaviour sanitizer sees whoever reads or writes a float where none can lie.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "engines/registry.h"
#include "plan/plan.h"
#include "problem/problem_text.h"
#include "support/operands.h"

namespace retrograd::test {
namespace {

using problem::Operand;

// One or two for each family of engines, and for each way in which it reads its operands.
constexpr const char* kProblems[] = {
    "conv input=2x16x10x10 weight=20x16x3x3 padding=1x1",
    "conv input=2x16x10x10 weight=20x16x3x3 stride=2x2 padding=1x1",
    "conv input=2x16x9x9@1296x1x144x16 weight=20x16x3x3@144x1x48x16 padding=1x1",
    "conv input=1x32x20x20 weight=24x32x1x1",
    "conv input=1x32x6x6@1152x1x192x32 weight=24x32x1x1",
    "conv input=1x32x14x14 weight=32x32x3x3 padding=1x1 math=1 winograd=1",
    "conv input=1x32x12x12 weight=32x32x3x3@288x1x96x32 padding=1x1 math=1 winograd=1",
    "conv input=2x32x9x20 weight=32x1x3x3 padding=1x1 groups=32",
    "conv input=2x32x9x9@2592x1x288x32 weight=32x1x3x3 padding=1x1 groups=32",
    "conv input=3x32x5x5 weight=32x1x3x3 stride=2x2 padding=1x1 groups=32",
    "conv input=1x3x30x32 weight=16x3x7x7 stride=2x2 padding=3x3",
    "conv input=2x8x12x12 weight=8x2x3x3 padding=1x1 groups=4",
    "conv input=2x6x30 weight=5x6x5 dilation=2",
    "conv input=1x4x5x6x7 weight=6x4x3x3x3 padding=1x1x1",
    "conv input=2x12x7x7 weight=12x10x3x3 stride=2x2 padding=1x1 output_padding=1x1 transposed=1",
    "conv_tbc input=9x2x16 weight=3x16x24 pad=1",
    "avgpool input=2x5x17x19 kernel=3x3 stride=2x2 padding=1x1",
    "avgpool input=2x16x9x9@1296x1x144x16 kernel=3x3",
    "avgpool input=1x3x8x8x8 kernel=8x8x8",
    "conv input=2x16x10x10 weight=20x16x3x3 padding=1x1 forward=1 bias=20",
    "conv input=1x32x20x20 weight=24x32x1x1 forward=1 bias=24",
    "conv input=2x32x9x20 weight=32x1x3x3 padding=1x1 groups=32 forward=1 bias=32",
    "conv input=2x32x9x9@2592x1x288x32 weight=32x1x3x3 padding=1x1 groups=32 forward=1 bias=32",
    "conv input=2x8x12x12 weight=8x2x3x3 padding=1x1 groups=4 forward=1 bias=8",
    "conv input=2x12x7x7 weight=12x10x3x3 stride=2x2 padding=1x1 transposed=1 forward=1 bias=10",
    "conv_tbc input=9x2x16 weight=3x16x24 pad=1 forward=1",
    "avgpool input=2x5x17x19 kernel=3x3 stride=2x2 padding=1x1 forward=1",
    "avgpool input=2x16x9x9@1296x1x144x16 kernel=3x3 output=2x16x3x3@144x1x48x16 forward=1",
    "avgpool input=1x3x8x8x8 kernel=8x8x8 forward=1",
};

// The bytes of a tensor, `shift` beyond the beginning of a cache line.
class ShiftedCopy {
 public:
  ShiftedCopy(HostTensor& tensor, size_t shift) : tensor_(tensor), memory_(tensor.storage().size() + 128) {
    const size_t to_line = -reinterpret_cast<uintptr_t>(memory_.data()) % 64;
    bytes_ = memory_.data() + to_line + shift;
    std::memcpy(bytes_, tensor.storage().data(), tensor.storage().size());
  }
  void* data() { return bytes_ + tensor_.origin(); }
  void write_back() { std::memcpy(tensor_.storage().data(), bytes_, tensor_.storage().size()); }

 private:
  HostTensor& tensor_;
  std::vector<std::byte> memory_;
  std::byte* bytes_ = nullptr;
};

// Operands 1 to 3 bytes behind the beginning of a line, beginning with `first` and going round.
void run_shifted(const std::shared_ptr<const plan::Plan>& plan, Operands& operands, size_t first) {
  std::vector<ShiftedCopy> copies;
  copies.reserve(problem::kOperandCount);
  engines::Bindings bindings;
  for (int i = 0; i < problem::kOperandCount; ++i) {
    if (!operands.tensors[i]) continue;
    copies.emplace_back(*operands.tensors[i], 1 + (first + static_cast<size_t>(i)) % 3);
    bindings.set(static_cast<Operand>(i), copies.back().data());
  }
  std::vector<std::byte> workspace(plan->workspace_bytes() + 1, std::byte{0xFF});
  const Status status = plan::Plan::execute(plan, bindings, workspace.data() + 1, plan->workspace_bytes(),
                                            *plan->device().null_stream());
  ASSERT_TRUE(status.is_ok()) << status.message();
  for (ShiftedCopy& copy : copies) copy.write_back();
}

std::vector<std::vector<uint32_t>> results(const Operands& operands) {
  std::vector<std::vector<uint32_t>> all;
  for (Operand operand : kResults)
    if (operands[operand]) all.push_back(operands[operand]->bits());
  return all;
}

void check(const std::string& text, const engines::Candidate& candidate,
           std::span<const engines::Candidate* const> candidates) {
  SCOPED_TRACE(text + " by " + candidate.name());
  const problem::Request request = problem::parse_request(text).value();
  const problem::Problem problem = problem::judge(request).value();
  const auto order = with_the_exact_behind(candidate, candidates);
  runtime::Device& cpu = *runtime::find_device(runtime::DeviceKind::kCpu, 0);
  const auto plan = plan::make_plan(problem, cpu, "test", order, SIZE_MAX).value();
  if (plan->describe().find(candidate.name()) == std::string::npos) return;
  std::mt19937_64 random(7);
  Operands operands(request);
  operands.fill_normal(random, 1.0);
  ASSERT_TRUE(run_on_cpu(problem, operands, order).is_ok());
  const auto expected = results(operands);
  for (size_t first = 0; first < 3; ++first) {
    operands.poison_results();
    run_shifted(plan, operands, first);
    ASSERT_EQ(results(operands), expected);
  }
}

TEST(OddAddresses, EveryCandidateGivesTheSameBits) {
  const auto candidates = engines::candidates(runtime::DeviceKind::kCpu);
  for (const char* text : kProblems)
    for (const char* type : {"f32", "f16", "bf16"})
      for (const engines::Candidate* candidate : candidates) {
        check(std::string(text) + " dtype=" + type, *candidate, candidates);
        if (testing::Test::HasFatalFailure()) return;
      }
}

TEST(OddAddresses, MixedTypesToo) {
  const auto candidates = engines::candidates(runtime::DeviceKind::kCpu);
  for (const char* text :
       {"conv input=2x16x10x10:f16 weight=20x16x3x3 padding=1x1",
        "conv input=2x16x10x10:bf16 weight=20x16x3x3:bf16 padding=1x1 grad_output=2x20x10x10"})
    for (const engines::Candidate* candidate : candidates) {
      check(text, *candidate, candidates);
      if (testing::Test::HasFatalFailure()) return;
    }
}

}  // namespace
}  // namespace retrograd::test
