// SPDX-License-Identifier: Apache-2.0
// The three gradients of a 1-D convolution through aclnn: the shortest complete use of the two phases.
#include "acl_session.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "plain_loops.h"

int main() {
  const sample::AclSession session;
  const sample::AclTensor grad_output(sample::numbers({2, 6, 8}, 1), ACL_FORMAT_NCL);
  const sample::AclTensor input(sample::numbers({2, 4, 16}, 2), ACL_FORMAT_NCL);
  const sample::AclTensor weight(sample::numbers({6, 4, 5}, 3), ACL_FORMAT_NCL);
  const sample::AclTensor grad_input(sample::unwritten({2, 4, 16}), ACL_FORMAT_NCL);
  const sample::AclTensor grad_weight(sample::unwritten({6, 4, 5}), ACL_FORMAT_NCL);
  const sample::AclTensor grad_bias(sample::unwritten({6}), ACL_FORMAT_ND);
  const auto bias_sizes = sample::ints({6}), stride = sample::ints({2}), padding = sample::ints({2}),
             dilation = sample::ints({1}), output_padding = sample::ints({0});
  const auto all = sample::mask(true, true, true);

  // Phase one judges the arguments and plans. It reads no data, and nothing is written if it fails.
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  sample::check(aclnnConvolutionBackwardGetWorkspaceSize(
      grad_output.get(), input.get(), weight.get(), bias_sizes.get(), stride.get(), padding.get(),
      dilation.get(),
      /*transposed=*/false, output_padding.get(), /*groups=*/1, all.get(), /*cubeMathType=*/0,
      grad_input.get(), grad_weight.get(), grad_bias.get(), &bytes, &executor));

  // Phase two puts the work on the stream, uses up the executor and returns at once: the workspace must live
  // until the stream has been waited for.
  const sample::AclMemory workspace = sample::allocate(bytes);
  sample::check(aclnnConvolutionBackward(workspace.get(), bytes, executor, session.stream()));
  sample::check(aclrtSynchronizeStream(session.stream()));

  const sample::ConvSums expected =
      sample::conv_backward(grad_output.host, input.host, weight.host, {2}, {2}, {1}, 1, false);
  int wrong = sample::report("grad_input", grad_input.download(), expected.grad_input);
  wrong |= sample::report("grad_weight", grad_weight.download(), expected.grad_weight);
  wrong |= sample::report("grad_bias", grad_bias.download(), expected.grad_bias);
  return wrong;
}
