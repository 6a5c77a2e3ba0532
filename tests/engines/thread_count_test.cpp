// SPDX-License-Identifier: Apache-2.0
// Every candidate gives the same bits with 1, 2, 3 and 7 threads, and in every run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "engines/machines.h"
#include "engines/registry.h"
#include "problem/problem_text.h"
#include "runtime/thread_pool.h"
#include "support/generator/problem_generator.h"
#include "support/legal_problem.h"
#include "support/operands.h"
#include "support/shape_files.h"

namespace retrograd::test::thread_count_test {
namespace {

auto all_candidates() { return engines::candidates(runtime::DeviceKind::kCpu); }

class ThreadCountTest : public testing::Test {
 protected:
  void check(const problem::Request& request, std::span<const engines::Candidate* const> candidates) {
    SCOPED_TRACE(problem::to_text(request));
    Operands operands(request);
    operands.fill_normal(random_, 1.0);
    for (const problem::Pass& pass : legal_problem(request).passes)
      for (const engines::Candidate* candidate : candidates) {
        if (!candidate->supports(pass, engines::machine_of(runtime::DeviceKind::kCpu)).accepted()) continue;
        const auto step = candidate->make_step(pass, engines::machine_of(runtime::DeviceKind::kCpu));
        const std::vector<uint32_t> first = bits(*step, pass, operands, pools_[0]);
        for (runtime::ThreadPool& pool : pools_)
          EXPECT_EQ(bits(*step, pass, operands, pool), first)
              << candidate->name() << ", " << name_of(pass) << ", " << pool.threads() << " threads";
        ++checked_;
      }
  }

  std::mt19937_64 random_{9};
  int checked_ = 0;

 private:
  static std::vector<uint32_t> bits(const engines::Step& step, const problem::Pass& pass, Operands& operands,
                                    runtime::ThreadPool& pool) {
    runtime::ExecutionContext context{.pool = &pool};
    HostTensor& result = *operands[result_of(pass).operand];
    result.poison();
    const std::unique_ptr<void, void (*)(void*)> workspace(
        std::aligned_alloc(64, step.workspace_bytes() / 64 * 64 + 64), std::free);
    step.run(operands.bindings(), static_cast<std::byte*>(workspace.get()), context);
    return result.bits();
  }

  runtime::ThreadPool pools_[4] = {runtime::ThreadPool(1), runtime::ThreadPool(2), runtime::ThreadPool(3),
                                   runtime::ThreadPool(7)};
};

TEST_F(ThreadCountTest, ShapeFiles) {
  // The reference goes from element to element, whatever the size: random problems are enough for it.
  const auto fast = all_candidates().first(all_candidates().size() - 1);
  for (const NamedRequest& named : read_shape_files()) {
    check(named.request, fast);
    if (HasFailure()) return;
  }
  EXPECT_GT(checked_, 200);
}

TEST_F(ThreadCountTest, RandomRequests) {
  ProblemGenerator generator(9, {.most_products = 1e6, .forward = 30});  // enough for several threads
  for (int i = 0; i < 12 && !HasFailure(); ++i) {
    check(*to_request(generator.conv()), all_candidates());
    check(*to_request(generator.conv_tbc()), all_candidates());
    check(*to_request(generator.avgpool()), all_candidates());
  }
}

}  // namespace
}  // namespace retrograd::test::thread_count_test
