// SPDX-License-Identifier: Apache-2.0
// Looks handles and descriptors up before they are followed.
#include "api/infini/descriptors.h"

#include "api/infini/devices.h"
#include "api/infini/streams.h"

namespace retrograd::api::infini {
namespace {

const char* name_of(Operation operation) {
  static constexpr const char* kNames[] = {"infiniopConvBackward", "infiniopAvgPoolBackward", "infiniopConv",
                                           "infiniopAvgPool"};
  return kNames[static_cast<size_t>(operation)];
}

Result<DType> dtype_of(infiniDtype_t dtype, const char* argument) {
  switch (dtype) {
    case INFINI_DTYPE_F16:
      return DType::kF16;
    case INFINI_DTYPE_F32:
      return DType::kF32;
    case INFINI_DTYPE_BF16:
      return DType::kBF16;
    default:
      return Status(Code::kBadDtype, "{}.dtype is {}, expected F16 (12), F32 (13) or BF16 (19)", argument,
                    static_cast<int>(dtype));
  }
}

}  // namespace

CellMint& cells() {
  static constinit PerProcess<CellMint> mint;
  return mint.get();
}

Status not_alive(const void* pointer, const char* argument) {
  return Status(Code::kBadHandle, "{} is {}, which is not alive: destroyed, or never created as such{}",
                argument, pointer, fork_note());
}

Result<std::shared_ptr<Operator>> find_descriptor(const InfiniopDescriptor* pointer, Operation operation) {
  RG_TRY(auto descriptor, find_live(pointer, "desc"));
  if (descriptor->operation != operation)
    return Status(Code::kBadHandle, "desc is a descriptor of {}, expected one of {}",
                  name_of(descriptor->operation), name_of(operation));
  return descriptor;
}

Result<runtime::Device*> device_of(const InfiniopHandle* handle) {
  RG_CHECK(find_live(handle, "handle").status());
  return find_device(static_cast<infiniDevice_t>(handle->device), handle->device_id);
}

Result<problem::TensorView> view_of(const InfiniopTensorDescriptor* pointer, const char* argument) {
  RG_TRY(const auto descriptor, find_live(pointer, argument));
  RG_TRY(const DType dtype, dtype_of(descriptor->dtype, argument));
  problem::TensorView view;
  view.dtype = dtype;
  view.shape = descriptor->shape;
  view.strides = descriptor->strides;
  return view;
}

int spatial_rank(std::initializer_list<const problem::TensorView*> views) {
  const int rank = (*views.begin())->shape.rank();
  for (const problem::TensorView* view : views)
    if (view->shape.rank() != rank) return 0;
  return rank >= 3 && rank <= 5 ? rank - 2 : 0;
}

Status workspace_size(const InfiniopDescriptor* pointer, Operation operation, size_t* size) {
  RG_TRY(const auto descriptor, find_descriptor(pointer, operation));
  if (size == nullptr) return {Code::kNullArgument, "size is null"};
  *size = descriptor->plan->workspace_bytes();
  return Status::ok();
}

Status destroy_descriptor(InfiniopDescriptor* pointer, Operation operation) {
  RG_CHECK(find_descriptor(pointer, operation).status());
  return destroy(pointer, "desc");
}

Status run(const Operator& descriptor, const plan::Bindings& bindings, void* workspace, size_t workspace_size,
           infinirtStream_t stream) {
  RG_TRY(const auto queue, find_stream(stream, descriptor.plan->device()));
  Status status = plan::Plan::execute(descriptor.plan, bindings, workspace, workspace_size, *queue);
  // A block too small for its tensor: to the documents a wrong argument of the run, whose tensors were
  // accepted at create.
  if (status.code() == Code::kBadStrides) return {Code::kInvalidArgument, status.message()};
  return status;
}

Status make_descriptor(runtime::Device& device, problem::Request request, InfiniopDescriptor** out) {
  auto descriptor = std::make_shared<Operator>();
  const bool pools = std::holds_alternative<problem::AvgPoolRequest>(request), forward = is_forward(request);
  descriptor->operation = forward ? (pools ? Operation::kAvgPool : Operation::kConv)
                                  : (pools ? Operation::kAvgPoolBackward : Operation::kConvBackward);
  descriptor->grad_output_is_empty = std::visit(
      [](const auto& asked) { return problem::element_count(asked.grad_output.shape) == 0; }, request);
  RG_TRY(auto problem, problem::judge(std::move(request)));
  // The run has names of its own for the tensors: input, not input_desc.
  for (int i = 0; i < problem::kOperandCount; ++i) {
    const auto operand = static_cast<problem::Operand>(i);
    problem.facts(operand).name = problem::name_of(operand).data();
  }
  if (descriptor->operation == Operation::kConv) {
    problem.facts(problem::Operand::kInput).name = "x";
    problem.facts(problem::Operand::kWeight).name = "w";
    problem.facts(problem::Operand::kOutput).name = "y";
  }
  RG_TRY(descriptor->plan, plan::make_plan(problem, device, name_of(descriptor->operation)));
  publish(std::move(descriptor), InfiniopDescriptor{type_of(device), device.index()}, out);
  return Status::ok();
}

}  // namespace retrograd::api::infini
