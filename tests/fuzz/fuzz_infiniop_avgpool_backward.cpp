// SPDX-License-Identifier: Apache-2.0
// infiniopAvgPoolBackward and infiniopAvgPool with any arguments: create always, a run where it accepted
// something small.
#include "infini_arguments.h"
#include "window_shape.h"

using namespace retrograd::fuzz;

namespace {

void run(ByteReader& reader, infiniopAvgPoolBackwardDescriptor_t descriptor, const ViewMemory& grad_input,
         const ViewMemory& grad_output, const ViewMemory& input) {
  run_any(reader, infiniopGetAvgPoolBackwardWorkspaceSize, descriptor,
          [&](void* workspace, size_t bytes, const auto& unless) {
            return infiniopAvgPoolBackward(descriptor, workspace, bytes, unless(1, grad_input.data()),
                                           unless(2, grad_output.data()), unless(3, input.data()), nullptr);
          });
}

void run_forward(ByteReader& reader, infiniopAvgPoolDescriptor_t descriptor, const ViewMemory& output,
                 const ViewMemory& input) {
  run_any(reader, infiniopGetAvgPoolWorkspaceSize, descriptor,
          [&](void* workspace, size_t bytes, const auto& unless) {
            return infiniopAvgPool(descriptor, workspace, bytes, unless(1, output.data()),
                                   unless(2, input.data()), nullptr);
          });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteReader reader(data, size);
  InfiniArguments arguments(reader);

  const infiniopHandle_t handle = arguments.handle();
  const bool ceil_mode = reader.flag();
  const InfiniTensorArgument& input = arguments.tensor({1, 1, 5, 5});
  AttributeArrays arrays(reader, 3, input.shape.size() < 2 ? 0 : input.shape.size() - 2);
  const InfiniTensorArgument& grad_output = arguments.tensor(
      pool_output_shape(input.shape, arrays.values(0), arrays.values(1), arrays.values(2), ceil_mode));
  const InfiniTensorArgument& grad_input = arguments.tensor(input.shape);

  infiniopAvgPoolBackwardDescriptor_t descriptor = untouched();
  const infiniStatus_t status = infiniopCreateAvgPoolBackwardDescriptor(
      handle, &descriptor, grad_input.descriptor, grad_output.descriptor, input.descriptor, arrays.pointer(0),
      arrays.pointer(1), arrays.pointer(2), ceil_mode);
  if (created(status, descriptor)) {
    if (arguments.small()) run(reader, descriptor, grad_input.memory, grad_output.memory, input.memory);
    require(infiniopDestroyAvgPoolBackwardDescriptor(descriptor) == INFINI_STATUS_SUCCESS);
  }

  // The forward operator on the same tensors.
  infiniopAvgPoolDescriptor_t forward = untouched();
  const infiniStatus_t forward_status =
      infiniopCreateAvgPoolDescriptor(handle, &forward, grad_output.descriptor, input.descriptor,
                                      arrays.pointer(0), arrays.pointer(1), arrays.pointer(2), ceil_mode);
  if (!created(forward_status, forward)) return 0;
  if (arguments.small()) run_forward(reader, forward, grad_output.memory, input.memory);
  require(infiniopDestroyAvgPoolDescriptor(forward) == INFINI_STATUS_SUCCESS);
  return 0;
}
