// SPDX-License-Identifier: Apache-2.0
// The infiniop objects of one call.
#include "tools/bench/infini_call.h"

#include <vector>

#include "retrograd/retrograd.h"

namespace retrograd::tools {
namespace {

Status checked(infiniStatus_t status) {
  if (status == INFINI_STATUS_SUCCESS) return Status::ok();
  return {Code::kInternal, retrogradGetLastError()};
}

infiniDtype_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return INFINI_DTYPE_F32;
    case DType::kF16:
      return INFINI_DTYPE_F16;
    case DType::kBF16:
      return INFINI_DTYPE_BF16;
    case DType::kHiF8:
    case DType::kE4M3:
      break;
  }
  return INFINI_DTYPE_F8;
}

using TensorDescriptor =
    std::unique_ptr<InfiniopTensorDescriptor, infiniStatus_t (*)(infiniopTensorDescriptor_t)>;

Result<TensorDescriptor> describe(const problem::TensorView& view) {
  const std::vector<size_t> shape(view.shape.begin(), view.shape.end());
  const std::vector<ptrdiff_t> strides(view.strides.begin(), view.strides.end());
  infiniopTensorDescriptor_t made = nullptr;
  RG_CHECK(checked(infiniopCreateTensorDescriptor(&made, shape.size(), shape.data(), strides.data(),
                                                  type_of(view.dtype))));
  return TensorDescriptor(made, infiniopDestroyTensorDescriptor);
}

}  // namespace

Result<InfiniCall> InfiniCall::make(const problem::ConvRequest& request, const engines::Bindings& bindings) {
  if (request.transposed || request.padding.size() != request.stride.size())
    return Status(Code::kInvalidArgument, "infiniop has no transposed form and no padding by the end");
  InfiniCall call;
  call.bindings_ = bindings;
  RG_CHECK(checked(infinirtInit()));
  RG_CHECK(checked(infinirtSetDevice(INFINI_DEVICE_CPU, 0)));
  infiniopHandle_t handle = nullptr;
  RG_CHECK(checked(infiniopCreateHandle(&handle)));
  call.handle_.reset(handle);
  infinirtStream_t stream = nullptr;
  RG_CHECK(checked(infinirtStreamCreate(&stream)));
  call.stream_.reset(stream);
  RG_TRY(const TensorDescriptor grad_output, describe(request.grad_output));
  RG_TRY(const TensorDescriptor input, describe(request.input));
  RG_TRY(const TensorDescriptor weight, describe(request.weight));
  std::vector<int64_t> pads = request.padding, strides = request.stride, dilations = request.dilation;
  infiniopConvBackwardDescriptor_t descriptor = nullptr;
  RG_CHECK(checked(infiniopCreateConvBackwardDescriptor(
      handle, &descriptor, grad_output.get(), input.get(), weight.get(), nullptr, pads.data(), strides.data(),
      dilations.data(), static_cast<size_t>(request.groups))));
  call.descriptor_.reset(descriptor);
  RG_CHECK(checked(infiniopGetConvBackwardWorkspaceSize(descriptor, &call.workspace_bytes_)));
  return call;
}

Status InfiniCall::start(void* workspace, void* stream) {
  using problem::Operand;
  return checked(infiniopConvBackward(descriptor_.get(), workspace, workspace_bytes_,
                                      bindings_[Operand::kGradInput], bindings_[Operand::kGradWeight],
                                      bindings_[Operand::kGradBias], bindings_[Operand::kGradOutput],
                                      bindings_[Operand::kInput], bindings_[Operand::kWeight], stream));
}

Status InfiniCall::run(void* workspace) { return start(workspace, nullptr); }

Status InfiniCall::run_on_stream(void* workspace) {
  RG_CHECK(start(workspace, stream_.get()));
  return checked(infinirtStreamSynchronize(stream_.get()));
}

}  // namespace retrograd::tools
