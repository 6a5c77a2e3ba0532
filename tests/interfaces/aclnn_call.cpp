// SPDX-License-Identifier: Apache-2.0
// Requests as aclnn calls.
#include <functional>

#include "acl/acl.h"
#include "aclnnop/aclnn_avgpool2d.h"
#include "aclnnop/aclnn_avgpool2d_backward.h"
#include "aclnnop/aclnn_avgpool3d.h"
#include "aclnnop/aclnn_avgpool3d_backward.h"
#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "calls.h"
#include "support/acl_types.h"

namespace retrograd::test {
namespace {

using problem::Operand;

aclFormat acl_format(int rank) {
  return rank == 4 ? ACL_FORMAT_NCHW : rank == 5 ? ACL_FORMAT_NCDHW : ACL_FORMAT_ND;
}

// Handles of one call; they die right after phase two, as the interface allows.
class AclnnCall {
 public:
  ~AclnnCall() {
    for (const aclTensor* tensor : tensors_) aclDestroyTensor(tensor);
    for (const aclIntArray* array : arrays_) aclDestroyIntArray(array);
    if (mask_ != nullptr) aclDestroyBoolArray(mask_);
  }
  aclTensor* tensor(const problem::TensorView& view, void* data) {
    return tensor(view, data, acl_format(view.shape.rank()));
  }
  aclTensor* tensor(const problem::TensorView& view, void* data, aclFormat format) {
    tensors_.push_back(aclCreateTensor(view.shape.begin(), static_cast<uint64_t>(view.shape.rank()),
                                       acl_type(view.dtype), view.strides.begin(), 0, format, nullptr, 0,
                                       data));
    return tensors_.back();
  }
  aclTensor* tensor(std::optional<HostTensor>& host) {
    return host ? tensor(host->view(), host->count() > 0 ? host->data() : nullptr) : nullptr;
  }
  const aclIntArray* array(const std::vector<int64_t>& values) {
    arrays_.push_back(aclCreateIntArray(values.data(), values.size()));
    return arrays_.back();
  }
  const aclBoolArray* mask(bool input, bool weight, bool bias) {
    const bool values[] = {input, weight, bias};
    return mask_ = aclCreateBoolArray(values, 3);
  }

