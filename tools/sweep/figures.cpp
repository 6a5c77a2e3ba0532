// SPDX-License-Identifier: Apache-2.0
// Draws with the generator of the tests, measures pass by pass or whole calls.
#include "tools/sweep/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "plan/plan.h"
#include "problem/problem_text.h"
#include "runtime/foreign_threads.h"
#include "support/generator/problem_generator.h"
#include "tools/bench/peer_turns.h"
#include "tools/devices.h"
#include "tools/measure/device_limits.h"
#include "tools/measure/operand_memory.h"
#include "tools/measure/plan_runner.h"
#include "tools/print_error.h"
#include "tools/progress.h"

namespace retrograd::tools {
namespace {

using test::GeneratorOptions;

// Bounds of a problem: --gflop is that of grad_input and grad_weight together.
GeneratorOptions bounds_of(const SweepOptions& options) {
  constexpr double kCpuGflop = 1, kGpuGflop = 40;
  const double gflop = options.gflop > 0 ? options.gflop : options.device == "cpu" ? kCpuGflop : kGpuGflop;
  GeneratorOptions bounds = GeneratorOptions::network();
  bounds.most_products = gflop * 1e9 / 4;
  bounds.forward = options.forward ? 100 : 0;
  bounds.most_elements = std::min(bounds.most_elements, gflop * 2e7);
  return bounds;
}

// A family that is never drawn would be waited for in vain.
Status check_family(const SweepOptions& options) {
  std::string names;
  for (const auto& classes : {test::network_shapes(), test::network_pools()})
    for (const test::ShapeClass& each : classes) {
      if (options.family.empty() || options.family == each.name) return Status::ok();
      names += fmt::format("{}{}", names.empty() ? "" : ", ", each.name);
    }
  return {Code::kInvalidArgument, fmt::format("--family: '{}' is not one of {}", options.family, names)};
}

// Loops run on their caller alone while it lives.
class OneThread {
 public:
  OneThread() {
    runtime::set_foreign_threads(
        {.parallel_for = [](void*, int64_t, auto, void*) {}, .thread_count = [](void*) { return 1; }});
  }
  ~OneThread() { runtime::set_foreign_threads({}); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;
};

// The calls that were chosen, with one thread, when it is their turn.
class OneThreadTurns {
 public:
  static Result<OneThreadTurns> make(const problem::Problem& problem, const engines::Bindings& bindings,
                                     runtime::Device& device) {
    OneThreadTurns turns;
    RG_TRY(auto plan, plan::make_plan(problem, device, "bench"));
    RG_TRY(turns.runner_, PlanRunner::make(std::move(plan), bindings));
    return turns;
  }
  void take(double seconds) {
    const OneThread alone;
    int64_t runs = 0;
    if (const auto one = runner_.time(seconds, runs); one.is_ok()) times_.push_back(one.value());
  }
  double seconds() const { return times_.empty() ? 0 : median(times_); }

 private:
  PlanRunner runner_;
  std::vector<double> times_;
};

class Sweep {
 public:
  Sweep(const SweepOptions& options, std::vector<Gradient> gradients, runtime::Device& device,
        std::vector<std::unique_ptr<Peer>> peers)
      : options_(options),
        gradients_(std::move(gradients)),
        device_(device),
        peers_(std::move(peers)),
        limits_(device) {}

  Status measure(const SweepProblem& drawn, std::vector<SweepFigure>& figures) {
    RG_TRY(const auto whole, problem::judge(drawn.request));
    RG_TRY(const auto memory, OperandMemory::make(whole, device_));
    std::vector<std::string> seen;  // a problem that asks for one gradient is all of it
    for (const Gradient gradient : is_forward(drawn.request) ? std::vector{Gradient::kOutput} : gradients_) {
      const auto request = with_gradient(drawn.request, gradient);
      if (!request) continue;
      RG_TRY(const auto problem, problem::judge(*request));
      const std::string text = to_text(*request);
      const bool known = std::find(seen.begin(), seen.end(), text) != seen.end();
      if (problem.passes.empty() || known) continue;
      seen.push_back(text);
      SweepFigure figure;
      figure.index = drawn.index;
      figure.family = drawn.family;
      figure.gradient = name_of(gradient);
      figure.problem = text;
      PeerTurns turns(peers_, text);
      std::optional<OneThreadTurns> alone;
      if (options_.speed_up) {
        RG_TRY(alone, OneThreadTurns::make(problem, memory.bindings(), device_));
      }
      // Who has had twice its time has had enough, as those of ours.
      const TimingOptions timing{options_.seconds, options_.every, [&](double seconds) {
                                   turns.take(seconds, 2 * options_.seconds);
                                   if (alone) alone->take(seconds);
                                 }};
      RG_TRY(figure.times, problem.passes.size() > 1
                               ? time_whole_call(problem, memory.bindings(), device_, timing)
                               : time_implementations(problem, 0, memory.bindings(), device_, timing));
      const Limits limits = limits_.recent(figure.times.work.bytes, result_of(problem.passes[0]).dtype);
      figure.roofline = limits.roofline(figure.times.work, figure.times.chosen().seconds);
      figure.peers = turns.rows();
      if (alone) figure.one_thread_seconds = alone->seconds();
      figures.push_back(std::move(figure));
    }
    return Status::ok();
  }

