// SPDX-License-Identifier: Apache-2.0
// aclnnConvTbcBackward and aclnnConvTbc with any arguments: phase one always, phase two where it accepted
// something small.
#include "acl_arguments.h"
#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "window_shape.h"

using namespace retrograd::fuzz;

namespace {

// (T, B, C) and (K, C_in, C_out) seen as a one-dimensional convolution, and its output seen as (T, B, C)
// again.
std::vector<int64_t> output_shape(const std::vector<int64_t>& input, const std::vector<int64_t>& weight,
                                  int64_t pad) {
  if (input.size() != 3 || weight.size() != 3) return input;
  ConvAttributes attributes;
  attributes.padding = {pad};
  const std::vector<int64_t> ncl =
      conv_output_shape({input[1], input[2], input[0]}, {weight[2], weight[1], weight[0]}, attributes);
  return {ncl[2], ncl[0], ncl[1]};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const aclrtStream stream = start_acl();
  ByteReader reader(data, size);
  AclArguments arguments(reader);

  const int64_t pad = reader.number();
  const int8_t math_mode = static_cast<int8_t>(reader.byte());
  const AclTensorArgument& input = arguments.tensor({5, 1, 2});
  const AclTensorArgument& weight = arguments.tensor({1, 2, 2});
  const AclTensorArgument& grad_output = arguments.tensor(output_shape(input.shape, weight.shape, pad));
  const int64_t channels = weight.shape.size() > 2 ? weight.shape[2] : 1;
  const AclTensorArgument& bias = arguments.tensor({channels});
  const AclTensorArgument& grad_input = arguments.tensor(input.shape);
  const AclTensorArgument& grad_weight = arguments.tensor(weight.shape);
  const AclTensorArgument& grad_bias = arguments.tensor({channels});
  const uint8_t no_results = reader.byte();

  PhaseOne plan;
  const aclnnStatus status = aclnnConvTbcBackwardGetWorkspaceSize(
      grad_output.handle, input.handle, weight.handle, bias.handle, pad, math_mode, grad_input.handle,
      grad_weight.handle, grad_bias.handle, no_results == 1 ? nullptr : &plan.workspace_bytes,
      no_results == 2 ? nullptr : &plan.executor);
  const bool runs = arguments.small() && quick(grad_output.memory, weight.memory);
  if (plan.succeeded(status)) run_or_drop(runs, reader, plan, aclnnConvTbcBackward, stream);

  // The forward operator on the same tensors.
  PhaseOne forward;
  const aclnnStatus forward_status = aclnnConvTbcGetWorkspaceSize(
      input.handle, weight.handle, bias.handle, pad, grad_output.handle, math_mode,
      no_results == 1 ? nullptr : &forward.workspace_bytes, no_results == 2 ? nullptr : &forward.executor);
  if (forward.succeeded(forward_status)) run_or_drop(runs, reader, forward, aclnnConvTbc, stream);
  return 0;
}
