// SPDX-License-Identifier: Apache-2.0
// aclnnAvgPool2d and aclnnAvgPool3d: their arguments into an AvgPoolRequest.
#include <fmt/format.h>

#include <utility>

#include "aclnnop/aclnn_avgpool2d.h"
#include "aclnnop/aclnn_avgpool3d.h"
#include "api/acl/execute.h"
#include "api/acl/guard.h"
#include "api/acl/phase_one.h"

using namespace retrograd;
using namespace retrograd::api::acl;
using problem::Operand;

namespace {

struct Arguments {
  const aclTensor* self;
  const aclIntArray *kernel_size, *stride, *padding;
  const aclTensor* out;
  uint64_t* workspace_size;
  aclOpExecutor** executor;
};

struct Variant {
  const char* name;
  const char *stride, *padding;  // what the prototype calls them
  int spatial_rank;
  TensorRules rules;
};

constexpr Variant k2d{"aclnnAvgPool2d", "strides", "paddings", 2, kPool2dRules};
constexpr Variant k3d{"aclnnAvgPool3d", "stride", "padding", 3, kPool3dRules};

Status phase_one(const Variant& variant, const Arguments& a, int64_t math_mode,
                 problem::AvgPoolRequest request) {
  RG_CHECK(none_null({{a.self, "self"},
                      {a.kernel_size, "kernelSize"},
                      {a.stride, variant.stride},
                      {a.padding, variant.padding},
                      {a.out, "out"},
                      {a.workspace_size, "workspaceSize"},
                      {a.executor, "executor"}}));
  if (math_mode < 0 || math_mode > 3)
    return Status(Code::kInvalidArgument, fmt::format("cubeMathType is {}, expected 0 to 3", math_mode));
  PhaseOne call(variant.name);
  request.forward = true;
  RG_TRY(request.input, call.input(a.self, "self", Operand::kInput, variant.rules));
  RG_TRY(request.grad_output, call.output(a.out, "out", Operand::kOutput, variant.rules));
  RG_CHECK(read_arrays({{a.kernel_size, "kernelSize", &request.kernel},
                        {a.stride, variant.stride, &request.stride},
                        {a.padding, variant.padding, &request.padding}}));
  request.spatial_rank = variant.spatial_rank;
  request.names = {"out", "self", "", "kernelSize", variant.stride, variant.padding};
  return call.finish(std::move(request), a.workspace_size, a.executor);
}

}  // namespace

aclnnStatus aclnnAvgPool2dGetWorkspaceSize(const aclTensor* self, const aclIntArray* kernelSize,
                                           const aclIntArray* strides, const aclIntArray* paddings,
                                           const bool ceilMode, const bool countIncludePad,
                                           const int64_t divisorOverride, const int8_t cubeMathType,
                                           aclTensor* out, uint64_t* workspaceSize,
                                           aclOpExecutor** executor) {
  return guard_operator(k2d.name, [&]() -> Status {
    problem::AvgPoolRequest request;
    request.ceil_mode = ceilMode;
    request.count_include_pad = countIncludePad;
    request.divisor_override = divisorOverride;
    return phase_one(k2d, {self, kernelSize, strides, paddings, out, workspaceSize, executor}, cubeMathType,
                     std::move(request));
  });
}

aclnnStatus aclnnAvgPool3dGetWorkspaceSize(const aclTensor* self, const aclIntArray* kernelSize,
                                           const aclIntArray* stride, const aclIntArray* padding,
                                           bool ceilMode, bool countIncludePad, int64_t divisorOverride,
                                           aclTensor* out, uint64_t* workspaceSize,
                                           aclOpExecutor** executor) {
  return guard_operator(k3d.name, [&]() -> Status {
    problem::AvgPoolRequest request;
    request.ceil_mode = ceilMode;
    request.count_include_pad = countIncludePad;
    request.divisor_override = divisorOverride;
    return phase_one(k3d, {self, kernelSize, stride, padding, out, workspaceSize, executor}, 0,
                     std::move(request));
  });
}

aclnnStatus aclnnAvgPool2d(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                           aclrtStream stream) {
  return execute(k2d.name, workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnAvgPool3d(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                           aclrtStream stream) {
  return execute(k3d.name, workspace, workspaceSize, executor, stream);
}
