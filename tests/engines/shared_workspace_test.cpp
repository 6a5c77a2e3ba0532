// SPDX-License-Identifier: Apache-2.0
// A workspace that somebody else writes to meanwhile, or that overlaps the result, gives wrong numbers and
// nothing worse: no engine follows an address or an offset that it finds there.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "engines/machines.h"
#include "engines/registry.h"
#include "problem/problem_text.h"
#include "runtime/thread_pool.h"
#include "support/generator/problem_generator.h"
#include "support/guarded_memory.h"
#include "support/legal_problem.h"
#include "support/operands.h"
#include "support/shape_files.h"

namespace retrograd::test {
namespace {

using problem::Operand;

// Writes random words all over some memory until it is destroyed.
class Scribbler {
 public:
  Scribbler(std::byte* memory, size_t bytes)
      : thread_([this, memory, bytes] {
          auto* words = reinterpret_cast<std::atomic<uint64_t>*>(memory);
          std::mt19937_64 random(1);
          while (!stopped_.load(std::memory_order_relaxed)) {
            if (bytes >= sizeof(uint64_t))
              words[random() % (bytes / sizeof(uint64_t))].store(random(), std::memory_order_relaxed);
            rounds_.fetch_add(1, std::memory_order_relaxed);
          }
        }) {
    while (rounds_.load(std::memory_order_relaxed) == 0) std::this_thread::yield();
  }
  ~Scribbler() {
    stopped_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stopped_{false};
  std::atomic<int64_t> rounds_{0};
  std::thread thread_;
};

void run_misused(const problem::Request& request, std::mt19937_64& random) {
  SCOPED_TRACE(problem::to_text(request));
  Operands operands(request);
  operands.fill_normal(random, 1.0);
  runtime::ExecutionContext context{.pool = &runtime::ThreadPool::instance()};
  for (const problem::Pass& pass : legal_problem(request).passes)
    for (const engines::Candidate* candidate : engines::candidates(runtime::DeviceKind::kCpu)) {
      if (!candidate->supports(pass, engines::machine_of(runtime::DeviceKind::kCpu)).accepted()) continue;
      const auto step = candidate->make_step(pass, engines::machine_of(runtime::DeviceKind::kCpu));
      if (step->workspace_bytes() == 0) continue;
      const HostTensor& result = *operands[result_of(pass).operand];
      // Operands between pages that nobody may touch, so that an offset from the workspace would show.
      engines::Bindings bindings;
      std::vector<std::unique_ptr<GuardedMemory>> memory;
      for (int i = 0; i < problem::kOperandCount; ++i)
        if (operands.tensors[i]) {
          HostTensor& tensor = *operands.tensors[i];
          memory.push_back(std::make_unique<GuardedMemory>(tensor.storage(), Against::kEnd));
          bindings.set(static_cast<Operand>(i), memory.back()->data() + tensor.origin());
        }
      const size_t bytes = std::max(step->workspace_bytes(), result.storage().size()) / 64 * 64 + 64;
      GuardedMemory workspace(bytes, Against::kStart);
      {
        const Scribbler scribbler(workspace.data(), bytes);
        for (int run = 0; run < 3; ++run) step->run(bindings, workspace.data(), context);
      }
      bindings.set(result_of(pass).operand, workspace.data() + result.origin());
      step->run(bindings, workspace.data(), context);
    }
}

TEST(SharedWorkspaceTest, ShapesOfEveryEngine) {
  std::mt19937_64 random(11);
  for (const char* text : {
           "conv input=4x64x14x14 weight=48x64x3x3 padding=1x1",
           "conv input=4x64x14x14 weight=48x64x3x3 padding=1x1 dtype=bf16",
           "conv input=2x32x40x40 weight=48x32x1x1",
           "conv input=2x32x41x41 weight=48x32x1x1 stride=2x2",
           "conv input=2x32x20x20 weight=32x1x5x5 padding=2x2 groups=32",
           // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): one problem on two lines
           "conv input=2x32x20x20@12800x1x640x32 weight=32x1x3x3 padding=1x1 groups=32 "
           "grad_output=2x32x20x20@12800x1x640x32 grad_input=2x32x20x20@12800x1x640x32 dtype=bf16",
           "conv input=2x32x20x20 weight=64x1x3x3 padding=1x1 groups=32 dtype=f16",
           "conv input=2x32x90 weight=32x1x9 padding=4 groups=32",
           "conv input=2x3x40x40 weight=64x3x7x7 padding=3x3 stride=2x2",
           "conv input=2x24x20x20 weight=24x4x3x3 padding=1x1 groups=6",
           "conv input=1x32x16x16 weight=32x32x3x3 padding=1x1 math=1 winograd=1",
           "avgpool input=2x16x33x33 kernel=3x3 stride=2x2 padding=1x1",
           "avgpool input=2x16x33x33 kernel=3x3 stride=2x2 padding=1x1 forward=1",
           "conv input=4x64x14x14 weight=48x64x3x3 padding=1x1 forward=1 bias=48",
           "conv input=2x24x20x20 weight=24x4x3x3 padding=1x1 groups=6 forward=1 bias=24",
       }) {
    auto request = problem::parse_request(text);
    ASSERT_TRUE(request.is_ok()) << request.status().message();
    run_misused(std::move(request).value(), random);
  }
}

TEST(SharedWorkspaceTest, DrawnProblems) {
  std::mt19937_64 random(12);
  ProblemGenerator generator(12, {.forward = 40});
  for (int i = 0; i < 40; ++i) run_misused(*to_request(generator.any()), random);
}

}  // namespace
}  // namespace retrograd::test
