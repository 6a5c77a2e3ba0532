// SPDX-License-Identifier: Apache-2.0
// aclnnConvolution and aclnnConvTbc: their arguments into requests.
#include <utility>

#include "aclnnop/aclnn_convolution.h"
#include "api/acl/execute.h"
#include "api/acl/guard.h"
#include "api/acl/phase_one.h"
#include "base/settings.h"

using namespace retrograd;
using namespace retrograd::api::acl;
using problem::Operand;

namespace {

constexpr char kConv[] = "aclnnConvolution", kTbc[] = "aclnnConvTbc";
constexpr problem::ConvNames kConvNames{
    .grad_output = "output", .output_padding = "outputPadding", .math_mode = "cubeMathType"};
constexpr problem::ConvNames kTbcNames{
    .grad_output = "output", .input = "self", .padding = "pad", .math_mode = "cubeMathType"};

}  // namespace

aclnnStatus aclnnConvolutionGetWorkspaceSize(const aclTensor* input, const aclTensor* weight,
                                             const aclTensor* bias, const aclIntArray* stride,
                                             const aclIntArray* padding, const aclIntArray* dilation,
                                             bool transposed, const aclIntArray* outputPadding,
                                             const int64_t groups, aclTensor* output, int8_t cubeMathType,
                                             uint64_t* workspaceSize, aclOpExecutor** executor) {
  return guard_operator(kConv, [&]() -> Status {
    RG_CHECK(none_null({{input, "input"},
                        {weight, "weight"},
                        {stride, "stride"},
                        {padding, "padding"},
                        {dilation, "dilation"},
                        {outputPadding, "outputPadding"},
                        {output, "output"},
                        {workspaceSize, "workspaceSize"},
                        {executor, "executor"}}));
    PhaseOne call(kConv);
    problem::ConvRequest request;
    request.forward = true;
    request.transposed = transposed;
    request.groups = groups;
    request.rules.max_groups = problem::kAclnnMaxGroups;
    request.math = math_of(cubeMathType);
    request.math.winograd = settings().winograd;
    request.names = kConvNames;
    RG_TRY(request.input, call.input(input, "input", Operand::kInput, kConvRules));
    RG_TRY(request.weight, call.input(weight, "weight", Operand::kWeight, kConvRules));
    RG_TRY(request.bias, call.optional_input(bias, "bias", Operand::kBias,
                                             transposed ? kTransposedBiasRules : kConvBiasRules));
    RG_TRY(request.grad_output, call.output(output, "output", Operand::kOutput, kConvRules));
    RG_CHECK(read_arrays({{stride, "stride", &request.stride},
                          {padding, "padding", &request.padding},
                          {dilation, "dilation", &request.dilation},
                          {outputPadding, "outputPadding", &request.output_padding}}));
    if (request.math.product)
      request.for_products.formats = {
          .grad_output = format_of(output), .input = format_of(input), .weight = format_of(weight)};
    return call.finish(std::move(request), workspaceSize, executor);
  });
}

aclnnStatus aclnnConvolution(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                             aclrtStream stream) {
  return execute(kConv, workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnConvTbcGetWorkspaceSize(const aclTensor* self, const aclTensor* weight,
                                         const aclTensor* bias, const int64_t pad, aclTensor* output,
                                         int8_t cubeMathType, uint64_t* workspaceSize,
                                         aclOpExecutor** executor) {
  return guard_operator(kTbc, [&]() -> Status {
    RG_CHECK(none_null({{self, "self"},
                        {weight, "weight"},
                        {bias, "bias"},
                        {output, "output"},
                        {workspaceSize, "workspaceSize"},
                        {executor, "executor"}}));
    PhaseOne call(kTbc);
    problem::ConvTbcRequest request;
    request.forward = true;
    request.pad = pad;
    request.math = math_of(cubeMathType);
    request.names = kTbcNames;
    RG_TRY(request.input, call.input(self, "self", Operand::kInput, kConvTbcRules));
    RG_TRY(request.weight, call.input(weight, "weight", Operand::kWeight, kConvTbcRules));
    RG_TRY(request.bias, call.input(bias, "bias", Operand::kBias, kConvTbcRules));
    RG_TRY(request.grad_output, call.output(output, "output", Operand::kOutput, kConvTbcRules));
    return call.finish(std::move(request), workspaceSize, executor);
  });
}

aclnnStatus aclnnConvTbc(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                         aclrtStream stream) {
  return execute(kTbc, workspace, workspaceSize, executor, stream);
}
