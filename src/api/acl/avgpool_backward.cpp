// SPDX-License-Identifier: Apache-2.0
// aclnnAvgPool2dBackward and aclnnAvgPool3dBackward: their arguments into an AvgPoolRequest.
#include <fmt/format.h>

#include "aclnnop/aclnn_avgpool2d_backward.h"
#include "aclnnop/aclnn_avgpool3d_backward.h"
#include "api/acl/execute.h"
#include "api/acl/guard.h"
#include "api/acl/phase_one.h"

using namespace retrograd;
using namespace retrograd::api::acl;
using problem::Operand;

namespace {

struct Arguments {
  const aclTensor *grad_output, *self;
  const aclIntArray *kernel_size, *stride, *padding;
  const aclTensor* grad_input;
  uint64_t* workspace_size;
  aclOpExecutor** executor;
};

struct Variant {
  const char* name;
  const char* result;  // what the prototype calls grad_input
  int spatial_rank;
  TensorRules rules;
};

constexpr Variant k2d{"aclnnAvgPool2dBackward", "gradInput", 2, kPool2dRules};
constexpr Variant k3d{"aclnnAvgPool3dBackward", "output", 3, kPool3dRules};

Status phase_one(const Variant& variant, const Arguments& a, int64_t math_mode,
                 problem::AvgPoolRequest request) {
  RG_CHECK(none_null({{a.grad_output, "gradOutput"},
                      {a.self, "self"},
                      {a.kernel_size, "kernelSize"},
                      {a.stride, "stride"},
                      {a.padding, "padding"},
                      {a.grad_input, variant.result},
                      {a.workspace_size, "workspaceSize"},
                      {a.executor, "executor"}}));
  if (math_mode < 0 || math_mode > 3)
    return Status(Code::kInvalidArgument, fmt::format("cubeMathType is {}, expected 0 to 3", math_mode));
  PhaseOne call(variant.name);
  RG_TRY(request.grad_output, call.input(a.grad_output, "gradOutput", Operand::kGradOutput, variant.rules));
  RG_TRY(request.input, call.input(a.self, "self", std::nullopt, variant.rules));
  RG_TRY(request.grad_input, call.output(a.grad_input, variant.result, Operand::kGradInput, variant.rules));
  RG_CHECK(read_arrays({{a.kernel_size, "kernelSize", &request.kernel},
                        {a.stride, "stride", &request.stride},
                        {a.padding, "padding", &request.padding}}));
  request.spatial_rank = variant.spatial_rank;
  request.names = {"gradOutput", "self", variant.result, "kernelSize", "stride", "padding"};
  return call.finish(std::move(request), a.workspace_size, a.executor);
}

}  // namespace

aclnnStatus aclnnAvgPool2dBackwardGetWorkspaceSize(const aclTensor* gradOutput, const aclTensor* self,
                                                   const aclIntArray* kernelSize, const aclIntArray* stride,
                                                   const aclIntArray* padding, bool ceilMode,
                                                   bool countIncludePad, int64_t divisorOverride,
                                                   int8_t cubeMathType, aclTensor* gradInput,
                                                   uint64_t* workspaceSize, aclOpExecutor** executor) {
  return guard_operator(k2d.name, [&]() -> Status {
    problem::AvgPoolRequest request;
    request.ceil_mode = ceilMode;
    request.count_include_pad = countIncludePad;
    request.divisor_override = divisorOverride;
    return phase_one(k2d, {gradOutput, self, kernelSize, stride, padding, gradInput, workspaceSize, executor},
                     cubeMathType, std::move(request));
  });
}

aclnnStatus aclnnAvgPool3dBackwardGetWorkspaceSize(const aclTensor* gradOutput, const aclTensor* self,
                                                   const aclIntArray* kernelSize, const aclIntArray* stride,
                                                   const aclIntArray* padding, bool ceilMode,
                                                   bool countIncludePad, int64_t divisorOverride,
                                                   aclTensor* output, uint64_t* workspaceSize,
                                                   aclOpExecutor** executor) {
  return guard_operator(k3d.name, [&]() -> Status {
    problem::AvgPoolRequest request;
    request.ceil_mode = ceilMode;
    request.count_include_pad = countIncludePad;
    request.divisor_override = divisorOverride;
    return phase_one(k3d, {gradOutput, self, kernelSize, stride, padding, output, workspaceSize, executor}, 0,
                     std::move(request));
  });
}

aclnnStatus aclnnAvgPool2dBackward(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                   const aclrtStream stream) {
  return execute(k2d.name, workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnAvgPool3dBackward(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                   const aclrtStream stream) {
  return execute(k3d.name, workspace, workspaceSize, executor, stream);
}
