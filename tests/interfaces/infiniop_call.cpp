// SPDX-License-Identifier: Apache-2.0
// Requests as infiniop calls: the documented create calls where they suffice, our extensions where they do
// not.
#include <functional>

#include "calls.h"
#include "infiniop.h"
#include "infinirt.h"
#include "retrograd/infiniop_ext.h"
#include "retrograd/retrograd.h"

namespace retrograd::test {
namespace {

using problem::Operand;

infiniDtype_t infini_type(DType dtype) {
  return dtype == DType::kF32   ? INFINI_DTYPE_F32
         : dtype == DType::kF16 ? INFINI_DTYPE_F16
                                : INFINI_DTYPE_BF16;
}

// Handle and descriptors of one call.
class InfiniopCall {
 public:
  InfiniopCall() { (void)infiniopCreateHandle(&handle_); }
  ~InfiniopCall() {
    for (infiniopTensorDescriptor_t descriptor : descriptors_) infiniopDestroyTensorDescriptor(descriptor);
    infiniopDestroyHandle(handle_);
  }
  infiniopHandle_t handle() const { return handle_; }
  infiniopTensorDescriptor_t describe(const problem::TensorView& view) {
    const std::vector<size_t> shape(view.shape.begin(), view.shape.end());
    const std::vector<ptrdiff_t> strides(view.strides.begin(), view.strides.end());
    infiniopTensorDescriptor_t descriptor = nullptr;
    (void)infiniopCreateTensorDescriptor(&descriptor, shape.size(), shape.data(), strides.data(),
                                         infini_type(view.dtype));
    descriptors_.push_back(descriptor);
    return descriptor;
  }

