// SPDX-License-Identifier: Apache-2.0
// A 3-D convolution without a bias through aclnn: the mask leaves the third gradient out, and one executor
// runs twice, for two output gradients.
#include "acl_session.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "plain_loops.h"

int main() {
  const sample::AclSession session;
  const sample::AclTensor first(sample::numbers({1, 4, 4, 3, 4}, 1), ACL_FORMAT_NCDHW);
  const sample::AclTensor second(sample::numbers({1, 4, 4, 3, 4}, 2), ACL_FORMAT_NCDHW);
  const sample::AclTensor input(sample::numbers({1, 2, 5, 6, 7}, 3), ACL_FORMAT_NCDHW);
  const sample::AclTensor weight(sample::numbers({4, 2, 2, 3, 3}, 4), ACL_FORMAT_NCDHW);
  const sample::AclTensor grad_input(sample::unwritten({1, 2, 5, 6, 7}), ACL_FORMAT_NCDHW);
  const sample::AclTensor grad_weight(sample::unwritten({4, 2, 2, 3, 3}), ACL_FORMAT_NCDHW);
  const auto stride = sample::ints({1, 2, 2}), padding = sample::ints({0, 1, 1}),
             dilation = sample::ints({1, 1, 1}), output_padding = sample::ints({0, 0, 0});
  const auto no_bias = sample::mask(true, true, false);

  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  sample::check(aclnnConvolutionBackwardGetWorkspaceSize(
      first.get(), input.get(), weight.get(), /*biasSizes=*/nullptr, stride.get(), padding.get(),
      dilation.get(), /*transposed=*/false, output_padding.get(), /*groups=*/1, no_bias.get(),
      /*cubeMathType=*/0, grad_input.get(), grad_weight.get(), /*gradBias=*/nullptr, &bytes, &executor));
  // Validation and planning are paid for once: the executor now outlives phase two, until it is destroyed.
  sample::check(aclSetAclOpExecutorRepeatable(executor));
  const sample::AclMemory workspace = sample::allocate(bytes);

  int wrong = 0;
  for (const sample::AclTensor* grad_output : {&first, &second}) {
    // The operator's inputs are numbered in the order of its parameters: gradOutput, input, weight.
    sample::check(aclSetInputTensorAddr(executor, 0, first.get(), grad_output->data()));
    sample::check(aclnnConvolutionBackward(workspace.get(), bytes, executor, session.stream()));
    sample::check(aclrtSynchronizeStream(session.stream()));

    const sample::ConvSums expected = sample::conv_backward(grad_output->host, input.host, weight.host,
                                                            {1, 2, 2}, {0, 1, 1}, {1, 1, 1}, 1, false);
    std::printf("%s output gradient\n", grad_output == &first ? "first" : "second");
    wrong |= sample::report("grad_input", grad_input.download(), expected.grad_input);
    wrong |= sample::report("grad_weight", grad_weight.download(), expected.grad_weight);
  }
  sample::check(aclDestroyAclOpExecutor(executor));
  return wrong;
}
