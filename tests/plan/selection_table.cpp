// SPDX-License-Identifier: Apache-2.0
// Prints which engine takes which pass of every row of the benchmark suites, for every CPU or GPU that has a
// name (base/machine.h): planning is a function of the pass and the machine, so none of them need be here.
// check_selection.py compares.
//
// clang-format off
//   selection_table FILE…                machine zen3
//                                        rn50_3x3_56 bf16 grad_input:cpu.dense_gather grad_weight:…
//   selection_table --gpus FILE…         the same for GPUs, NCHW and NHWC ("bf16/last")
//   selection_table --here[=ISA] FILE…   for this machine, or with the vectors of a lesser instruction set: avx2, sse4, baseline
//   selection_table --try FILE…          every candidate plans every pass for every CPU, the same for any number of threads, parts of sums for any caches
// clang-format on
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "engines/cost.h"
#include "engines/machines.h"
#include "engines/registry.h"
#include "plan/plan.h"
#include "tools/problems/problems.h"

namespace {

using namespace retrograd;

struct Mode {
  const char* name;
  DType dtype;
  int64_t math;
  bool winograd = false;
};
constexpr Mode kModes[] = {
    {"f32", DType::kF32, 0},
    {"f32/math=1", DType::kF32, 1},
    {"f32/math=2", DType::kF32, 2},
    {"f32/math=3", DType::kF32, 3},
    {"f16", DType::kF16, 0},
    {"bf16", DType::kBF16, 0},
    {"hif8", DType::kHiF8, 0},
    {"e4m3", DType::kE4M3, 0},
    {"f32/math=1/winograd=1", DType::kF32, 1, true},
};

auto all_candidates() { return engines::candidates(runtime::DeviceKind::kCpu); }

std::vector<Machine> named_cpus() {
  std::vector<Machine> cpus;
  for (const std::string_view name : machine_names())
    if (auto machine = named_machine(name); machine->kind == Machine::Kind::kCpu) cpus.push_back(*machine);
  return cpus;
}

// This machine with the vectors of a lesser instruction set, written down by hand: what a process that is
// limited to it plans for.
Result<Machine> this_machine(std::string_view isa) {
  Machine machine = engines::machine_of(runtime::DeviceKind::kCpu);
  if (isa.empty()) return machine;
  CpuFacts& cpu = machine.cpu;
  const int before = cpu.vector_floats;
  cpu.vector_floats = isa == "avx2" ? 8 : isa == "sse4" ? 4 : isa == "baseline" ? 1 : 0;
  if (cpu.vector_floats == 0 || cpu.vector_floats > before)
    return Status(Code::kInvalidArgument, fmt::format("'{}' is not less than {}", isa, machine.name));
  cpu.vector_registers = 16;
  cpu.masked_loads = cpu.vector_floats >= 8;
  cpu.bf16_pairs = cpu.bf16_tiles = cpu.f16_tiles = false;
  cpu.gflops *= cpu.vector_floats / static_cast<double>(before);
  return machine;
}

// In every type and mode that the row has.
template <class Body>
Status each_problem(const tools::NamedProblem& row, const Body& body) {
  for (const Mode& mode : kModes) {
    problem::Request request = tools::with_dtype(row.request, mode.dtype);
    if (auto* conv = std::get_if<problem::ConvRequest>(&request)) {
      conv->math.mode = mode.math;
      conv->math.winograd = mode.winograd;
    } else if (mode.math != 0 || is_8bit(mode.dtype)) {
      continue;  // pooling knows neither
    }
    RG_TRY(auto problem, problem::judge(request));
    RG_CHECK(body(mode.name, problem));
  }
  return Status::ok();
}

Status print_row(const tools::NamedProblem& row, const Machine& machine) {
  return each_problem(row, [&](const char* mode, const problem::Problem& problem) {
    std::string choices;
    for (const problem::Pass& pass : problem.passes) {
      auto answers = plan::judge(all_candidates(), pass, machine);
      const auto chosen = std::find_if(answers.begin(), answers.end(), [&](plan::Answer& answer) {
        return answer.support.accepted() &&
               plan::make_step(answer, pass, machine, plan::workspace_limit(pass, machine)) != nullptr;
      });
      if (chosen == answers.end()) return Status(Code::kInternal, "nobody takes " + row.name);
      choices += fmt::format(" {}:{}", name_of(pass), chosen->candidate->name());
    }
    fmt::print("{} {}{}\n", row.name, mode, choices.empty() ? " nothing" : choices);
    return Status::ok();
  });
}

// What is wrong with what a candidate says of a pass, or nothing.
std::string try_candidate(const engines::Candidate& candidate, const problem::Pass& pass,
                          const Machine& machine) {
  if (!candidate.supports(pass, machine).accepted()) return {};
  const engines::Effort effort = candidate.effort(pass, machine);
  if (!std::isfinite(engines::cost(candidate, pass, machine)) || effort.operations < 0 || effort.bytes < 0)
    return "its cost is no number";
  Machine alone = machine, many = machine;
  alone.cpu.threads = 1;
  many.cpu.threads = 61;
  const auto step = candidate.make_step(pass, machine), one = candidate.make_step(pass, alone),
             all = candidate.make_step(pass, many);
  if (step == nullptr || one == nullptr || all == nullptr) return "it makes no step";
  if (one->describe() != step->describe() || all->describe() != step->describe())
    return "it cuts the work by the number of threads: " + one->describe() + " / " + all->describe();
  // Gradients of weights are sums of parts: which, no cache may say.
  Machine cramped = machine;
  for (Cache& cache : cramped.cpu.caches.level) cache.bytes /= 8;
  const auto* conv = std::get_if<problem::ConvPass>(&pass);
  if (conv != nullptr && conv->kind == problem::ConvPassKind::kGradWeight &&
      candidate.make_step(pass, cramped)->describe() != step->describe())
    return "it cuts sums by the caches";
  if (one->workspace_bytes() > step->workspace_bytes() || step->workspace_bytes() > all->workspace_bytes())
    return "more threads need less memory";
  return {};
}

Status try_all(const std::vector<tools::NamedProblem>& rows) {
  size_t passes = 0;
  for (const Machine& machine : named_cpus())
    for (const tools::NamedProblem& row : rows)
      for (const Mode& mode : {kModes[0], kModes[1], kModes[5]}) {
        problem::Request request = tools::with_dtype(row.request, mode.dtype);
        if (auto* conv = std::get_if<problem::ConvRequest>(&request)) conv->math.mode = mode.math;
        const auto problem = problem::judge(request);
        if (!problem.is_ok()) continue;  // not in this type
        for (const problem::Pass& pass : problem.value().passes) {
          ++passes;
          for (const engines::Candidate* candidate : all_candidates())
            if (const std::string wrong = try_candidate(*candidate, pass, machine); !wrong.empty())
              return {Code::kInternal, fmt::format("{}, {}, {}, {}: {}", machine.name, row.name,
                                                   candidate->name(), name_of(pass), wrong)};
        }
      }
  fmt::print("every candidate planned {} passes\n", passes);
  return Status::ok();
}

// What lies behind the batch as (spatial…, channels).
void put_channels_last(problem::TensorView& view) {
  if (view.shape.rank() < 3) return;
  int64_t stride = 1;
  view.strides[1] = stride;
  stride *= view.shape[1];
  for (int axis = view.shape.rank(); axis-- > 2;) {
    view.strides[axis] = stride;
    stride *= view.shape[axis];
  }
  view.strides[0] = stride;
}
problem::Request in_channels_last(problem::Request request) {
  if (auto* conv = std::get_if<problem::ConvRequest>(&request)) {
    for (problem::TensorView* view : {&conv->grad_output, &conv->input, &conv->weight})
      put_channels_last(*view);
    for (auto* view : {&conv->grad_input, &conv->grad_weight})
      if (view->has_value()) put_channels_last(**view);
  } else if (auto* pool = std::get_if<problem::AvgPoolRequest>(&request)) {
    for (problem::TensorView* view : {&pool->grad_output, &pool->input, &pool->grad_input})
      put_channels_last(*view);
  }
  return request;
}

// The cheapest that accepts.
std::string choice_of(const problem::Pass& pass, const Machine& machine) {
  const auto answers = plan::judge(engines::candidates(runtime::DeviceKind::kCuda), pass, machine);
  return answers.front().candidate->name();
}

Status print_gpu_row(const tools::NamedProblem& row, const Machine& machine) {
  for (const bool last : {false, true})
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      const problem::Request request = tools::with_dtype(row.request, dtype);
      RG_TRY(const auto problem, problem::judge(last ? in_channels_last(request) : request));
      fmt::print("{} {}{}", row.name, name_of(dtype), last ? "/last" : "");
      for (const problem::Pass& pass : problem.passes)
        fmt::print(" {}:{}", name_of(pass), choice_of(pass, machine));
      fmt::print("\n");
    }
  return Status::ok();
}

