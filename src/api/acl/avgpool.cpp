// SPDX-License-Identifier: Apache-2.0
// aclnnAvgPool2d and 3d, aclnnAvgPool2dBackward and 3dBackward: their arguments into an AvgPoolRequest.

#include "aclnnop/aclnn_avgpool2d.h"
#include "aclnnop/aclnn_avgpool2d_backward.h"
#include "aclnnop/aclnn_avgpool3d.h"
#include "aclnnop/aclnn_avgpool3d_backward.h"
#include "api/acl/execute.h"
#include "api/acl/guard.h"
#include "api/acl/phase_one.h"

using namespace retrograd;
using namespace retrograd::api::acl;
using problem::Operand;

namespace {

struct Arguments {
  const aclTensor *grad_output, *self;  // grad_output: not of a forward operator
  const aclIntArray *kernel_size, *stride, *padding;
  bool ceil_mode, count_include_pad;
  int64_t divisor_override, math_mode;
  const aclTensor* result;
  uint64_t* workspace_size;
  aclOpExecutor** executor;
};

struct Variant {
  const char* name;
  bool forward;
  const char *stride, *padding, *result;  // what the prototype calls them
  int spatial_rank;
  TensorRules rules;
};

constexpr Variant k2d{"aclnnAvgPool2d", true, "strides", "paddings", "out", 2, kPool2dRules},
    k3d{"aclnnAvgPool3d", true, "stride", "padding", "out", 3, kPool3dRules},
    k2dBackward{"aclnnAvgPool2dBackward", false, "stride", "padding", "gradInput", 2, kPool2dRules},
    k3dBackward{"aclnnAvgPool3dBackward", false, "stride", "padding", "output", 3, kPool3dRules};

Status read_tensors(PhaseOne& call, const Variant& variant, const Arguments& a,
                    problem::AvgPoolRequest& request) {
  const TensorRules& rules = variant.rules;
  if (variant.forward) {
    RG_TRY(request.input, call.input(a.self, "self", Operand::kInput, rules));
    RG_TRY(request.grad_output, call.output(a.result, variant.result, Operand::kOutput, rules));
    request.names = {variant.result, "self", "", "kernelSize", variant.stride, variant.padding};
    return Status::ok();
  }
  RG_TRY(request.grad_output, call.input(a.grad_output, "gradOutput", Operand::kGradOutput, rules));
  RG_TRY(request.input, call.input(a.self, "self", std::nullopt, rules));
  RG_TRY(request.grad_input, call.output(a.result, variant.result, Operand::kGradInput, rules));
  request.names = {"gradOutput", "self", variant.result, "kernelSize", variant.stride, variant.padding};
  return Status::ok();
}

aclnnStatus phase_one(const Variant& variant, const Arguments& a) {
  return guard_operator(variant.name, [&]() -> Status {
    if (!variant.forward) RG_CHECK(not_null(a.grad_output, "gradOutput"));
    RG_CHECK(none_null({{a.self, "self"},
                        {a.kernel_size, "kernelSize"},
                        {a.stride, variant.stride},
                        {a.padding, variant.padding},
                        {a.result, variant.result},
                        {a.workspace_size, "workspaceSize"},
                        {a.executor, "executor"}}));
    if (a.math_mode < 0 || a.math_mode > 3)
      return Status(Code::kInvalidArgument, "cubeMathType is {}, expected 0 to 3", a.math_mode);
    PhaseOne call(variant.name);
    problem::AvgPoolRequest request;
    request.forward = variant.forward;
    request.ceil_mode = a.ceil_mode;
    request.count_include_pad = a.count_include_pad;
    request.divisor_override = a.divisor_override;
    request.spatial_rank = variant.spatial_rank;
    RG_CHECK(read_tensors(call, variant, a, request));
    RG_CHECK(read_arrays({{a.kernel_size, "kernelSize", &request.kernel},
                          {a.stride, variant.stride, &request.stride},
                          {a.padding, variant.padding, &request.padding}}));
    return call.finish(std::move(request), a.workspace_size, a.executor);
  });
}

}  // namespace

aclnnStatus aclnnAvgPool2dGetWorkspaceSize(const aclTensor* self, const aclIntArray* kernelSize,
                                           const aclIntArray* strides, const aclIntArray* paddings,
                                           const bool ceilMode, const bool countIncludePad,
                                           const int64_t divisorOverride, const int8_t cubeMathType,
                                           aclTensor* out, uint64_t* workspaceSize,
                                           aclOpExecutor** executor) {
  return phase_one(k2d, {nullptr, self, kernelSize, strides, paddings, ceilMode, countIncludePad,
                         divisorOverride, cubeMathType, out, workspaceSize, executor});
}

aclnnStatus aclnnAvgPool3dGetWorkspaceSize(const aclTensor* self, const aclIntArray* kernelSize,
                                           const aclIntArray* stride, const aclIntArray* padding,
                                           bool ceilMode, bool countIncludePad, int64_t divisorOverride,
                                           aclTensor* out, uint64_t* workspaceSize,
                                           aclOpExecutor** executor) {
  return phase_one(k3d, {nullptr, self, kernelSize, stride, padding, ceilMode, countIncludePad,
                         divisorOverride, 0, out, workspaceSize, executor});
}

aclnnStatus aclnnAvgPool2dBackwardGetWorkspaceSize(const aclTensor* gradOutput, const aclTensor* self,
                                                   const aclIntArray* kernelSize, const aclIntArray* stride,
                                                   const aclIntArray* padding, bool ceilMode,
                                                   bool countIncludePad, int64_t divisorOverride,
                                                   int8_t cubeMathType, aclTensor* gradInput,
                                                   uint64_t* workspaceSize, aclOpExecutor** executor) {
  return phase_one(k2dBackward, {gradOutput, self, kernelSize, stride, padding, ceilMode, countIncludePad,
                                 divisorOverride, cubeMathType, gradInput, workspaceSize, executor});
}

aclnnStatus aclnnAvgPool3dBackwardGetWorkspaceSize(const aclTensor* gradOutput, const aclTensor* self,
                                                   const aclIntArray* kernelSize, const aclIntArray* stride,
                                                   const aclIntArray* padding, bool ceilMode,
                                                   bool countIncludePad, int64_t divisorOverride,
                                                   aclTensor* output, uint64_t* workspaceSize,
                                                   aclOpExecutor** executor) {
  return phase_one(k3dBackward, {gradOutput, self, kernelSize, stride, padding, ceilMode, countIncludePad,
                                 divisorOverride, 0, output, workspaceSize, executor});
}

aclnnStatus aclnnAvgPool2d(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                           aclrtStream stream) {
  return execute(k2d.name, workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnAvgPool3d(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                           aclrtStream stream) {
  return execute(k3d.name, workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnAvgPool2dBackward(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                   const aclrtStream stream) {
  return execute(k2dBackward.name, workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnAvgPool3dBackward(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                   const aclrtStream stream) {
  return execute(k3dBackward.name, workspace, workspaceSize, executor, stream);
}
