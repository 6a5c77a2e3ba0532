// SPDX-License-Identifier: Apache-2.0
// The aclnn objects of one call.
#include "tools/bench/acl_call.h"

#include "aclnnop/aclnn_convolution_backward.h"
#include "support/acl_types.h"

namespace retrograd::tools {
namespace {

Status failure() {
  const char* message = aclGetRecentErrMsg();
  return {Code::kInternal, message != nullptr ? message : "an acl call failed without a message"};
}
Status checked(int status) { return status == ACL_SUCCESS ? Status::ok() : failure(); }

aclFormat format_of(int rank) {
  return rank == 3   ? ACL_FORMAT_NCL
         : rank == 4 ? ACL_FORMAT_NCHW
         : rank == 5 ? ACL_FORMAT_NCDHW
                     : ACL_FORMAT_ND;
}

// For the whole process: a thread's device needs setting once.
Status set_up() {
  static const Status done = [] {
    const int initialised = aclInit(nullptr);
    return initialised == ACL_SUCCESS ? checked(aclrtSetDevice(0)) : failure();
  }();
  return done;
}

}  // namespace

AclCall::Tensor AclCall::tensor(const std::optional<problem::TensorView>& view, const void* address) {
  if (!view) return {nullptr, aclDestroyTensor};
  const auto rank = view->shape.rank();
  return {aclCreateTensor(view->shape.begin(), static_cast<uint64_t>(rank), test::acl_type(view->dtype),
                          view->strides.begin(), 0, format_of(rank), nullptr, 0, const_cast<void*>(address)),
          aclDestroyTensor};
}

AclCall::Ints AclCall::ints(const std::vector<int64_t>& values) {
  return {aclCreateIntArray(values.data(), values.size()), aclDestroyIntArray};
}

Result<AclCall> AclCall::make(const problem::ConvRequest& request, const engines::Bindings& bindings) {
  using problem::Operand;
  RG_CHECK(set_up());
  AclCall call;
  call.grad_output_ = tensor(request.grad_output, bindings[Operand::kGradOutput]);
  call.input_ = tensor(request.input, bindings[Operand::kInput]);
  call.weight_ = tensor(request.weight, bindings[Operand::kWeight]);
  call.grad_input_ = tensor(request.grad_input, bindings[Operand::kGradInput]);
  call.grad_weight_ = tensor(request.grad_weight, bindings[Operand::kGradWeight]);
  call.grad_bias_ = tensor(request.grad_bias, bindings[Operand::kGradBias]);
  call.bias_sizes_ = ints({request.grad_output.shape[1]});
  call.stride_ = ints(request.stride);
  call.padding_ = ints(request.padding);
  call.dilation_ = ints(request.dilation);
  call.output_padding_ = ints(request.output_padding);
  const bool mask[] = {request.grad_input.has_value(), request.grad_weight.has_value(),
                       request.grad_bias.has_value()};
  call.mask_.reset(aclCreateBoolArray(mask, 3));
  call.transposed_ = request.transposed;
  call.groups_ = static_cast<int>(request.groups);
  call.math_mode_ = static_cast<int8_t>(request.math.mode);
  aclrtStream stream = nullptr;
  RG_CHECK(checked(aclrtCreateStream(&stream)));
  call.stream_.reset(stream);
  return call;
}

Status AclCall::phase_one() {
  return checked(aclnnConvolutionBackwardGetWorkspaceSize(
      grad_output_.get(), input_.get(), weight_.get(), bias_sizes_.get(), stride_.get(), padding_.get(),
      dilation_.get(), transposed_, output_padding_.get(), groups_, mask_.get(), math_mode_,
      grad_input_.get(), grad_weight_.get(), grad_bias_.get(), &workspace_bytes_, &executor_));
}

Status AclCall::phase_two(void* workspace) {
  return checked(aclnnConvolutionBackward(workspace, workspace_bytes_, executor_, stream_.get()));
}

Status AclCall::synchronize() { return checked(aclrtSynchronizeStream(stream_.get())); }

Status AclCall::keep_executor() { return checked(aclSetAclOpExecutorRepeatable(executor_)); }

Status AclCall::release_executor() { return checked(aclDestroyAclOpExecutor(executor_)); }

}  // namespace retrograd::tools