  int tell_lost_peers() const {
    int lost = 0;
    for (const auto& peer : peers_) {
      if (!peer->lost()) continue;
      print_error("retrograd sweep: lost {}: {}\n", peer->name(), peer->why_lost());
      ++lost;
    }
    return lost;
  }

 private:
  const SweepOptions& options_;
  std::vector<Gradient> gradients_;
  runtime::Device& device_;
  std::vector<std::unique_ptr<Peer>> peers_;
  DeviceLimits limits_;
};

}  // namespace

const PeerRow* SweepFigure::fastest_peer() const {
  const PeerRow* best = nullptr;
  for (const PeerRow& peer : peers)
    if (peer.seconds > 0 && (!best || peer.seconds < best->seconds)) best = &peer;
  return best;
}

double SweepFigure::ratio() const {
  const PeerRow* const peer = fastest_peer();
  return peer ? peer->seconds / times.chosen().seconds : 0;
}

double SweepFigure::workspace_share() const {
  return static_cast<double>(times.chosen().workspace) / (1.5 * times.largest_operand + 8e6);
}

double SweepFigure::speed_up() const {
  return one_thread_seconds < 1e-3 ? 0 : one_thread_seconds / times.chosen().seconds;
}

Result<std::vector<SweepProblem>> sweep_problems(const SweepOptions& options) {
  const auto dtype = dtype_from_name(options.dtype);
  if (!options.dtype.empty() && !dtype)
    return Status(Code::kInvalidArgument,
                  fmt::format("--dtype: '{}' is not one of f32, f16, bf16, hif8, e4m3", options.dtype));
  RG_TRY(const Layout layout, layout_from_name(options.layout));
  RG_CHECK(check_family(options));
  test::ProblemGenerator generator(options.seed, bounds_of(options));
  std::vector<SweepProblem> problems;
  for (int64_t i = 0, taken = 0; taken < options.count; ++i) {
    const test::ProblemSketch sketch = generator.any();
    if (!options.family.empty() && sketch.shape_class != options.family) continue;
    ++taken;
    auto request = to_request(sketch);
    if (!request) continue;
    if (dtype) request = with_dtype(std::move(*request), *dtype);
    request = with_layout(with_math_mode(std::move(*request), options.math_mode), layout);
    problems.push_back({i, sketch.shape_class, std::move(*request)});
  }
  return problems;
}

Result<SweepResult> measure_sweep(const SweepOptions& options,
                                  const std::function<void(const SweepFigure&)>& each,
                                  const std::function<Status()>& begin) {
  RG_TRY(const auto problems, sweep_problems(options));
  RG_TRY(auto gradients, gradients_of(options.passes));
  RG_TRY(runtime::Device* const device, device_from_name(options.device));
  if (options.speed_up && device->kind() != runtime::DeviceKind::kCpu)
    return Status(Code::kInvalidArgument, "--speed-up: a GPU has no threads of ours");
  std::vector<std::unique_ptr<Peer>> peers;
  for (const std::string& command : options.peers) {
    RG_TRY(auto peer, Peer::start(command, runtime::ThreadPool::instance().threads()));
    peers.push_back(std::move(peer));
  }
  RG_CHECK(begin());
  SweepResult result;
  result.peers = facts_of(peers);
  Sweep sweep(options, std::move(gradients), *device, std::move(peers));
  std::vector<SweepFigure>& figures = result.figures;
  Progress progress(problems.size());
  for (size_t i = 0; i < problems.size(); ++i) {
    progress.show(i, problems[i].family);
    const size_t before = figures.size();
    const Status status = sweep.measure(problems[i], figures);
    if (!status.is_ok()) {
      progress.clear();
      print_error("retrograd sweep: {}: {}\n", to_text(problems[i].request), status.message());
      ++result.failures;
    }
    for (size_t f = before; f < figures.size(); ++f) each(figures[f]);
  }
  progress.clear();
  result.failures += sweep.tell_lost_peers();
  return result;
}

}  // namespace retrograd::tools
