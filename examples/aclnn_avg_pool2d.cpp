// SPDX-License-Identifier: Apache-2.0
// The gradient of 2-D average pooling through aclnn, in ceil mode, padding left out of the averages.
#include "acl_session.h"
#include "aclnnop/aclnn_avgpool2d_backward.h"
#include "plain_loops.h"

int main() {
  const sample::AclSession session;
  // Along W, nine columns under windows of two leave one over: ceil mode adds a fifth window that hangs over
  // the end and averages that column alone.
  const sample::AclTensor grad_output(sample::numbers({1, 2, 4, 5}, 1), ACL_FORMAT_NCHW);
  const sample::AclTensor input(sample::numbers({1, 2, 7, 9}, 2), ACL_FORMAT_NCHW);
  const sample::AclTensor grad_input(sample::unwritten({1, 2, 7, 9}), ACL_FORMAT_NCHW);
  const auto kernel = sample::ints({3, 2}), stride = sample::ints({2, 2}), padding = sample::ints({1, 0});
  const int64_t count_the_window = 0;  // any other number would be the divisor of every window

  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  sample::check(aclnnAvgPool2dBackwardGetWorkspaceSize(
      grad_output.get(), input.get(), kernel.get(), stride.get(), padding.get(), /*ceilMode=*/true,
      /*countIncludePad=*/false, count_the_window, /*cubeMathType=*/0, grad_input.get(), &bytes, &executor));
  const sample::AclMemory workspace = sample::allocate(bytes);
  sample::check(aclnnAvgPool2dBackward(workspace.get(), bytes, executor, session.stream()));
  sample::check(aclrtSynchronizeStream(session.stream()));

  const sample::Sums expected =
      sample::avg_pool_backward(grad_output.host, input.host.shape, {3, 2}, {2, 2}, {1, 0}, false);
  return sample::report("grad_input", grad_input.download(), expected);
}
