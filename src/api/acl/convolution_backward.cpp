// SPDX-License-Identifier: Apache-2.0
// aclnnConvolutionBackward and aclnnConvTbcBackward: their arguments into requests.
#include <utility>

#include "aclnnop/aclnn_convolution_backward.h"
#include "api/acl/execute.h"
#include "api/acl/guard.h"
#include "api/acl/output_mask.h"
#include "api/acl/phase_one.h"
#include "base/settings.h"
#include "problem/problem.h"

using namespace retrograd;
using namespace retrograd::api::acl;
using problem::Operand;

namespace {

constexpr char kConv[] = "aclnnConvolutionBackward", kTbc[] = "aclnnConvTbcBackward";
constexpr problem::ConvNames kConvNames{.grad_output = "gradOutput",
                                        .output_padding = "outputPadding",
                                        .math_mode = "cubeMathType",
                                        .grad_input = "gradInput",
                                        .grad_weight = "gradWeight",
                                        .grad_bias = "gradBias",
                                        .bias_sizes = "biasSizes"};
constexpr problem::ConvNames kTbcNames{.grad_output = "self",
                                       .padding = "pad",
                                       .math_mode = "cubeMathType",
                                       .grad_input = "gradInput",
                                       .grad_weight = "gradWeight",
                                       .grad_bias = "gradBias"};

}  // namespace

aclnnStatus aclnnConvolutionBackwardGetWorkspaceSize(
    const aclTensor* gradOutput, const aclTensor* input, const aclTensor* weight,
    const aclIntArray* biasSizes, const aclIntArray* stride, const aclIntArray* padding,
    const aclIntArray* dilation, bool transposed, const aclIntArray* outputPadding, int groups,
    const aclBoolArray* outputMask, int8_t cubeMathType, aclTensor* gradInput, aclTensor* gradWeight,
    aclTensor* gradBias, uint64_t* workspaceSize, aclOpExecutor** executor) {
  return guard_operator(kConv, [&]() -> Status {
    RG_CHECK(none_null({{gradOutput, "gradOutput"},
                        {input, "input"},
                        {weight, "weight"},
                        {stride, "stride"},
                        {padding, "padding"},
                        {dilation, "dilation"},
                        {outputPadding, "outputPadding"},
                        {outputMask, "outputMask"},
                        {workspaceSize, "workspaceSize"},
                        {executor, "executor"}}));
    const MaskedArguments out{gradInput, gradWeight, gradBias, biasSizes};
    RG_TRY(const OutputMask mask, read_output_mask(outputMask, out));
    PhaseOne call(kConv);
    problem::ConvRequest request;
    request.transposed = transposed;
    request.groups = groups;
    request.rules.max_groups = problem::kAclnnMaxGroups;
    request.math = math_of(cubeMathType);
    request.math.winograd = settings().winograd;
    request.names = kConvNames;
    RG_TRY(request.grad_output, call.input(gradOutput, "gradOutput", Operand::kGradOutput, kConvRules));
    RG_TRY(request.input, call.input(input, "input", Operand::kInput, kConvRules));
    RG_TRY(request.weight, call.input(weight, "weight", Operand::kWeight, kConvRules));
    RG_CHECK(read_masked_outputs(call, mask, out, request));
    RG_CHECK(read_arrays({{stride, "stride", &request.stride},
                          {padding, "padding", &request.padding},
                          {dilation, "dilation", &request.dilation},
                          {outputPadding, "outputPadding", &request.output_padding}}));
    if (request.math.product) {
      request.for_products.bias_sizes = mask.bias_sizes;
      request.for_products.formats = {format_of(gradOutput), format_of(input), format_of(weight),
                                      mask.grad_input ? format_of(gradInput) : problem::Format::kUnsaid,
                                      mask.grad_weight ? format_of(gradWeight) : problem::Format::kUnsaid};
    }
    const int64_t channels = problem::output_channels(request).value_or(0);
    RG_CHECK(call.finish(std::move(request), workspaceSize, executor));
    judge_bias_sizes(mask, channels, kConv);
    return Status::ok();
  });
}

aclnnStatus aclnnConvolutionBackward(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                     const aclrtStream stream) {
  return execute(kConv, workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnConvTbcBackwardGetWorkspaceSize(const aclTensor* self, const aclTensor* input,
                                                 const aclTensor* weight, const aclTensor* bias, int64_t pad,
                                                 int8_t cubeMathType, aclTensor* gradInput,
                                                 aclTensor* gradWeight, aclTensor* gradBias,
                                                 uint64_t* workspaceSize, aclOpExecutor** executor) {
  return guard_operator(kTbc, [&]() -> Status {
    RG_CHECK(none_null({{self, "self"},
                        {input, "input"},
                        {weight, "weight"},
                        {bias, "bias"},
                        {gradInput, "gradInput"},
                        {gradWeight, "gradWeight"},
                        {gradBias, "gradBias"},
                        {workspaceSize, "workspaceSize"},
                        {executor, "executor"}}));
    PhaseOne call(kTbc);
    problem::ConvTbcRequest request;
    request.pad = pad;
    request.math = math_of(cubeMathType);
    request.names = kTbcNames;
    const TensorRules& rules = kConvTbcRules;
    RG_TRY(request.grad_output, call.input(self, "self", Operand::kGradOutput, rules));
    RG_TRY(request.input, call.input(input, "input", Operand::kInput, rules));
    RG_TRY(request.weight, call.input(weight, "weight", Operand::kWeight, rules));
    RG_TRY(request.bias, call.input(bias, "bias", std::nullopt, rules));
    RG_TRY(request.grad_input, call.output(gradInput, "gradInput", Operand::kGradInput, rules));
    RG_TRY(request.grad_weight,
           call.output(gradWeight, "gradWeight", Operand::kGradWeight, kConvTbcGradWeightRules));
    RG_TRY(request.grad_bias, call.output(gradBias, "gradBias", Operand::kGradBias, rules));
    return call.finish(std::move(request), workspaceSize, executor);
  });
}

aclnnStatus aclnnConvTbcBackward(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                 const aclrtStream stream) {
  return execute(kTbc, workspace, workspaceSize, executor, stream);
}
