// SPDX-License-Identifier: Apache-2.0
// Prints which engine takes which pass of every row of the benchmark suites. check_selection.py runs it once
// for each instruction set and for each GPU.
//
//   selection_table FILE…      for the vectors of this machine, in every element type and math mode
//     rn50_3x3_56 bf16 grad_input:cpu.dense_gather grad_weight:cpu.dense_grad_weight …
//   selection_table --gpu h200[-cudnn] FILE…     for a GPU of the table, in planes and channels last; it need
//   not
//     rn50_3x3_56 bf16/last grad_input:cuda.wgmma_products …                        be here, nor CUDA
#include <fmt/format.h>

#include "base/machine.h"
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
};
constexpr Mode kModes[] = {
    {"f32", DType::kF32, 0},        {"f32/math=1", DType::kF32, 1}, {"f32/math=2", DType::kF32, 2},
    {"f32/math=3", DType::kF32, 3}, {"f16", DType::kF16, 0},        {"bf16", DType::kBF16, 0},
    {"hif8", DType::kHiF8, 0},      {"e4m3", DType::kE4M3, 0},
};

Status print_row(const tools::NamedProblem& row, runtime::Device& device) {
  for (const Mode& mode : kModes) {
    problem::Request request = tools::with_dtype(row.request, mode.dtype);
    if (auto* conv = std::get_if<problem::ConvRequest>(&request)) {
      conv->math_mode = mode.math;
    } else if (mode.math != 0 || is_8bit(mode.dtype)) {
      continue;  // pooling knows neither
    }
    RG_TRY(auto problem, problem::judge(request));
    RG_TRY(const auto plan, plan::make_plan(std::move(problem), device, "selection_table"));
    fmt::print("{} {} {}\n", row.name, mode.name, plan->describe());
  }
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

// The cheapest that accepts: what cuDNN has of a pass, only a device knows.
std::string choice_of(const problem::Pass& pass, const Machine& machine) {
  const auto answers = plan::judge(engines::candidates(runtime::DeviceKind::kCuda), pass, machine);
  return answers.front().candidate->name();
}

Status print_row(const tools::NamedProblem& row, const Machine& machine) {
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

Status print_gpu_table(std::string_view name, std::vector<std::string> files) {
  constexpr std::string_view kWithout = "-cudnn";
  const bool without = name.ends_with(kWithout);
  auto machine = named_machine(name.substr(0, name.size() - (without ? kWithout.size() : 0)));
  if (!machine || machine->kind != Machine::Kind::kGpu)
    return {Code::kInvalidArgument, fmt::format("no GPU is called {}", name)};
  if (without) machine->gpu.cudnn = false;
  tools::ProblemSource source;
  source.files = std::move(files);
  RG_TRY(const auto rows, tools::collect(source));
  for (const tools::NamedProblem& row : rows) RG_CHECK(print_row(row, *machine));
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
  const bool gpu = argc > 2 && std::string_view(argv[1]) == "--gpu";
  const Status status =
      gpu ? print_gpu_table(argv[2], {argv + 3, argv + argc}) : print_table({argv + 1, argv + argc});
  if (!status.is_ok()) fmt::print(stderr, "{}\n", status.message());
  return status.is_ok() ? 0 : 1;
}
