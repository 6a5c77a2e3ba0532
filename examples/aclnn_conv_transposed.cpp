// SPDX-License-Identifier: Apache-2.0
// A transposed 2-D convolution through aclnn, stride 2 with output padding, in two groups.
#include "acl_session.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "plain_loops.h"

int main() {
  const sample::AclSession session;
  // The forward pass doubled the size: (in - 1) * 2 - 2 * 1 + (3 - 1) + 1 + output padding 1 = 2 * in.
  // Without output padding it would have been 2 * in - 1; both shrink back to `in` under stride 2.
  const sample::AclTensor grad_output(sample::numbers({2, 6, 10, 8}, 1), ACL_FORMAT_NCHW);
  const sample::AclTensor input(sample::numbers({2, 4, 5, 4}, 2), ACL_FORMAT_NCHW);
  // Input channels come first here, then the output channels of one group.
  const sample::AclTensor weight(sample::numbers({4, 3, 3, 3}, 3), ACL_FORMAT_NCHW);
  const sample::AclTensor grad_input(sample::unwritten({2, 4, 5, 4}), ACL_FORMAT_NCHW);
  const sample::AclTensor grad_weight(sample::unwritten({4, 3, 3, 3}), ACL_FORMAT_NCHW);
  const sample::AclTensor grad_bias(sample::unwritten({6}), ACL_FORMAT_ND);
  const auto bias_sizes = sample::ints({6}), stride = sample::ints({2, 2}), padding = sample::ints({1, 1}),
             dilation = sample::ints({1, 1}), output_padding = sample::ints({1, 1});
  const auto all = sample::mask(true, true, true);

  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  sample::check(aclnnConvolutionBackwardGetWorkspaceSize(
      grad_output.get(), input.get(), weight.get(), bias_sizes.get(), stride.get(), padding.get(),
      dilation.get(),
      /*transposed=*/true, output_padding.get(), /*groups=*/2, all.get(), /*cubeMathType=*/0,
      grad_input.get(), grad_weight.get(), grad_bias.get(), &bytes, &executor));
  const sample::AclMemory workspace = sample::allocate(bytes);
  sample::check(aclnnConvolutionBackward(workspace.get(), bytes, executor, session.stream()));
  sample::check(aclrtSynchronizeStream(session.stream()));

  const sample::ConvSums expected =
      sample::conv_backward(grad_output.host, input.host, weight.host, {2, 2}, {1, 1}, {1, 1}, 2, true);
  int wrong = sample::report("grad_input", grad_input.download(), expected.grad_input);
  wrong |= sample::report("grad_weight", grad_weight.download(), expected.grad_weight);
  wrong |= sample::report("grad_bias", grad_bias.download(), expected.grad_bias);
  return wrong;
}
