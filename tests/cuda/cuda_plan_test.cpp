// SPDX-License-Identifier: Apache-2.0
// Plans on a GPU: graph capture and replay, the same bits every time, the workspace limit.
#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "cuda_fixture.h"
#include "engines/machines.h"
#include "engines/registry.h"
#include "plan/plan.h"
#include "problem/problem_text.h"
#include "support/legal_problem.h"
#include "support/operands.h"
#include "support/oracle.h"

namespace retrograd::test {
namespace {

using problem::Operand;

// Each engine takes a pass of one of these.
constexpr const char* kProblems[] = {
    "conv input=4x16x14x14 weight=24x16x3x3 padding=1x1 stride=2x2",
    "conv input=4x16x14x14 weight=24x16x3x3 padding=1x1 dtype=f16",
    "conv input=2x3x20x20 weight=16x3x5x5 padding=2x2 dtype=bf16",
    "conv input=2x40x9x9 weight=40x24x4x4 transposed=1 stride=2x2 padding=1x1 dtype=f16",
    "conv input=4x32x14x14 weight=32x4x3x3 padding=1x1 groups=8",
    "conv input=4x32x14x14 weight=32x4x3x3 padding=1x1 groups=8 dtype=f16",
    "conv input=2x3x30x30 weight=20x3x7x7 stride=2x2 padding=3x3",
    "conv input=2x3x30x30 weight=20x3x7x7 stride=2x2 padding=3x3 dtype=f16",
    "conv input=4x16x16x16 weight=16x1x3x3 padding=1x1 groups=16",
    "conv input=2x8x20x20 weight=8x1x11x11 padding=5x5 groups=8 dtype=f16",
    "conv input=2x8x9x9 weight=8x6x3x3 transposed=1 stride=2x2 padding=1x1",
    "avgpool input=2x8x14x14 kernel=3x3 stride=2x2 padding=1x1",
    "avgpool input=4x16x15x15 kernel=3x3 stride=1x1 padding=1x1 dtype=bf16",
    "avgpool input=2x16x9x9@1296x1x144x16 kernel=3x3 stride=1x1 padding=1x1 dtype=f16 "
    "grad_input=2x16x9x9@1296x1x144x16 grad_output=2x16x9x9@1296x1x144x16",
    "conv input=4x16x14x14 weight=16x1x5x5 padding=2x2 groups=16 dtype=bf16",
    "conv input=4x16x300 weight=16x1x31 padding=15 groups=16 dtype=f16",
    "conv input=4x16x24x24 weight=16x1x5x5 padding=2x2 groups=16 dtype=f16",
    "avgpool input=2x8x16x16 kernel=2x2 stride=2x2 dtype=f16",
    "conv input=2x16x12x12@2304x1x192x16 weight=16x1x3x3 padding=1x1 groups=16 dtype=f16 "
    "grad_output=2x16x12x12@2304x1x192x16 grad_input=2x16x12x12@2304x1x192x16",
    "conv input=2x16x12x12@2304x1x192x16 weight=16x1x9x9 padding=4x4 groups=16 dtype=f16 "
    "grad_output=2x16x12x12@2304x1x192x16 grad_input=2x16x12x12@2304x1x192x16",
    "conv input=2x32x40x40 weight=16x32x3x3 padding=1x1 dtype=f16",
    "conv input=2x3x90x90 weight=32x3x7x7 padding=3x3 stride=2x2",
    "conv input=4x32x40x40 weight=32x4x3x3 padding=1x1 groups=8 dtype=f16",
    "conv input=8x2x7x7 weight=2x2x1x1",
    "conv input=2x24x9x5 weight=16x24x3x27 padding=1x13",
    "conv input=3x72x8x20 weight=200x72x1x1 dtype=bf16",
    "conv input=3x72x8x20 weight=200x72x1x1 forward=1 dtype=f16",
    "conv input=2x1x9000 weight=40x1x10 stride=5",
    "conv input=16x64x64x64 weight=64x64x3x3 padding=1x1 dtype=bf16",
    "conv input=2x1x9000 weight=40x1x10 stride=5 dtype=bf16",
    "conv input=3x32x14x14@6272x1x448x32 weight=32x16x3x3 padding=1x1 groups=2 dtype=f16 "
    "grad_output=3x32x14x14@6272x1x448x32 grad_input=3x32x14x14@6272x1x448x32",
    "conv input=4x16x14x14 weight=24x16x3x3 padding=1x1 math=1",
    "conv input=2x16x20x20 weight=24x16x3x3 padding=1x1 forward=1 dtype=f16",
    "conv input=2x24x3x3 weight=16x24x3x3 dtype=f16",
    "avgpool input=2x8x14x14 kernel=3x3 stride=2x2 padding=1x1 forward=1",
    "conv input=4x16x14x14@6272x196x14x1 weight=16x1x3x3 padding=1x1 groups=16 dtype=f16 "
    "grad_input=4x16x14x14@3136x1x224x16",
};

using Candidates = std::vector<const engines::Candidate*>;
Candidates everyone() {
  const auto all = engines::candidates(runtime::DeviceKind::kCuda);
  return {all.begin(), all.end()};
}
// One candidate, and the last, which takes everything, for what it declines.
Candidates alone(const engines::Candidate* candidate) {
  const auto all = engines::candidates(runtime::DeviceKind::kCuda);
  return candidate == all.back() ? Candidates{candidate} : Candidates{candidate, all.back()};
}
// Calls run(text, candidates) for every candidate with each problem of which it takes a pass.
template <class Run>
void for_each_candidate(Run&& run) {
  for (const engines::Candidate* candidate : engines::candidates(runtime::DeviceKind::kCuda)) {
    bool taken = false;
    for (const char* text : kProblems) {
      const problem::Problem problem = legal_problem(problem::parse_request(text).value());
      bool accepted = false;
      for (const problem::Pass& pass : problem.passes)
        accepted |= candidate->supports(pass, engines::machine_of(runtime::DeviceKind::kCuda)).accepted();
      taken |= accepted;
      if (!accepted) continue;
      SCOPED_TRACE(std::string(candidate->name()) + ": " + text);
      run(text, alone(candidate));
    }
    EXPECT_TRUE(taken) << candidate->name();
  }
}

constexpr std::array kResults{Operand::kGradInput, Operand::kGradWeight, Operand::kGradBias,
                              Operand::kOutput};

// Operands of one problem on the GPU.
class OnGpu {
 public:
  OnGpu(runtime::Device& gpu, const char* text, const Candidates& candidates = everyone())
      : gpu_(gpu), request_(problem::parse_request(text).value()), operands_(request_) {
    std::mt19937_64 random(3);
    operands_.fill_normal(random, 1.0);
    operands_.poison_results();
    plan_ = plan::make_plan(legal_problem(request_), gpu, "test", candidates, SIZE_MAX).value();
    for (int i = 0; i < problem::kOperandCount; ++i) {
      if (!operands_.tensors[i]) continue;
      const auto storage = operands_.tensors[i]->storage();
      blocks_[i] = static_cast<std::byte*>(gpu_.allocate(storage.size()).value());
      EXPECT_TRUE(gpu_.copy(blocks_[i], storage.data(), storage.size()).is_ok());
      bindings_.set(static_cast<Operand>(i), blocks_[i] + operands_.tensors[i]->origin());
    }
    workspace_ = gpu_.allocate(plan_->workspace_bytes() + 1).value();
  }
  ~OnGpu() {
    for (std::byte* block : blocks_)
      if (block != nullptr) gpu_.deallocate(block);
    gpu_.deallocate(workspace_);
  }

