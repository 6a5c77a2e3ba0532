// SPDX-License-Identifier: Apache-2.0
// infiniopConvBackward and infiniopConv with any arguments: create always, a run where it accepted something
// small.
#include "infini_arguments.h"
#include "window_shape.h"

using namespace retrograd::fuzz;

namespace {

void run(ByteReader& reader, infiniopConvBackwardDescriptor_t descriptor,
         const InfiniTensorArgument& grad_output, const InfiniTensorArgument& input,
         const InfiniTensorArgument& weight) {
  const ViewMemory bias({grad_output.shape[1]}, {}, grad_output.memory.element_size());
  run_any(reader, infiniopGetConvBackwardWorkspaceSize, descriptor,
          [&](void* workspace, size_t bytes, const auto& unless) {
            return infiniopConvBackward(descriptor, workspace, bytes, unless(1, input.twin.data()),
                                        unless(2, weight.twin.data()), unless(3, bias.data()),
                                        unless(4, grad_output.memory.data()), unless(5, input.memory.data()),
                                        unless(6, weight.memory.data()), nullptr);
          });
}

void run_forward(ByteReader& reader, infiniopConvDescriptor_t descriptor, const InfiniTensorArgument& y,
                 const InfiniTensorArgument& x, const InfiniTensorArgument& w,
                 const InfiniTensorArgument& b) {
  run_any(reader, infiniopGetConvWorkspaceSize, descriptor,
          [&](void* workspace, size_t bytes, const auto& unless) {
            return infiniopConv(descriptor, workspace, bytes, unless(1, y.memory.data()),
                                unless(2, x.memory.data()), unless(3, w.memory.data()),
                                unless(4, b.memory.data()), nullptr);
          });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteReader reader(data, size);
  InfiniArguments arguments(reader);

  const infiniopHandle_t handle = arguments.handle();
  const int64_t groups = reader.number();
  const InfiniTensorArgument& input = arguments.tensor({1, 1, 3, 3});
  const InfiniTensorArgument& weight = arguments.tensor({1, 1, 2, 2});
  AttributeArrays arrays(reader, 3, input.shape.size() < 2 ? 0 : input.shape.size() - 2);
  ConvAttributes attributes;
  attributes.padding = arrays.values(0);
  attributes.stride = arrays.values(1);
  attributes.dilation = arrays.values(2);
  const InfiniTensorArgument& grad_output =
      arguments.tensor(conv_output_shape(input.shape, weight.shape, attributes));
  const InfiniTensorArgument& bias = arguments.tensor({weight.shape.empty() ? 1 : weight.shape[0]});

  infiniopConvBackwardDescriptor_t descriptor = untouched();
  const infiniStatus_t status = infiniopCreateConvBackwardDescriptor(
      handle, &descriptor, grad_output.descriptor, input.descriptor, weight.descriptor, bias.descriptor,
      arrays.pointer(0), arrays.pointer(1), arrays.pointer(2), static_cast<size_t>(groups));
  const bool runs = arguments.small() && quick(grad_output.memory, weight.memory);
  if (created(status, descriptor)) {
    if (runs) run(reader, descriptor, grad_output, input, weight);
    require(infiniopDestroyConvBackwardDescriptor(descriptor) == INFINI_STATUS_SUCCESS);
  }

  // The forward operator on the same tensors; the number of groups passes for n, as does that of axes.
  infiniopConvDescriptor_t forward = untouched();
  const infiniStatus_t forward_status = infiniopCreateConvDescriptor(
      handle, &forward, grad_output.descriptor, input.descriptor, weight.descriptor, bias.descriptor,
      arrays.pointer(0), arrays.pointer(1), arrays.pointer(2), static_cast<size_t>(groups));
  if (!created(forward_status, forward)) return 0;
  if (runs) run_forward(reader, forward, grad_output, input, weight, bias);
  require(infiniopDestroyConvDescriptor(forward) == INFINI_STATUS_SUCCESS);
  return 0;
}