std::vector<Machine> named_gpus() {
  std::vector<Machine> gpus;
  for (const std::string_view name : machine_names())
    if (auto machine = named_machine(name); machine->kind == Machine::Kind::kGpu) gpus.push_back(*machine);
  return gpus;
}

Status run(std::vector<std::string> arguments) {
  std::string option;
  if (!arguments.empty() && arguments.front().starts_with("--")) {
    option = arguments.front();
    arguments.erase(arguments.begin());
  }
  tools::ProblemSource source;
  source.files = std::move(arguments);
  RG_TRY(const auto rows, tools::collect(source));
  if (option == "--try") return try_all(rows);
  std::vector<Machine> machines;
  if (option.starts_with("--here")) {
    RG_TRY(Machine machine, this_machine(option.size() > 7 ? std::string_view(option).substr(7) : ""));
    machines.push_back(std::move(machine));
  } else {
    machines = option == "--gpus" ? named_gpus() : named_cpus();
  }
  for (const Machine& machine : machines) {
    fmt::print("machine {}\n", machine.name);
    for (const tools::NamedProblem& row : rows)
      RG_CHECK(machine.kind == Machine::Kind::kCpu ? print_row(row, machine) : print_gpu_row(row, machine));
  }
  return Status::ok();
}

}  // namespace

int main(int argc, char** argv) {
  const Status status = run({argv + 1, argv + argc});
  if (!status.is_ok()) fmt::print(stderr, "{}\n", status.message());
  return status.is_ok() ? 0 : 1;
}