 private:
  std::vector<aclTensor*> tensors_;
  std::vector<const aclIntArray*> arrays_;
  const aclBoolArray* mask_ = nullptr;
};

using PhaseTwo = aclnnStatus (*)(void*, uint64_t, aclOpExecutor*, const aclrtStream);

struct Prepared {
  aclnnStatus status = 0;
  uint64_t workspace_size = 0;
  aclOpExecutor* executor = nullptr;
  PhaseTwo phase_two = nullptr;
};

Prepared prepare(const problem::ConvRequest& r, Operands& o, AclnnCall& call) {
  Prepared p;
  if (r.forward) {
    p.phase_two = aclnnConvolution;
    p.status = aclnnConvolutionGetWorkspaceSize(
        call.tensor(o[Operand::kInput]), call.tensor(o[Operand::kWeight]), call.tensor(o[Operand::kBias]),
        call.array(r.stride), call.array(r.padding), call.array(r.dilation), r.transposed,
        call.array(r.output_padding), r.groups, call.tensor(o[Operand::kOutput]),
        static_cast<int8_t>(r.math.mode), &p.workspace_size, &p.executor);
    return p;
  }
  p.phase_two = aclnnConvolutionBackward;
  p.status = aclnnConvolutionBackwardGetWorkspaceSize(
      call.tensor(o[Operand::kGradOutput]), call.tensor(o[Operand::kInput]), call.tensor(o[Operand::kWeight]),
      call.array({r.grad_output.shape[1]}), call.array(r.stride), call.array(r.padding),
      call.array(r.dilation), r.transposed, call.array(r.output_padding), static_cast<int>(r.groups),
      call.mask(r.grad_input.has_value(), r.grad_weight.has_value(), r.grad_bias.has_value()),
      static_cast<int8_t>(r.math.mode), call.tensor(o[Operand::kGradInput]),
      call.tensor(o[Operand::kGradWeight]), call.tensor(o[Operand::kGradBias]), &p.workspace_size,
      &p.executor);
  return p;
}

Prepared prepare(const problem::ConvTbcRequest& r, Operands& o, AclnnCall& call) {
  Prepared p;
  if (r.forward) {
    p.phase_two = aclnnConvTbc;
    p.status =
        aclnnConvTbcGetWorkspaceSize(call.tensor(o[Operand::kInput]), call.tensor(o[Operand::kWeight]),
                                     call.tensor(o[Operand::kBias]), r.pad, call.tensor(o[Operand::kOutput]),
                                     static_cast<int8_t>(r.math.mode), &p.workspace_size, &p.executor);
    return p;
  }
  p.phase_two = aclnnConvTbcBackward;
  p.status = aclnnConvTbcBackwardGetWorkspaceSize(
      call.tensor(o[Operand::kGradOutput]), call.tensor(o[Operand::kInput]), call.tensor(o[Operand::kWeight]),
      call.tensor(r.bias, nullptr), r.pad, static_cast<int8_t>(r.math.mode),
      call.tensor(o[Operand::kGradInput]), call.tensor(o[Operand::kGradWeight]),
      call.tensor(o[Operand::kGradBias]), &p.workspace_size, &p.executor);
  return p;
}

int spatial_axes(const problem::AvgPoolRequest& r) {
  return r.spatial_rank > 0 ? r.spatial_rank : r.input.shape.rank() - 2;
}

Prepared prepare(const problem::AvgPoolRequest& r, Operands& o, AclnnCall& call) {
  Prepared p;
  const bool flat = spatial_axes(r) == 2;
  // Three spatial axes without a batch have the rank of NCHW.
  const aclFormat format = flat ? acl_format(r.input.shape.rank()) : ACL_FORMAT_NCDHW;
  const auto tensor = [&](Operand operand) {
    HostTensor& host = *o[operand];
    return call.tensor(host.view(), host.count() > 0 ? host.data() : nullptr, format);
  };
  const aclIntArray *kernel = call.array(r.kernel), *stride = call.array(r.stride),
                    *padding = call.array(r.padding);
  if (r.forward) {
    const aclTensor* self = tensor(Operand::kInput);
    aclTensor* out = tensor(Operand::kOutput);
    p.phase_two = flat ? aclnnAvgPool2d : aclnnAvgPool3d;
    p.status =
        flat ? aclnnAvgPool2dGetWorkspaceSize(self, kernel, stride, padding, r.ceil_mode, r.count_include_pad,
                                              r.divisor_override, 0, out, &p.workspace_size, &p.executor)
             : aclnnAvgPool3dGetWorkspaceSize(self, kernel, stride, padding, r.ceil_mode, r.count_include_pad,
                                              r.divisor_override, out, &p.workspace_size, &p.executor);
    return p;
  }
  const aclTensor* grad_output = tensor(Operand::kGradOutput);
  const aclTensor* self = call.tensor(r.input, nullptr, format);
  aclTensor* grad_input = tensor(Operand::kGradInput);
  p.phase_two = flat ? aclnnAvgPool2dBackward : aclnnAvgPool3dBackward;
  p.status = flat ? aclnnAvgPool2dBackwardGetWorkspaceSize(
                        grad_output, self, kernel, stride, padding, r.ceil_mode, r.count_include_pad,
                        r.divisor_override, 0, grad_input, &p.workspace_size, &p.executor)
                  : aclnnAvgPool3dBackwardGetWorkspaceSize(
                        grad_output, self, kernel, stride, padding, r.ceil_mode, r.count_include_pad,
                        r.divisor_override, grad_input, &p.workspace_size, &p.executor);
  return p;
}

CallResult failure(const char* what) {
  const char* message = aclGetRecentErrMsg();
  return {std::string(what) + ": " + (message != nullptr ? message : "no message")};
}

}  // namespace

bool aclnn_offers(const problem::Request& request) {
  if (const auto* pool = std::get_if<problem::AvgPoolRequest>(&request))
    return !pool->uncorrected_ceil_sizes && spatial_axes(*pool) >= 2;
  const auto* conv = std::get_if<problem::ConvRequest>(&request);
  if (conv == nullptr) return true;
  if (pads_beyond_stride(*conv)) return false;
  return conv->input.shape.rank() == 4 || conv->padding.size() == conv->stride.size();
}

CallResult call_aclnn(const problem::Request& request, Operands& operands) {
  aclrtStream stream = nullptr;
  void* workspace = nullptr;
  Prepared p;
  {
    AclnnCall call;
    p = std::visit([&](const auto& r) { return prepare(r, operands, call); }, request);
    if (p.status != 0) return failure("phase one");
    if (aclrtCreateStream(&stream) != 0) return failure("aclrtCreateStream");
    if (p.workspace_size > 0 && aclrtMalloc(&workspace, p.workspace_size, ACL_MEM_MALLOC_HUGE_FIRST) != 0)
      return failure("aclrtMalloc");
    if (p.phase_two(workspace, p.workspace_size, p.executor, stream) != 0) return failure("phase two");
  }
  if (aclrtSynchronizeStream(stream) != 0) return failure("aclrtSynchronizeStream");
  if (aclrtDestroyStream(stream) != 0) return failure("aclrtDestroyStream");
  if (workspace != nullptr && aclrtFree(workspace) != 0) return failure("aclrtFree");
  return {"", p.workspace_size};
}

}  // namespace retrograd::test
