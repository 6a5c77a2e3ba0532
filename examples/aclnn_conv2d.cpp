// SPDX-License-Identifier: Apache-2.0
// A 2-D convolution through aclnn with everything uneven: padding, stride, dilation, and two groups.
#include "acl_session.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "plain_loops.h"

int main() {
  const sample::AclSession session;
  const sample::AclTensor grad_output(sample::numbers({2, 6, 4, 10}, 1), ACL_FORMAT_NCHW);
  const sample::AclTensor input(sample::numbers({2, 4, 9, 11}, 2), ACL_FORMAT_NCHW);
  const sample::AclTensor weight(sample::numbers({6, 2, 3, 3}, 3), ACL_FORMAT_NCHW);
  const sample::AclTensor grad_input(sample::unwritten({2, 4, 9, 11}), ACL_FORMAT_NCHW);
  const sample::AclTensor grad_weight(sample::unwritten({6, 2, 3, 3}), ACL_FORMAT_NCHW);
  const sample::AclTensor grad_bias(sample::unwritten({6}), ACL_FORMAT_ND);
  // Two numbers would pad both ends alike; four are top, bottom, left, right.
  const auto padding = sample::ints({1, 0, 2, 1});
  const auto bias_sizes = sample::ints({6}), stride = sample::ints({2, 1}), dilation = sample::ints({1, 2}),
             output_padding = sample::ints({0, 0});
  const auto all = sample::mask(true, true, true);

  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  sample::check(aclnnConvolutionBackwardGetWorkspaceSize(
      grad_output.get(), input.get(), weight.get(), bias_sizes.get(), stride.get(), padding.get(),
      dilation.get(),
      /*transposed=*/false, output_padding.get(), /*groups=*/2, all.get(), /*cubeMathType=*/0,
      grad_input.get(), grad_weight.get(), grad_bias.get(), &bytes, &executor));
  const sample::AclMemory workspace = sample::allocate(bytes);
  sample::check(aclnnConvolutionBackward(workspace.get(), bytes, executor, session.stream()));
  sample::check(aclrtSynchronizeStream(session.stream()));

  const sample::ConvSums expected =
      sample::conv_backward(grad_output.host, input.host, weight.host, {2, 1}, {1, 2}, {1, 2}, 2, false);
  int wrong = sample::report("grad_input", grad_input.download(), expected.grad_input);
  wrong |= sample::report("grad_weight", grad_weight.download(), expected.grad_weight);
  wrong |= sample::report("grad_bias", grad_bias.download(), expected.grad_bias);
  return wrong;
}
