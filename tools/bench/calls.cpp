// SPDX-License-Identifier: Apache-2.0
// `retrograd bench --calls`: what the library itself takes of a call through either C interface, above the
// arithmetic. It decides the speed of problems that take microseconds.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "engines/machines.h"
#include "engines/registry.h"
#include "plan/plan.h"
#include "problem/problem_text.h"
#include "runtime/thread_pool.h"
#include "tools/bench/acl_call.h"
#include "tools/bench/infini_call.h"
#include "tools/commands.h"
#include "tools/measure/aligned_block.h"
#include "tools/measure/operand_memory.h"
#include "tools/measure/plan_runner.h"
#include "tools/print_error.h"

namespace retrograd::tools {
namespace {

// Tiny ones: dense, of one tap, depthwise, 1-D.
constexpr const char* kCallProblems[] = {
    "conv input=1x1x3x3 weight=1x1x2x2",
    "conv input=1x8x8x8 weight=8x8x3x3 padding=1x1",
    "conv input=2x16x7x7 weight=16x16x1x1",
    "conv input=1x32x7x7 weight=32x1x3x3 padding=1x1 groups=32",
    "conv input=1x16x32 weight=16x16x3 padding=1",
};

// The parts of a call one after the other, again and again for about that long: the median of each.
Result<std::vector<double>> time_parts(double seconds, const std::vector<std::function<Status()>>& parts) {
  std::vector<std::vector<double>> times(parts.size());
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  auto before = Clock::now();
  do {
    before = Clock::now();
    for (size_t i = 0; i < parts.size(); ++i) {
      RG_CHECK(parts[i]());
      const auto after = Clock::now();
      times[i].push_back(std::chrono::duration<double, std::micro>(after - before).count());
      before = after;
    }
  } while (before < end);
  std::vector<double> medians;
  for (auto& each : times) medians.push_back(median(std::move(each)));
  return medians;
}

// The steps of a problem, run one after the other by the caller.
class Arithmetic {
 public:
  static Result<Arithmetic> make(const problem::Problem& problem) {
    Arithmetic made;
    const Machine& machine = engines::machine_of(runtime::DeviceKind::kCpu);
    for (const problem::Pass& pass : problem.passes)
      for (plan::Answer& answer : plan::judge(engines::candidates(runtime::DeviceKind::kCpu), pass, machine))
        if (auto step = plan::make_step(answer, pass, machine, SIZE_MAX)) {
          made.bytes_ = std::max(made.bytes_, step->workspace_bytes());
          made.steps_.push_back(std::move(step));
          break;
        }
    made.workspace_ = allocate_block(made.bytes_);
    if (!made.workspace_) return Status(Code::kOutOfMemory, "no memory for the workspace");
    return made;
  }
  void run(const engines::Bindings& bindings) {
    runtime::ExecutionContext context{.pool = &runtime::ThreadPool::instance()};
    for (const auto& step : steps_) step->run(bindings, workspace_.get(), context);
  }

 private:
  size_t bytes_ = 0;
  std::vector<std::unique_ptr<const engines::Step>> steps_;
  AlignedBlock workspace_;
};

Result<double> time_arithmetic(const problem::Problem& problem, const engines::Bindings& bindings,
                               double seconds) {
  RG_TRY(auto arithmetic, Arithmetic::make(problem));
  RG_TRY(const auto times, time_parts(seconds, {[&] {
                                        arithmetic.run(bindings);
                                        return Status::ok();
                                      }}));
  return times[0];
}

// aclnn: a new executor for each call, then one that is kept.
Status show_acl(const problem::ConvRequest& request, const engines::Bindings& bindings, double seconds,
                double arithmetic) {
  RG_TRY(auto call, AclCall::make(request, bindings));
  RG_CHECK(call.phase_one());
  RG_CHECK(call.keep_executor());
  const AlignedBlock workspace = allocate_block(call.workspace_bytes());
  const auto one = [&] { return call.phase_one(); };
  const auto two = [&] { return call.phase_two(workspace.get()); };
  const auto wait = [&] { return call.synchronize(); };
  RG_TRY(const auto kept, time_parts(seconds, {two, wait}));
  RG_CHECK(call.release_executor());
  RG_TRY(const auto whole, time_parts(seconds, {one, two, wait}));
  fmt::print("  aclnn      phase one {:.2f}, phase two {:.2f}, synchronize {:.2f}: {:.2f} above\n", whole[0],
             whole[1], whole[2], whole[0] + whole[1] + whole[2] - arithmetic);
  fmt::print("  repeatable phase two {:.2f}, synchronize {:.2f}: {:.2f} above\n", kept[0], kept[1],
             kept[0] + kept[1] - arithmetic);
  return Status::ok();
}

Status show_infini(const problem::ConvRequest& request, const engines::Bindings& bindings, double seconds,
                   double arithmetic) {
  auto made = InfiniCall::make(request, bindings);
  if (!made.is_ok()) {
    fmt::print("  infiniop   cannot say it: {}\n", made.status().message());
    return Status::ok();
  }
  InfiniCall& call = made.value();
  const AlignedBlock workspace = allocate_block(call.workspace_bytes());
  RG_TRY(const auto here, time_parts(seconds, {[&] { return call.run(workspace.get()); }}));
  RG_TRY(const auto there, time_parts(seconds, {[&] { return call.run_on_stream(workspace.get()); }}));
  fmt::print("  infiniop   run {:.2f}: {:.2f} above; on a stream, synchronized {:.2f}: {:.2f} above\n",
             here[0], here[0] - arithmetic, there[0], there[0] - arithmetic);
  return Status::ok();
}

Status show(const problem::Request& request, double seconds) {
  const auto* conv = std::get_if<problem::ConvRequest>(&request);
  if (conv == nullptr) return {Code::kInvalidArgument, "--calls times convolutions"};
  if (conv->forward || !(conv->grad_input || conv->grad_weight || conv->grad_bias))
    return {Code::kInvalidArgument,
            fmt::format("--calls times gradients of convolutions, and '{}' asks for none", to_text(request))};
  RG_TRY(const auto problem, problem::judge(request));
  RG_TRY(const OperandMemory memory,
         OperandMemory::make(problem, *runtime::find_device(runtime::DeviceKind::kCpu, 0)));
  RG_TRY(const double arithmetic, time_arithmetic(problem, memory.bindings(), seconds));
  fmt::print("{}\n  arithmetic {:.2f}\n", to_text(request), arithmetic);
  RG_CHECK(show_acl(*conv, memory.bindings(), seconds, arithmetic));
  return show_infini(*conv, memory.bindings(), seconds, arithmetic);
}

}  // namespace

int bench_calls(const BenchOptions& options) {
  ProblemSource source = options.problems;
  if (source.texts.empty() && source.files.empty())
    source.texts.assign(std::begin(kCallProblems), std::end(kCallProblems));
  const auto problems = collect(source);
  if (!problems.is_ok()) {
    print_error("retrograd bench: {}\n", problems.status().message());
    return 2;
  }
  fmt::print("microseconds, medians; \"above\" is what a call takes beyond its arithmetic\n");
  int code = 0;
  for (const NamedProblem& each : problems.value()) {
    const Status status = show(each.request, options.seconds / 5);
    if (status.is_ok()) continue;
    print_error("retrograd bench: {}\n", status.message());
    code = 1;
  }
  return code;
}

}  // namespace retrograd::tools