 private:
  infiniopHandle_t handle_ = nullptr;
  std::vector<infiniopTensorDescriptor_t> descriptors_;
};

CallResult failure(const char* what, infiniStatus_t status) {
  return {std::string(what) + " returned " + std::to_string(status) + ": " + retrogradGetLastError()};
}

void* address(std::optional<HostTensor>& tensor) { return tensor ? tensor->data() : nullptr; }

bool needs_extension(const problem::ConvRequest& r) {
  return r.transposed || r.padding.size() != r.stride.size();
}

// Takes descriptor, workspace and its size.
using Run = std::function<infiniStatus_t(struct InfiniopDescriptor*, void*, size_t)>;

CallResult finish(struct InfiniopDescriptor* operation,
                  infiniStatus_t (*size_of)(struct InfiniopDescriptor*, size_t*),
                  infiniStatus_t (*destroy)(struct InfiniopDescriptor*), const Run& run) {
  size_t size = 0;
  size_of(operation, &size);
  std::vector<std::byte> workspace(size);
  const infiniStatus_t status = run(operation, workspace.data(), size);
  if (status != INFINI_STATUS_SUCCESS) return failure("run", status);
  destroy(operation);
  return {"", size};
}

CallResult run_forward(const problem::ConvRequest& r, Operands& o) {
  infiniopConvDescriptor_t operation = nullptr;
  {
    InfiniopCall call;
    std::vector<int> pads(r.padding.begin(), r.padding.end()), strides(r.stride.begin(), r.stride.end()),
        dilations(r.dilation.begin(), r.dilation.end());
    const infiniStatus_t status = infiniopCreateConvDescriptor(
        call.handle(), &operation, call.describe(r.grad_output), call.describe(r.input),
        call.describe(r.weight), r.bias ? call.describe(*r.bias) : nullptr, pads.data(), strides.data(),
        dilations.data(), strides.size());
    if (status != INFINI_STATUS_SUCCESS) return failure("create", status);
  }
  return finish(operation, infiniopGetConvWorkspaceSize, infiniopDestroyConvDescriptor,
                [&](struct InfiniopDescriptor* desc, void* workspace, size_t size) {
                  return infiniopConv(desc, workspace, size, address(o[Operand::kOutput]),
                                      address(o[Operand::kInput]), address(o[Operand::kWeight]),
                                      address(o[Operand::kBias]), nullptr);
                });
}

CallResult run(const problem::ConvRequest& r, Operands& o) {
  if (r.forward) return run_forward(r, o);
  infiniopConvBackwardDescriptor_t operation = nullptr;
  infiniStatus_t status;
  {
    InfiniopCall call;
    const auto grad_output = call.describe(r.grad_output), input = call.describe(r.input),
               weight = call.describe(r.weight);
    if (needs_extension(r)) {
      status = retrogradInfiniopCreateConvBackwardDescriptor(
          call.handle(), &operation, grad_output, input, weight, nullptr, r.padding.data(), r.padding.size(),
          r.stride.data(), r.dilation.data(), r.transposed, r.output_padding.data(), r.groups);
    } else {
      std::vector<int> pads(r.padding.begin(), r.padding.end()), strides(r.stride.begin(), r.stride.end()),
          dilations(r.dilation.begin(), r.dilation.end());
      status = infiniopCreateConvBackwardDescriptor(call.handle(), &operation, grad_output, input, weight,
                                                    nullptr, pads.data(), strides.data(), dilations.data(),
                                                    static_cast<size_t>(r.groups));
    }
    if (status != INFINI_STATUS_SUCCESS) return failure("create", status);
  }
  size_t size = 0;
  infiniopGetConvBackwardWorkspaceSize(operation, &size);
  std::vector<std::byte> workspace(size);
  infinirtStream_t stream = nullptr;
  infinirtStreamCreate(&stream);
  status = infiniopConvBackward(operation, workspace.data(), size, address(o[Operand::kGradInput]),
                                address(o[Operand::kGradWeight]), address(o[Operand::kGradBias]),
                                address(o[Operand::kGradOutput]), address(o[Operand::kInput]),
                                address(o[Operand::kWeight]), stream);
  if (status != INFINI_STATUS_SUCCESS) return failure("run", status);
  infinirtStreamSynchronize(stream);
  infinirtStreamDestroy(stream);
  infiniopDestroyConvBackwardDescriptor(operation);
  return {"", size};
}

CallResult run(const problem::AvgPoolRequest& r, Operands& o) {
  const size_t axes = static_cast<size_t>(r.input.shape.rank() - 2);
  const auto spread = [&](const std::vector<int64_t>& values) {
    return values.size() == 1 ? std::vector<int64_t>(axes, values[0]) : values;
  };
  const auto kernel = spread(r.kernel), stride = r.stride.empty() ? kernel : spread(r.stride),
             pad = spread(r.padding);
  InfiniopCall call;
  if (r.forward) {
    infiniopAvgPoolDescriptor_t operation = nullptr;
    auto k = kernel, s = stride, p = pad;
    const infiniStatus_t made =
        infiniopCreateAvgPoolDescriptor(call.handle(), &operation, call.describe(r.grad_output),
                                        call.describe(r.input), k.data(), s.data(), p.data(), r.ceil_mode);
    if (made != INFINI_STATUS_SUCCESS) return failure("create", made);
    return finish(operation, infiniopGetAvgPoolWorkspaceSize, infiniopDestroyAvgPoolDescriptor,
                  [&](struct InfiniopDescriptor* desc, void* workspace, size_t size) {
                    return infiniopAvgPool(desc, workspace, size, address(o[Operand::kOutput]),
                                           address(o[Operand::kInput]), nullptr);
                  });
  }
  infiniopAvgPoolBackwardDescriptor_t operation = nullptr;
  infiniStatus_t status = retrogradInfiniopCreateAvgPoolBackwardDescriptor(
      call.handle(), &operation, call.describe(r.grad_input), call.describe(r.grad_output),
      call.describe(r.input), kernel.data(), stride.data(), pad.data(), r.ceil_mode, r.count_include_pad,
      r.divisor_override);
  if (status != INFINI_STATUS_SUCCESS) return failure("create", status);
  size_t size = 0;
  infiniopGetAvgPoolBackwardWorkspaceSize(operation, &size);
  std::vector<std::byte> workspace(size);
  status = infiniopAvgPoolBackward(operation, workspace.data(), size, address(o[Operand::kGradInput]),
                                   address(o[Operand::kGradOutput]), nullptr, nullptr);
  if (status != INFINI_STATUS_SUCCESS) return failure("run", status);
  infiniopDestroyAvgPoolBackwardDescriptor(operation);
  return {"", size};
}

CallResult run(const problem::ConvTbcRequest&, Operands&) { return {"infiniop has no conv_tbc"}; }

bool one_type(const problem::ConvRequest& r) {
  return r.grad_output.dtype == r.input.dtype && (!r.bias || r.bias->dtype == r.input.dtype);
}

// infiniop: grad_input has input's strides, grad_weight weight's, grad_bias is dense. What strides a result
// may have is judged when the descriptor is made, before anybody says which results are wanted.
bool results_follow_operands(const problem::ConvRequest& r) {
  if (r.forward) return true;
  const auto same = [](const std::optional<problem::TensorView>& result, const problem::TensorView& operand) {
    return !overlaps_itself(operand) &&
           (!result || (result->dtype == operand.dtype && result->strides == operand.strides));
  };
  return same(r.grad_input, r.input) && same(r.grad_weight, r.weight) &&
         (!r.grad_bias || (r.grad_bias->dtype == r.input.dtype && is_dense(*r.grad_bias)));
}

}  // namespace

bool infiniop_offers(const problem::Request& request) {
  // The forward operator has no divisor of the caller's, and counts padding.
  if (const auto* pool = std::get_if<problem::AvgPoolRequest>(&request))
    return pool->spatial_rank == 0 &&
           (!pool->forward || (pool->divisor_override == 0 && pool->count_include_pad));
  const auto* conv = std::get_if<problem::ConvRequest>(&request);
  if (conv != nullptr && conv->forward && (needs_extension(*conv) || !one_type(*conv))) return false;
  // Its groups are those that the channels say.
  if (conv != nullptr && conv->forward && conv->weight.shape[1] == 0) return false;
  return conv != nullptr && !pads_beyond_stride(*conv) && conv->math.mode == 0 &&
         !is_8bit(conv->input.dtype) && conv->weight.dtype == conv->input.dtype &&
         conv->grad_output.dtype == conv->input.dtype && conv->output_padding.size() == conv->stride.size() &&
         results_follow_operands(*conv);
}

CallResult call_infiniop(const problem::Request& request, Operands& operands) {
  return std::visit([&](const auto& r) { return run(r, operands); }, request);
}

}  // namespace retrograd::test
