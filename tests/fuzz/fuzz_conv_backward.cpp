// SPDX-License-Identifier: Apache-2.0
// aclnnConvolutionBackward and aclnnConvolution with any arguments: phase one always, phase two where it
// accepted something small.
#include "acl_arguments.h"
#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "window_shape.h"

using namespace retrograd::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const aclrtStream stream = start_acl();
  ByteReader reader(data, size);
  AclArguments arguments(reader);

  ConvAttributes attributes;
  attributes.transposed = reader.flag();
  attributes.groups = static_cast<int>(reader.number());
  const int8_t math_mode = static_cast<int8_t>(reader.byte());
  const aclBoolArray* mask = arguments.bool_array();
  const AclIntArrayArgument stride = arguments.int_array(), padding = arguments.int_array(),
                            dilation = arguments.int_array(), output_padding = arguments.int_array(),
                            bias_sizes = arguments.int_array();
  attributes.stride = stride.values;
  attributes.padding = padding.values;
  attributes.dilation = dilation.values;
  attributes.output_padding = output_padding.values;

  const AclTensorArgument& input = arguments.tensor({1, 1, 3, 3});
  const AclTensorArgument& weight = arguments.tensor({1, 1, 2, 2});
  const AclTensorArgument& grad_output =
      arguments.tensor(conv_output_shape(input.shape, weight.shape, attributes));
  const int64_t channels = grad_output.shape.size() > 1 ? grad_output.shape[1] : 1;
  const AclTensorArgument& grad_input = arguments.tensor(input.shape);
  const AclTensorArgument& grad_weight = arguments.tensor(weight.shape);
  const AclTensorArgument& grad_bias = arguments.tensor({channels});
  const uint8_t no_results = reader.byte();

  PhaseOne plan;
  const aclnnStatus status = aclnnConvolutionBackwardGetWorkspaceSize(
      grad_output.handle, input.handle, weight.handle, bias_sizes.handle, stride.handle, padding.handle,
      dilation.handle, attributes.transposed, output_padding.handle, static_cast<int>(attributes.groups),
      mask, math_mode, grad_input.handle, grad_weight.handle, grad_bias.handle,
      no_results == 1 ? nullptr : &plan.workspace_bytes, no_results == 2 ? nullptr : &plan.executor);
  const bool runs = arguments.small() && quick(grad_output.memory, weight.memory);
  if (plan.succeeded(status)) run_or_drop(runs, reader, plan, aclnnConvolutionBackward, stream);

  // The forward operator on the same tensors.
  PhaseOne forward;
  const aclnnStatus forward_status = aclnnConvolutionGetWorkspaceSize(
      input.handle, weight.handle, grad_bias.handle, stride.handle, padding.handle, dilation.handle,
      attributes.transposed, output_padding.handle, attributes.groups, grad_output.handle, math_mode,
      no_results == 1 ? nullptr : &forward.workspace_bytes, no_results == 2 ? nullptr : &forward.executor);
  if (forward.succeeded(forward_status)) run_or_drop(runs, reader, forward, aclnnConvolution, stream);
  return 0;
}