  void run(runtime::Stream& stream) {
    const Status status = plan::Plan::execute(plan_, bindings_, workspace_, plan_->workspace_bytes(), stream);
    EXPECT_TRUE(status.is_ok()) << status.message();
  }
  void poison() {
    for (Operand operand : kResults) {
      if (!operands_[operand]) continue;
      EXPECT_TRUE(gpu_.fill(block(operand), 0xCD, operands_[operand]->storage().size()).is_ok());
    }
  }
  // All results, byte by byte.
  std::vector<std::byte> results() {
    std::vector<std::byte> all;
    for (Operand operand : kResults) {
      if (!operands_[operand]) continue;
      std::vector<std::byte> one(operands_[operand]->storage().size());
      EXPECT_TRUE(gpu_.copy(one.data(), block(operand), one.size()).is_ok());
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

 private:
  std::byte* block(Operand operand) { return blocks_[static_cast<size_t>(operand)]; }
  runtime::Device& gpu_;
  problem::Request request_;
  Operands operands_;
  std::shared_ptr<const plan::Plan> plan_;
  std::byte* blocks_[problem::kOperandCount] = {};
  engines::Bindings bindings_;
  void* workspace_ = nullptr;
};

using CudaPlanTest = runtime::CudaTest;

TEST_F(CudaPlanTest, AHundredRunsGiveTheSameBits) {
  for_each_candidate([&](const char* text, const Candidates& candidates) {
    OnGpu problem(gpu(), text, candidates);
    problem.run(*gpu().null_stream());
    const std::vector<std::byte> first = problem.results();
    for (int i = 0; i < 100; ++i) {
      problem.poison();
      problem.run(*gpu().null_stream());
      ASSERT_EQ(problem.results(), first) << "run " << i;
    }
  });
}

TEST_F(CudaPlanTest, GraphsAreCapturedAndReplayed) {
  cudaStream_t native = nullptr;
  ASSERT_EQ(cudaStreamCreate(&native), cudaSuccess);
  for_each_candidate([&](const char* text, const Candidates& candidates) {
    OnGpu problem(gpu(), text, candidates);
    const auto stream = gpu().adopt_stream(native);
    problem.run(*stream);
    ASSERT_TRUE(stream->synchronize().is_ok());
    const std::vector<std::byte> expected = problem.results();
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(native, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    problem.run(*stream);
    ASSERT_EQ(cudaStreamEndCapture(native, &graph), cudaSuccess);
    cudaGraphExec_t executable = nullptr;
    ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    for (int replay = 0; replay < 3; ++replay) {
      problem.poison();
      ASSERT_EQ(cudaGraphLaunch(executable, native), cudaSuccess);
      ASSERT_EQ(cudaStreamSynchronize(native), cudaSuccess);
      ASSERT_EQ(problem.results(), expected);
    }
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
  });
  cudaStreamDestroy(native);
}

// A step may read what the one before has left in the workspace.
TEST_F(CudaPlanTest, GradientsAskedForAloneAreTheSame) {
  for (const char* text : kProblems) {
    SCOPED_TRACE(text);
    if (std::strncmp(text, "conv", 4) != 0 || std::strstr(text, "forward=1") != nullptr) continue;
    OnGpu together(gpu(), text);
    together.run(*gpu().null_stream());
    std::vector<std::byte> one_by_one;
    for (const char* mask : {" mask=i", " mask=w", " mask=b"}) {
      OnGpu alone(gpu(), (text + std::string(mask)).c_str());
      alone.run(*gpu().null_stream());
      const std::vector<std::byte> result = alone.results();
      one_by_one.insert(one_by_one.end(), result.begin(), result.end());
    }
    EXPECT_EQ(together.results(), one_by_one);
  }
}

TEST_F(CudaPlanTest, KeepsToTheWorkspaceLimit) {
  for (const char* text : kProblems) {
    SCOPED_TRACE(text);
    const problem::Problem problem = legal_problem(problem::parse_request(text).value());
    const auto plan =
        plan::make_plan(problem, gpu(), "test", engines::candidates(runtime::DeviceKind::kCuda), 0);
    ASSERT_TRUE(plan.is_ok()) << plan.status().message();
    EXPECT_EQ(plan.value()->workspace_bytes(), 0u);
  }
}

TEST_F(CudaPlanTest, AStreamOfAnotherDeviceIsRefused) {
  const problem::Problem problem = legal_problem(problem::parse_request(kProblems[0]).value());
  const auto plan = plan::make_plan(problem, gpu(), "test").value();
  runtime::Device& cpu = *runtime::find_device(runtime::DeviceKind::kCpu, 0);
  const Status status = plan::Plan::execute(plan, {}, nullptr, 0, *cpu.null_stream());
  EXPECT_EQ(status.code(), Code::kWrongDevice);
}

}  // namespace
}  // namespace retrograd::test
