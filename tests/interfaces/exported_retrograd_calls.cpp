// SPDX-License-Identifier: Apache-2.0
// The functions of retrograd.h in exports.txt.
#include <cstddef>

#include "exported_calls.h"
#include "retrograd/retrograd.h"

namespace retrograd::test {
namespace {

constexpr int kMemory = kRetrogradOutOfMemory;
constexpr char kText[] = "conv input=1x3x6x6 weight=4x3x3x3 padding=1x1";
constexpr retrogradDevice_t kCpu{RETROGRAD_CPU, 0};

float data[6][4096];
std::byte workspace[1 << 20];
constexpr int64_t kOutput[] = {1, 4, 6, 6}, kInput[] = {1, 3, 6, 6}, kWeight[] = {4, 3, 3, 3}, kBias[] = {4},
                  kOne[] = {1};
retrogradTensor_t tensors[6];
retrogradProblem_t problem;
retrogradPlan_t plan = nullptr;
size_t workspace_size = 0;
retrogradAddresses_t addresses;
char text[4096];

void nothing() {}
void teardown() {
  if (plan != nullptr) retrogradDestroyPlan(plan);
  plan = nullptr;
}

void tensor(int i, int rank, const int64_t* shape) {
  tensors[i] = {data[i], RETROGRAD_F32, rank, shape, nullptr, kCpu};
}
void describe() {
  require(retrogradInitProblem(&problem, sizeof problem, RETROGRAD_CONV_BACKWARD) == 0, "init");
  tensor(0, 4, kOutput);
  tensor(1, 4, kInput);
  tensor(2, 4, kWeight);
  tensor(3, 4, kInput);
  tensor(4, 4, kWeight);
  tensor(5, 1, kBias);
  problem.grad_output = &tensors[0];
  problem.input = &tensors[1];
  problem.weight = &tensors[2];
  problem.grad_input = &tensors[3];
  problem.grad_weight = &tensors[4];
  problem.grad_bias = &tensors[5];
  problem.padding = {kOne, 1};
}
void with_plan() {
  describe();
  require(retrogradCreatePlan(&plan, &problem) == 0, "retrogradCreatePlan");
  require(retrogradGetWorkspaceSize(plan, &workspace_size) == 0 && workspace_size <= sizeof workspace,
          "retrogradGetWorkspaceSize");
  addresses = {data[0], data[1], data[2], data[3], data[4], data[5], nullptr, nullptr};
}

retrogradPlan_t* out() { return reinterpret_cast<retrogradPlan_t*>(&written.pointer); }
void destroy() { require(retrogradDestroyPlan(*out()) == 0, "retrogradDestroyPlan"); }

void host_loop(void*, int64_t pieces, retrogradPiece_t piece, void* context) {
  for (int64_t i = 0; i < pieces; ++i) piece(context, i);
}
void own_threads() { require(retrogradSetParallelFor(nullptr, nullptr, nullptr) == 0, "own threads"); }

const ExportedCall kCalls[] = {
    {"retrogradGetLastError", kMemory,
     [] { require(retrogradDestroyPlan(nullptr) == RETROGRAD_NULL_ARGUMENT, "a failure"); },
     [] { return *retrogradGetLastError() == '\0' ? 1 : 0; }, nullptr, teardown},
    {"retrogradVersion", kMemory, nothing, [] { return *retrogradVersion() == '\0' ? 1 : 0; }, nullptr,
     teardown},
    {"retrogradSetParallelFor", kMemory, nothing,
     [] { return int{retrogradSetParallelFor(host_loop, nullptr, nullptr)}; }, own_threads, teardown},
    {"retrogradInitProblem", kMemory, nothing,
     [] { return int{retrogradInitProblem(&problem, sizeof problem, RETROGRAD_CONV_BACKWARD)}; }, nullptr,
     teardown},
    {"retrogradProblemText", kMemory, describe,
     [] { return int{retrogradProblemText(&problem, text, sizeof text, &written.number)}; }, nullptr,
     teardown},
    {"retrogradExplain", kMemory, nothing,
     [] { return int{retrogradExplain(kText, kCpu, text, sizeof text, &written.number)}; }, nullptr,
     teardown},
    {"retrogradCreatePlan", kMemory, describe, [] { return int{retrogradCreatePlan(out(), &problem)}; },
     destroy, teardown},
    {"retrogradCreatePlan", kMemory,
     [] {
       describe();
       problem.groups = 2;
     },
     [] { return int{retrogradCreatePlan(out(), &problem)}; }, nullptr, teardown, RETROGRAD_INVALID_ARGUMENT},
    {"retrogradCreatePlanFromText", kMemory, nothing,
     [] { return int{retrogradCreatePlanFromText(out(), kText, kCpu)}; }, destroy, teardown},
    {"retrogradDestroyPlan", kMemory, with_plan,
     [] {
       const int code = retrogradDestroyPlan(plan);
       if (code == 0) plan = nullptr;
       return code;
     },
     nullptr, teardown},
    {"retrogradGetWorkspaceSize", kMemory, with_plan,
     [] { return int{retrogradGetWorkspaceSize(plan, &written.number)}; }, nullptr, teardown},
    {"retrogradGetPlanCost", kMemory, with_plan,
     [] { return int{retrogradGetPlanCost(plan, reinterpret_cast<double*>(&written.number))}; }, nullptr,
     teardown},
    {"retrogradDescribePlan", kMemory, with_plan,
     [] { return int{retrogradDescribePlan(plan, text, sizeof text, &written.number)}; }, nullptr, teardown},
    {"retrogradGetPlanTensor", kMemory, with_plan,
     [] {
       retrogradTensor_t found;
       return int{retrogradGetPlanTensor(plan, RETROGRAD_GRAD_BIAS, &found)};
     },
     nullptr, teardown},
    {"retrogradExecute", kMemory, with_plan,
     [] { return int{retrogradExecute(plan, &addresses, workspace, workspace_size, nullptr)}; }, nullptr,
     teardown},
    {"retrogradRun", kMemory, describe, [] { return int{retrogradRun(&problem, nullptr)}; }, nullptr,
     teardown},
    {"retrogradGetDeviceCount", kMemory, nothing,
     [] {
       int32_t count;
       return int{retrogradGetDeviceCount(RETROGRAD_CPU, &count)};
     },
     nullptr, teardown},
    {"retrogradDescribeDevice", kMemory, nothing,
     [] { return int{retrogradDescribeDevice(kCpu, text, sizeof text, &written.number)}; }, nullptr,
     teardown},
};

}  // namespace

std::span<const ExportedCall> exported_retrograd_calls() { return kCalls; }

}  // namespace retrograd::test
