// SPDX-License-Identifier: Apache-2.0
// Prints which engine takes which pass of every row of the benchmark suites, in every element type and math
// mode, for the vectors of this machine. check_selection.py runs it once for each instruction set.
//
//   selection_table FILE…      rn50_3x3_56 bf16 grad_input:cpu.dense_gather grad_weight:cpu.dense_grad_weight
//   …
#include <fmt/format.h>

#include "base/settings.h"
#include "engines/registry.h"
#include "kernels/cpu/dense/bf16_pairs.h"
#include "kernels/cpu/dense/tile_product.h"
#include "kernels/cpu/targets.h"
#include "plan/plan.h"
#include "tools/problems.h"

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

Status print_row(const tools::NamedProblem& row, runtime::Device& device) {
  for (const Mode& mode : kModes) {
    problem::Request request = tools::with_dtype(row.request, mode.dtype);
    if (auto* conv = std::get_if<problem::ConvRequest>(&request)) {
      conv->math_mode = mode.math;
      conv->winograd = mode.winograd;
    } else if (mode.math != 0 || is_8bit(mode.dtype)) {
      continue;  // pooling knows neither
    }
    RG_TRY(auto problem, problem::judge(request));
    RG_TRY(const auto plan, plan::make_plan(std::move(problem), device, "selection_table"));
    fmt::print("{} {} {}\n", row.name, mode.name, plan->describe());
  }
  return Status::ok();
}

Status print_table(std::vector<std::string> files) {
  runtime::Device& device = *runtime::find_device(runtime::DeviceKind::kCpu, 0);
  (void)engines::candidates(device.kind());
  fmt::print("target {} lanes {}{}\n", kernels::cpu::target_name(), kernels::cpu::tile_width() / 2,
             kernels::cpu::has_bf16_products() ? "b" : "");
  tools::ProblemSource source;
  source.files = std::move(files);
  RG_TRY(const auto rows, tools::collect(source));
  for (const tools::NamedProblem& row : rows) RG_CHECK(print_row(row, device));
  return Status::ok();
}

}  // namespace

int main(int argc, char** argv) {
  const Status status = print_table({argv + 1, argv + argc});
  if (!status.is_ok()) fmt::print(stderr, "{}\n", status.message());
  return status.is_ok() ? 0 : 1;
}
