// SPDX-License-Identifier: Apache-2.0
// Draws with the generator of the tests, measures pass by pass.
#include "tools/sweep_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "problem/problem_text.h"
#include "support/problem_generator.h"
#include "tools/device_limits.h"
#include "tools/devices.h"
#include "tools/operand_memory.h"
#include "tools/peer.h"
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

Result<std::vector<Gradient>> gradients_of(const SweepOptions& options) {
  std::vector<Gradient> gradients;
  for (const std::string& pass : options.passes) {
    const auto gradient = gradient_from_name(pass);
    if (!gradient || gradient == Gradient::kAll || gradient == Gradient::kOutput)
      return Status(Code::kInvalidArgument, fmt::format("--passes: '{}' is not one of i, w, b", pass));
    gradients.push_back(*gradient);
  }
  return gradients;
}

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
    for (const Gradient gradient : is_forward(drawn.request) ? std::vector{Gradient::kOutput} : gradients_) {
      const auto request = with_gradient(drawn.request, gradient);
      if (!request) continue;
      RG_TRY(const auto problem, problem::judge(*request));
      if (problem.passes.size() != 1) continue;
      SweepFigure figure;
      figure.index = drawn.index;
      figure.family = drawn.family;
      figure.gradient = name_of(gradient);
      figure.problem = to_text(*request);
      RG_TRY(figure.times, time_implementations(problem, 0, memory.bindings(), device_,
                                                {.seconds = options_.seconds, .every = options_.every}));
      const Limits limits = limits_.recent(figure.times.work.bytes, result_of(problem.passes[0]).dtype);
      figure.roofline = limits.roofline(figure.times.work, figure.times.chosen().seconds);
      for (const auto& peer : peers_) figure.peers.push_back(time_peer(*peer, figure.problem));
      figures.push_back(std::move(figure));
    }
    return Status::ok();
  }

  int tell_lost_peers() const {
    int lost = 0;
    for (const auto& peer : peers_) {
      if (!peer->lost()) continue;
      fmt::print(stderr, "retrograd sweep: lost {}: {}\n", peer->name(), peer->why_lost());
      ++lost;
    }
    return lost;
  }

 private:
  PeerRow time_peer(Peer& peer, const std::string& problem) const {
    PeerRow row;
    row.name = peer.name();
    row.declined = peer.declines(problem).value_or("");
    if (!row.declined.empty()) return row;
    if (const auto time = peer.time(options_.seconds)) {
      row.seconds = time->seconds;
      row.variant = time->variant;
    } else {
      row.declined = peer.why_lost();
    }
    return row;
  }

  const SweepOptions& options_;
  std::vector<Gradient> gradients_;
  runtime::Device& device_;
  std::vector<std::unique_ptr<Peer>> peers_;
  DeviceLimits limits_;
};

}  // namespace

double SweepFigure::ratio() const {
  double best = 0;
  for (const PeerRow& peer : peers)
    if (peer.seconds > 0 && (best == 0 || peer.seconds < best)) best = peer.seconds;
  return best / times.chosen().seconds;
}

Result<std::vector<SweepProblem>> sweep_problems(const SweepOptions& options) {
  const auto dtype = dtype_from_name(options.dtype);
  if (!options.dtype.empty() && !dtype)
    return Status(Code::kInvalidArgument,
                  fmt::format("--dtype: '{}' is not one of f32, f16, bf16, hif8, e4m3", options.dtype));
  test::ProblemGenerator generator(options.seed, bounds_of(options));
  std::vector<SweepProblem> problems;
  for (int64_t i = 0; i < options.count; ++i) {
    const test::ProblemSketch sketch = generator.any();
    auto request = to_request(sketch);
    if (!request) continue;
    if (dtype) request = with_dtype(std::move(*request), *dtype);
    request = with_math_mode(std::move(*request), options.math_mode);
    problems.push_back({i, sketch.shape_class, std::move(*request)});
  }
  return problems;
}

Result<SweepResult> measure_sweep(const SweepOptions& options,
                                  const std::function<void(const SweepFigure&)>& each) {
  RG_TRY(const auto problems, sweep_problems(options));
  RG_TRY(auto gradients, gradients_of(options));
  RG_TRY(runtime::Device* const device, device_from_name(options.device));
  std::vector<std::unique_ptr<Peer>> peers;
  for (const std::string& command : options.peers) {
    RG_TRY(auto peer, Peer::start(command, runtime::ThreadPool::instance().threads()));
    peers.push_back(std::move(peer));
  }
  Sweep sweep(options, std::move(gradients), *device, std::move(peers));
  SweepResult result;
  std::vector<SweepFigure>& figures = result.figures;
  Progress progress(problems.size());
  for (size_t i = 0; i < problems.size(); ++i) {
    progress.show(i, problems[i].family);
    const size_t before = figures.size();
    const Status status = sweep.measure(problems[i], figures);
    if (!status.is_ok()) {
      progress.clear();
      fmt::print(stderr, "retrograd sweep: {}: {}\n", to_text(problems[i].request), status.message());
      ++result.failures;
    }
    for (size_t f = before; f < figures.size(); ++f) each(figures[f]);
  }
  progress.clear();
  result.failures += sweep.tell_lost_peers();
  return result;
}

}  // namespace retrograd::tools
