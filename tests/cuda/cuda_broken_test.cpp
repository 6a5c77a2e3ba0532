// SPDX-License-Identifier: Apache-2.0
// A kernel that faults ends the GPU's context for the process: every later call says so, and the process
// lives. In a process of its own, since nothing on the GPU works afterwards.
#include <cstdlib>

#include "cuda_fixture.h"
#include "plan/plan.h"
#include "problem/problem_text.h"
#include "support/legal_problem.h"

namespace retrograd::test {
namespace {

using CudaBrokenTest = runtime::CudaTest;

int fault_and_go_on() {
  runtime::Device& gpu = *runtime::find_device(runtime::DeviceKind::kCuda, 0);
  const problem::Problem problem =
      legal_problem(problem::parse_request("avgpool input=2x8x14x14 kernel=2x2 stride=2x2").value());
  const auto plan = plan::make_plan(problem, gpu, "test").value();
  engines::Bindings bindings;
  bindings.set(problem::Operand::kGradOutput, reinterpret_cast<void*>(uintptr_t{1} << 12));  // nobody's
  bindings.set(problem::Operand::kInput, reinterpret_cast<void*>(uintptr_t{1} << 12));
  bindings.set(problem::Operand::kGradInput, reinterpret_cast<void*>(uintptr_t{1} << 12));
  const auto stream = gpu.null_stream();
  if (!plan::Plan::execute(plan, bindings, nullptr, 0, *stream).is_ok()) return 1;  // launching is no error
  const Status first = stream->synchronize(), second = gpu.synchronize();
  const auto block = gpu.allocate(64);
  for (const Status& status : {first, second, block.status()}) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    if (status.code() != Code::kInternal) return 2;
    if (status.message().find("cuda") == std::string::npos) return 3;
  }
  return plan::Plan::execute(plan, bindings, nullptr, 0, *stream).is_ok() ? 4 : 0;
}

TEST_F(CudaBrokenTest, AFaultIsReportedByEveryLaterCall) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // the child starts anew, without this GPU's context
  EXPECT_EXIT(std::_Exit(fault_and_go_on()), testing::ExitedWithCode(0), "cudaStreamSynchronize.*illegal");
}

}  // namespace
}  // namespace retrograd::test
