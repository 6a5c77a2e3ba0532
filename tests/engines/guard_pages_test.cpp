// SPDX-License-Identifier: Apache-2.0
// Every operand and the workspace directly against forbidden pages, at their end and at their start: a
// candidate that reads or writes one byte beside them stops the program, which says who it was. Operands that
// are read may not be written. The results must be the bits that ordinary memory, aligned otherwise, gives.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

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

constexpr std::byte kGarbage{0xFF};  // NaN as a float

char running[8192];  // what a fault is blamed on

extern "C" void name_the_culprit(int) {
  // Handled once: the same instruction faults again and ends the program. write() is all a handler may use.
  [[maybe_unused]] const auto written = write(STDERR_FILENO, running, std::strlen(running));
}

auto all_candidates() { return engines::candidates(runtime::DeviceKind::kCpu); }

class GuardPagesTest : public testing::Test {
 protected:
  void SetUp() override {
    struct sigaction action = {};
    action.sa_handler = name_the_culprit;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGSEGV, &action, &before_);
  }
  void TearDown() override { sigaction(SIGSEGV, &before_, nullptr); }

  void check(const problem::Request& request, std::span<const engines::Candidate* const> candidates) {
    const std::string text = problem::to_text(request);
    SCOPED_TRACE(text);
    Operands operands(request);
    operands.fill_normal(random_, 1.0);
    for (const problem::Pass& pass : legal_problem(request).passes)
      for (const engines::Candidate* candidate : candidates) {
        if (!candidate->supports(pass, engines::machine_of(runtime::DeviceKind::kCpu)).accepted()) continue;
        SCOPED_TRACE(candidate->name());
        operands.poison_results();
        const auto step = candidate->make_step(pass, engines::machine_of(runtime::DeviceKind::kCpu));
        run_in_ordinary_memory(*step, operands);
        for (const Against against : {Against::kEnd, Against::kStart}) {
          std::snprintf(running, sizeof running, "\ntouched a guard page at the %s: %s, pass %s of \"%s\"\n",
                        against == Against::kEnd ? "end" : "start", candidate->name(),
                        std::string(name_of(pass)).c_str(), text.c_str());
          run_between_guards(*step, pass, operands, against);
        }
        ++runs_;
      }
  }

  int runs_ = 0;

 private:
  void run_in_ordinary_memory(const engines::Step& step, Operands& operands) {
    const std::unique_ptr<void, void (*)(void*)> workspace(
        std::aligned_alloc(64, step.workspace_bytes() / 64 * 64 + 64), std::free);
    step.run(operands.bindings(), static_cast<std::byte*>(workspace.get()), context_);
  }

  void run_between_guards(const engines::Step& step, const problem::Pass& pass, Operands& operands,
                          Against against) {
    engines::Bindings bindings;
    std::unique_ptr<GuardedMemory> memory[problem::kOperandCount];
    const Operand result = result_of(pass).operand;
    for (int i = 0; i < problem::kOperandCount; ++i) {
      const auto operand = static_cast<Operand>(i);
      if (!operands[operand] || (operand != result && !reads(pass, operand))) continue;
      const HostTensor& tensor = *operands[operand];
      memory[i] = std::make_unique<GuardedMemory>(tensor.storage(), against);
      bindings.set(operand, memory[i]->data() + tensor.origin());
      if (operand == result) {
        wipe(tensor, memory[i]->data());
      } else {
        memory[i]->forbid_writes();
      }
    }
    // A step's workspace is aligned: what is too short to end at the page is followed by garbage that must
    // stay.
    const size_t asked = step.workspace_bytes(), aligned = (asked + 63) / 64 * 64;
    GuardedMemory workspace(against == Against::kEnd ? aligned : asked, against);
    std::fill_n(workspace.data(), workspace.bytes().size(), kGarbage);
    step.run(bindings, workspace.data(), context_);
    EXPECT_TRUE(std::all_of(workspace.bytes().begin() + static_cast<ptrdiff_t>(asked),
                            workspace.bytes().end(), [](std::byte b) { return b == kGarbage; }))
        << "bytes behind the workspace were written";
    EXPECT_TRUE(std::ranges::equal(memory[static_cast<size_t>(result)]->bytes(), operands[result]->storage()))
        << "other bits than in ordinary memory";
  }

  // Elements only: the poison between them must survive, as it has in ordinary memory.
  static void wipe(const HostTensor& tensor, std::byte* guarded) {
    tensor.for_each([&](const Dims& index) {
      const auto at = static_cast<size_t>(tensor.at(index) - tensor.storage().data());
      std::fill_n(guarded + at, size_of(tensor.view().dtype), kGarbage);
    });
  }

  std::mt19937_64 random_{77};
  runtime::ExecutionContext context_{.pool = &runtime::ThreadPool::instance()};
  struct sigaction before_ = {};
};

TEST_F(GuardPagesTest, ShapeFiles) {
  // The reference goes from element to element, whatever the size: random problems are enough for it.
  const auto fast = all_candidates().first(all_candidates().size() - 1);
  for (const NamedRequest& named : read_shape_files()) {
    check(named.request, fast);
    if (const auto narrow = in_type(named.request, DType::kBF16)) check(*narrow, fast);
    if (HasFailure()) return;
  }
  EXPECT_GT(runs_, 500);
}

TEST_F(GuardPagesTest, RandomRequests) {
  ProblemGenerator generator(78, {.forward = 30});
  for (int i = 0; i < 80 && !HasFailure(); ++i) {
    check(*to_request(generator.conv()), all_candidates());
    check(*to_request(generator.conv_tbc()), all_candidates());
    check(*to_request(generator.avgpool()), all_candidates());
  }
}

using GuardPagesDeathTest = GuardPagesTest;

// What the tests above rely on: a step that strays is stopped and named.
TEST_F(GuardPagesDeathTest, ABytePastTheEndsStopsTheProgram) {
  std::snprintf(running, sizeof running, "\nthe culprit\n");
  const auto touch = [](size_t bytes, Against against, ptrdiff_t at) {
    GuardedMemory memory(bytes, against);
    *static_cast<volatile std::byte*>(memory.data() + at) = std::byte{1};
  };
  for (const size_t bytes : {1, 100, 4096, 5000}) {
    touch(bytes, Against::kEnd, static_cast<ptrdiff_t>(bytes) - 1);
    touch(bytes, Against::kStart, 0);
    EXPECT_DEATH(touch(bytes, Against::kEnd, static_cast<ptrdiff_t>(bytes)), "the culprit");
    EXPECT_DEATH(touch(bytes, Against::kStart, -1), "the culprit");
  }
  const std::byte contents[3] = {};
  GuardedMemory memory(contents, Against::kEnd);
  memory.forbid_writes();
  EXPECT_DEATH(*static_cast<volatile std::byte*>(memory.data()) = std::byte{1}, "the culprit");
}

}  // namespace
}  // namespace retrograd::test
