// SPDX-License-Identifier: Apache-2.0
// Every candidate's launches on every GPU that has a name, without a GPU: a runtime that runs nothing
// (idle_cuda.h) says which of them a real one would refuse.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/machine.h"
#include "engines/cuda/implementations.h"
#include "engines/engine.h"
#include "idle_cuda.h"
#include "problem/operand_views.h"
#include "problem/problem_text.h"
#include "support/generator/problem_generator.h"
#include "support/legal_problem.h"
#include "support/shape_files.h"

namespace retrograd::test::launches_test {
namespace {

using problem::Operand;

constexpr uintptr_t kOperands = uintptr_t{0x10} << 40, kApart = uintptr_t{1} << 40;  // no operand is larger
constexpr uintptr_t kWorkspace = uintptr_t{0x70} << 40;
void* const kStream = reinterpret_cast<void*>(0x57);

struct Placing {
  const char* name;
  bool aligned;   // operands at multiples of 256 bytes, or an odd number of elements behind one
  bool declines;  // tensor maps and scratch memory
};
constexpr Placing kPlacings[] = {
    {"aligned operands", true, false}, {"odd operands", false, false}, {"no maps, no scratch", true, true}};

struct Placed {
  engines::Bindings bindings;
  std::vector<idle_cuda::Room> rooms;
};
// The operands of a pass, and nothing else.
Placed place(const problem::OperandViews& views, const problem::Pass& pass, const Placing& placing) {
  Placed placed;
  for (size_t i = 0; i < views.size(); ++i) {
    const auto operand = static_cast<Operand>(i);
    if (!views[i] || (operand != problem::result_of(pass).operand && !problem::reads(pass, operand)))
      continue;
    const size_t width = size_of(views[i]->dtype);
    const uintptr_t address = kOperands + i * kApart + (placing.aligned ? 0 : (2 * i + 1) * width);
    placed.bindings.set(operand, reinterpret_cast<void*>(address));
    if (problem::element_count(views[i]->shape).value() == 0) continue;
    const problem::OffsetRange range = problem::offset_range(*views[i]).value();
    placed.rooms.push_back({address - static_cast<size_t>(-range.lowest) * width,
                            static_cast<size_t>(range.highest - range.lowest + 1) * width});
  }
  return placed;
}

std::vector<Machine> named_gpus() {
  std::vector<Machine> gpus;
  for (const std::string_view name : machine_names())
    if (auto machine = named_machine(name); machine->kind == Machine::Kind::kGpu) gpus.push_back(*machine);
  return gpus;
}

// Those that have put a kernel on the stream.
std::set<const engines::Candidate*>& launched() {
  static std::set<const engines::Candidate*> candidates;
  return candidates;
}

// The first launch of a candidate that breaks a rule fails the test, with everything that it is about.
void run(const engines::Candidate& candidate, const problem::OperandViews& views, const problem::Pass& pass,
         const Machine& machine) {
  const auto step = candidate.make_step(pass, machine);
  if (step == nullptr) return;
  for (const Placing& placing : kPlacings) {
    Placed placed = place(views, pass, placing);
    placed.rooms.push_back({kWorkspace, step->workspace_bytes()});
    const int64_t before = idle_cuda::launches();
    idle_cuda::begin({machine.gpu, kStream, placed.rooms, placing.declines});
    runtime::ExecutionContext context{.native_stream = kStream};
    engines::run_converted(*step, 0, placed.bindings, reinterpret_cast<std::byte*>(kWorkspace), context);
    if (idle_cuda::launches() > before) launched().insert(&candidate);
    const auto complaints = idle_cuda::complaints();
    if (complaints.empty()) continue;
    ADD_FAILURE() << machine.name << ", " << candidate.name() << ", " << name_of(pass) << ", " << placing.name
                  << ": " << step->describe() << "\n  " << fmt::format("{}", fmt::join(complaints, "\n  "));
    return;
  }
}

void check(const problem::Request& request) {
  static const std::vector<Machine> gpus = named_gpus();
  SCOPED_TRACE(to_text(request));
  const problem::Problem problem = legal_problem(request);
  const problem::OperandViews views = problem::views_of(request);
  for (const Machine& machine : gpus)
    for (const problem::Pass& pass : problem.passes)
      for (const engines::Candidate* const candidate : engines::cuda::candidates())
        if (candidate->supports(pass, machine).accepted()) run(*candidate, views, pass, machine);
}

TEST(LaunchesTest, ShapeFiles) {
  for (const NamedRequest& named : read_shape_files()) {
    SCOPED_TRACE(named.place);
    check(named.request);
    for (const DType dtype : {DType::kF32, DType::kF16})
      if (const auto request = in_type(named.request, dtype)) check(*request);
  }
  for (const engines::Candidate* const candidate : engines::cuda::candidates())
    EXPECT_TRUE(launched().contains(candidate)) << candidate->name() << " has no problem in these files";
}

void check_drawn(uint64_t seed, const GeneratorOptions& options, int problems) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  ProblemGenerator generator(seed, options);
  for (int i = 0; i < problems; ++i) {
    ProblemSketch sketch = generator.any();
    if (const auto request = to_request(sketch)) check(*request);
    if (sketch.kind == ProblemKind::kAvgPool || sketch.math_mode != 0) continue;
    sketch.math_mode = 1;  // TF32
    if (const auto request = to_request(sketch)) check(*request);
  }
}
TEST(LaunchesTest, SmallProblems) { check_drawn(20261120, {.forward = 30}, 2000); }
TEST(LaunchesTest, ProblemsOfNetworks) {
  GeneratorOptions options = GeneratorOptions::network();
  options.forward = 30;
  check_drawn(20261121, options, 3000);
}

}  // namespace
}  // namespace retrograd::test::launches_test
