// SPDX-License-Identifier: Apache-2.0
// aclnnConvTbcBackward: its arguments into a ConvTbcRequest.
#include "aclnnop/aclnn_convolution_backward.h"
#include "api/acl/execute.h"
#include "api/acl/guard.h"
#include "api/acl/phase_one.h"
#include "api/acl/runtime_state.h"
#include "base/settings.h"

using namespace retrograd;
using namespace retrograd::api::acl;
using problem::Operand;

namespace {

constexpr char kName[] = "aclnnConvTbcBackward";
constexpr problem::ConvNames kNames{.grad_output = "self",
                                    .padding = "pad",
                                    .math_mode = "cubeMathType",
                                    .grad_input = "gradInput",
                                    .grad_weight = "gradWeight",
                                    .grad_bias = "gradBias"};

struct Tensors {
  const aclTensor *self, *input, *weight, *bias, *grad_input, *grad_weight, *grad_bias;
};

Status read_tensors(PhaseOne& call, const Tensors& tensors, problem::ConvTbcRequest& request) {
  RG_TRY(request.grad_output, call.input(tensors.self, "self", Operand::kGradOutput, kConvTbcRules));
  RG_TRY(request.input, call.input(tensors.input, "input", Operand::kInput, kConvTbcRules));
  RG_TRY(request.weight, call.input(tensors.weight, "weight", Operand::kWeight, kConvTbcRules));
  RG_TRY(request.bias, call.input(tensors.bias, "bias", std::nullopt, kConvTbcRules));
  RG_TRY(request.grad_input,
         call.output(tensors.grad_input, "gradInput", Operand::kGradInput, kConvTbcRules));
  RG_TRY(request.grad_weight,
         call.output(tensors.grad_weight, "gradWeight", Operand::kGradWeight, kConvTbcGradWeightRules));
  RG_TRY(request.grad_bias, call.output(tensors.grad_bias, "gradBias", Operand::kGradBias, kConvTbcRules));
  return Status::ok();
}

}  // namespace

aclnnStatus aclnnConvTbcBackwardGetWorkspaceSize(const aclTensor* self, const aclTensor* input,
                                                 const aclTensor* weight, const aclTensor* bias, int64_t pad,
                                                 int8_t cubeMathType, aclTensor* gradInput,
                                                 aclTensor* gradWeight, aclTensor* gradBias,
                                                 uint64_t* workspaceSize, aclOpExecutor** executor) {
  return guard_operator(kName, [&]() -> Status {
    RG_CHECK(none_null({{self, "self"},
                        {input, "input"},
                        {weight, "weight"},
                        {bias, "bias"},
                        {gradInput, "gradInput"},
                        {gradWeight, "gradWeight"},
                        {gradBias, "gradBias"},
                        {workspaceSize, "workspaceSize"},
                        {executor, "executor"}}));
    PhaseOne call(kName);
    problem::ConvTbcRequest request;
    request.pad = pad;
    request.math.mode = cubeMathType;
    request.math.hf32_mantissa_bits = settings().hf32_mantissa_bits;
    request.math.product = RuntimeState::instance().product();
    request.names = kNames;
    RG_CHECK(read_tensors(call, {self, input, weight, bias, gradInput, gradWeight, gradBias}, request));
    return call.finish(std::move(request), workspaceSize, executor);
  });
}

aclnnStatus aclnnConvTbcBackward(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                 const aclrtStream stream) {
  return execute(kName, workspace, workspaceSize, executor, stream);
}
