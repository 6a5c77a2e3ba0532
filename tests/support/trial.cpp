// SPDX-License-Identifier: Apache-2.0
// Everything runs on the calling thread first, where a fault can be taken back and the problem made smaller.
#include "support/trial.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "engines/machines.h"
#include "engines/registry.h"
#include "problem/problem_text.h"
#include "support/fault_guard.h"
#include "support/oracle.h"
#include "support/verdict.h"

namespace retrograd::test {
namespace {

using problem::Operand;

constexpr unsigned kLongest = 300;   // seconds; sanitizers are slow
constexpr int kMostAttempts = 2000;  // at something smaller

// Quotients of integers are exact where the divisor is a power of two.
bool has_exact_sums(const ProblemSketch& sketch) {
  return sketch.kind != ProblemKind::kAvgPool ||
         (sketch.divisor > 0 && std::has_single_bit(static_cast<uint64_t>(sketch.divisor)));
}

}  // namespace

Trial::Trial(runtime::Device& device) : Trial(device, engines::candidates(device.kind())) {}
Trial::Trial(runtime::Device& device, std::span<const engines::Candidate* const> candidates)
    : device_(device),
      candidates_(candidates),
      without_reference_(candidates),
      runner_(PassRunner::make(device)) {
  if (candidates.size() > 1 && device.kind() == runtime::DeviceKind::kCpu)
    without_reference_ = candidates.first(candidates.size() - 1);
}

std::optional<Failure> Trial::run(const ProblemSketch& sketch, const DataSketch& data, Effort effort) {
  auto failure = run_those(sketch, data, nullptr, effort);
  FaultGuard::done();
  return failure;
}

std::optional<Failure> Trial::run_those(const ProblemSketch& sketch, const DataSketch& data,
                                        const Failure* like, Effort effort) {
  const auto request = to_request(sketch);
  if (!request) return Failure{.what = "no legal request"};
  const problem::Problem problem = problem::make_problem(*request).value();
  const std::string text = problem::to_text(*request);
  Operands operands(*request);
  fill(operands, data);
  const Gradients exact = gradients_by_scattering(*request, operands);
  if (const Status placed = runner_->place(operands, data); !placed.is_ok())
    return Failure{.what = placed.message(), .final = true};
  Standard of_data = standard_of(data, operands, device_.kind());
  of_data.exact_bits &= has_exact_sums(sketch);
  of_data.divides_last = sketch.kind == ProblemKind::kAvgPool && sketch.forward;
  for (const problem::Pass& pass : problem.passes) {
    const Operand result = result_of(pass).operand;
    if (like != nullptr && result != like->result) continue;
    for (const engines::Candidate* candidate : effort.reference ? candidates_ : without_reference_) {
      if (like != nullptr && candidate != like->candidate) continue;
      FaultGuard::note(
          fmt::format("{} ran {} of \"{}\", {}", candidate->name(), name_of(pass), text, to_string(data)),
          kLongest);
      bool accepted = false;
      Status status;
      const int signal = FaultGuard::run([&] {
        const Machine& machine = engines::machine_of(device_);
        // A library may have nothing for a pass after all.
        accepted = candidate->supports(pass, machine).accepted() &&
                   (machine.kind == Machine::Kind::kCpu || candidate->make_step(pass, machine) != nullptr);
        if (accepted) status = runner_->run(*candidate, problem, pass, caller_alone_, operands);
      });
      Failure failure{candidate, result, "", false};
      if (signal != 0) {
        failure.what = fmt::format("touched what is not its own: {}", strsignal(signal));
        return failure;
      }
      if (!accepted) continue;
      ++runs_[candidate->name()];
      if (!status.is_ok()) {
        failure.what = status.message();
        failure.final = device_.kind() != runtime::DeviceKind::kCpu && !device_.synchronize().is_ok();
        return failure;
      }
      const Standard standard = standard_for(*candidate, device_.kind(), of_data);
      if (auto error = find_error(*operands[result], *exact.find(result), standard)) {
        failure.what = std::move(*error);
        return failure;
      }
      if (!effort.all_threads || device_.kind() != runtime::DeviceKind::kCpu) continue;
      const auto bits = operands[result]->bits();
      status = runner_->run(*candidate, problem, pass, runtime::ThreadPool::instance(), operands);
      if (!status.is_ok() || operands[result]->bits() != bits) {
        failure.what = status.is_ok() ? "other bits with all threads than with one" : status.message();
        return failure;
      }
    }
  }
  return std::nullopt;
}

Trial::Smaller Trial::make_smaller(const ProblemSketch& sketch, const DataSketch& data,
                                   const Failure& failure) {
  Smaller best{sketch, data, failure};
  if (failure.candidate == nullptr || failure.final) return best;
  int attempts = 0;
  const auto try_this = [&](const ProblemSketch& s, const DataSketch& d) {
    // Fewer elements have fewer special ones at other places: one of three draws will do.
    for (uint64_t salt = 0; salt < (d.has_specials() ? 3U : 1U); ++salt) {
      DataSketch salted = d;
      salted.seed += salt;
      ++attempts;
      auto found = run_those(s, salted, &failure, {});
      if (!found || found->candidate == nullptr || best.failure.final) continue;
      best = {s, salted, std::move(*found)};
      return true;
    }
    return false;
  };
  for (bool found = true; found && attempts < kMostAttempts && !best.failure.final;) {
    found = false;
    for (const ProblemSketch& smaller : simpler_than(best.sketch))
      if (try_this(smaller, best.data)) {
        found = true;
        break;
      }
    for (const DataSketch& smaller : simpler_than(best.data))
      if (!best.failure.final && try_this(best.sketch, smaller)) {
        found = true;
        break;
      }
  }
  FaultGuard::done();
  return best;
}

}  // namespace retrograd::test
