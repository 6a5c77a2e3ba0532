// SPDX-License-Identifier: Apache-2.0
// `retrograd bench`: medians of whole calls, with the operations that are really needed (padding taps not
// counted).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

#include "commands.h"
#include "plan/plan.h"
#include "problem/problem_text.h"
#include "runtime/thread_pool.h"

namespace retrograd::tools {
namespace {

using Clock = std::chrono::steady_clock;
using problem::Operand;

// One small problem of each kind: what a reader sees first.
constexpr std::string_view kDefaultProblems[] = {
    "conv input=2x64x14x14 weight=64x64x3x3 padding=1x1",
    "conv input=2x64x14x14 weight=64x64x3x3 padding=1x1 dtype=bf16",
    "conv input=4x64x28x28 weight=64x1x3x3 padding=1x1 groups=64",
    "conv input=2x32x256 weight=32x32x3 dilation=4 padding=4",
    "conv input=1x16x8x14x14 weight=16x16x3x3x3 padding=1x1x1",
    "conv input=2x32x14x14 weight=32x16x4x4 stride=2x2 padding=1x1 transposed=1",
    "conv_tbc input=100x4x32 weight=3x32x32 pad=1",
    "avgpool input=4x64x56x56 kernel=3x3 stride=2x2 padding=1x1",
    "avgpool input=2x32x16x16x16 kernel=2x2x2",
};

// Multiplications and additions of a pass.
double operations(const problem::Pass& pass) {
  if (const auto* conv = std::get_if<problem::ConvPass>(&pass)) {
    double products = static_cast<double>(conv->batch * conv->y_channels * conv->x_channels_per_group());
    for (const problem::Window& window : conv->axes) {
      double live = 0;
      for (int64_t output = 0; output < window.y; ++output)
        live += static_cast<double>(live_taps(window, output).size());
      products *= live;
    }
    return 2 * products;
  }
  if (const auto* bias = std::get_if<problem::BiasPass>(&pass))
    return static_cast<double>(bias->channels * bias->reduction_length());
  const auto& pool = std::get<problem::AvgPoolPass>(pass);
  double taps = static_cast<double>(pool.batch * pool.channels);
  for (const problem::PoolWindow& window : pool.axes) {
    double covered = 0;
    for (int64_t output = 0; output < window.y; ++output)
      covered += static_cast<double>(pooled_positions(window, output).size());
    taps *= covered;
  }
  return taps;
}

// Memory for every operand of a problem, holding ones: small numbers in every type.
class OperandMemory {
 public:
  explicit OperandMemory(const problem::Problem& problem) {
    for (int i = 0; i < problem::kOperandCount; ++i) {
      const problem::OperandFacts& facts = problem.operands[static_cast<size_t>(i)];
      auto& block = blocks_[i];
      block.resize(static_cast<size_t>(facts.end_byte - facts.lowest_byte));
      std::memset(block.data(), 0x3C, block.size());
      if (!block.empty()) bindings_.set(static_cast<Operand>(i), block.data() - facts.lowest_byte);
    }
  }
  const engines::Bindings& bindings() const { return bindings_; }

 private:
  std::vector<std::byte> blocks_[problem::kOperandCount];
  engines::Bindings bindings_;
};

Status time_problem(std::string_view text, double seconds) {
  RG_TRY(const auto request, problem::parse_request(text));
  RG_TRY(auto problem, problem::judge(request));
  double work = 0;
  for (const problem::Pass& pass : problem.passes) work += operations(pass);
  OperandMemory memory(problem);
  runtime::Device& device = *runtime::find_device(runtime::DeviceKind::kCpu, 0);
  RG_TRY(const auto plan, plan::make_plan(std::move(problem), device, "bench"));
  std::vector<std::byte> workspace(plan->workspace_bytes());
  const auto stream = device.null_stream();

  std::vector<double> times;
  const auto start = Clock::now();
  while (times.size() < 3 || std::chrono::duration<double>(Clock::now() - start).count() < seconds) {
    const auto begin = Clock::now();
    RG_CHECK(plan::Plan::execute(plan, memory.bindings(), workspace.data(), workspace.size(), *stream));
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  const double median = times[times.size() / 2];
  fmt::print("{:>10.3f} ms {:>8.3f} GFLOP/s {:>5} runs  {}\n", median * 1e3, work / median * 1e-9,
             times.size(), text);
  std::fflush(stdout);
  return Status::ok();
}

}  // namespace

int bench(Arguments arguments) {
  double seconds = 20;
  if (arguments.size() >= 2 && arguments[0] == "--seconds") {
    const std::string_view value = arguments[1];
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), seconds);
    if (error != std::errc() || end != value.data() + value.size() || !(seconds > 0)) {
      fmt::print(stderr, "retrograd bench: --seconds is '{}', expected a number above 0\n", value);
      return 2;
    }
    arguments = arguments.subspan(2);
  }
  if (!arguments.empty() && arguments[0].starts_with("-")) {
    fmt::print(stderr, "retrograd bench: '{}' is no option, expected --seconds S or problems in quotes\n",
               arguments[0]);
    return 2;
  }
  const Arguments problems = arguments.empty() ? Arguments(kDefaultProblems) : arguments;
  fmt::print("median of whole calls, all gradients, {} threads\n", runtime::ThreadPool::instance().threads());
  for (std::string_view text : problems) {
    const Status status = time_problem(text, seconds / static_cast<double>(problems.size()));
    if (!status.is_ok()) {
      fmt::print(stderr, "{}\n", status.message());
      return 1;
    }
  }
  return 0;
}

}  // namespace retrograd::tools
