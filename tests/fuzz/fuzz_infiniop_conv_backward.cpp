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
  const uint8_t mode = reader.byte();
  const auto unless = [mode](int bit, void* address) { return (mode >> bit & 1) != 0 ? nullptr : address; };
  size_t bytes = 0;
  require(infiniopGetConvBackwardWorkspaceSize(descriptor, &bytes) == INFINI_STATUS_SUCCESS);
  const size_t given = (mode & 1) != 0 && bytes > 0 ? bytes - 1 : bytes;
  std::vector<unsigned char> workspace(given, 0xA5);
  const ViewMemory bias({grad_output.shape[1]}, {}, grad_output.memory.element_size());
  const infiniStatus_t status = infiniopConvBackward(
      descriptor, workspace.data(), given, unless(1, input.twin.data()), unless(2, weight.twin.data()),
      unless(3, bias.data()), unless(4, grad_output.memory.data()), unless(5, input.memory.data()),
      unless(6, weight.memory.data()), nullptr);
  require(status == INFINI_STATUS_SUCCESS || status == INFINI_STATUS_BAD_PARAM ||
          status == INFINI_STATUS_INSUFFICIENT_WORKSPACE);
  if (given < bytes) require(status != INFINI_STATUS_SUCCESS);
}

void run_forward(ByteReader& reader, infiniopConvDescriptor_t descriptor, const InfiniTensorArgument& y,
                 const InfiniTensorArgument& x, const InfiniTensorArgument& w,
                 const InfiniTensorArgument& b) {
  const uint8_t mode = reader.byte();
  const auto unless = [mode](int bit, void* address) { return (mode >> bit & 1) != 0 ? nullptr : address; };
  size_t bytes = 0;
  require(infiniopGetConvWorkspaceSize(descriptor, &bytes) == INFINI_STATUS_SUCCESS);
  const size_t given = (mode & 1) != 0 && bytes > 0 ? bytes - 1 : bytes;
  std::vector<unsigned char> workspace(given, 0xA5);
  const infiniStatus_t status = infiniopConv(descriptor, workspace.data(), given, unless(1, y.memory.data()),
                                             unless(2, x.memory.data()), unless(3, w.memory.data()),
                                             unless(4, b.memory.data()), nullptr);
  require(status == INFINI_STATUS_SUCCESS || status == INFINI_STATUS_BAD_PARAM ||
          status == INFINI_STATUS_INSUFFICIENT_WORKSPACE);
  if (given < bytes) require(status != INFINI_STATUS_SUCCESS);
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
