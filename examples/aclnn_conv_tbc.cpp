// SPDX-License-Identifier: Apache-2.0
// The gradients of a convolution over sequences stored as (time, batch, channel), through aclnn.
#include "acl_session.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "plain_loops.h"

namespace {

// With time first, the loops are simpler than those of the other layouts: no groups, stride or dilation.
sample::ConvSums conv_tbc_backward(const sample::Tensor& grad_output, const sample::Tensor& input,
                                   const sample::Tensor& weight, int64_t pad) {
  const int64_t t_out = grad_output.shape[0], t_in = input.shape[0], batch = input.shape[1];
  const int64_t taps = weight.shape[0], c_in = weight.shape[1], c_out = weight.shape[2];
  sample::ConvSums sums{sample::Sums(input.values.size()), sample::Sums(weight.values.size()),
                        sample::Sums(static_cast<size_t>(c_out))};
  for (int64_t row = 0; row < t_out * batch; ++row) {
    for (int64_t co = 0; co < c_out; ++co) {
      const double from_output = grad_output[row * c_out + co];
      sums.grad_bias[co].add(from_output);
      for (int64_t k = 0; k < taps; ++k) {
        const int64_t t = row / batch + k - pad;
        if (t < 0 || t >= t_in) continue;
        for (int64_t ci = 0; ci < c_in; ++ci) {
          const int64_t x = (t * batch + row % batch) * c_in + ci, w = (k * c_in + ci) * c_out + co;
          sums.grad_input[x].add(from_output * weight[w]);
          sums.grad_weight[w].add(from_output * input[x]);
        }
      }
    }
  }
  return sums;
}

}  // namespace

int main() {
  const sample::AclSession session;
  const int64_t pad = 1;
  const sample::AclTensor grad_output(sample::numbers({6, 2, 5}, 1), ACL_FORMAT_ND);  // 7 + 2 - 4 + 1 steps
  const sample::AclTensor input(sample::numbers({7, 2, 3}, 2), ACL_FORMAT_ND);
  const sample::AclTensor weight(sample::numbers({4, 3, 5}, 3), ACL_FORMAT_ND);  // (taps, C_in, C_out)
  const sample::AclTensor bias(sample::numbers({5}, 4), ACL_FORMAT_ND);          // only its size matters
  const sample::AclTensor grad_input(sample::unwritten({7, 2, 3}), ACL_FORMAT_ND);
  const sample::AclTensor grad_weight(sample::unwritten({4, 3, 5}), ACL_FORMAT_ND);
  const sample::AclTensor grad_bias(sample::unwritten({5}), ACL_FORMAT_ND);

  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  sample::check(aclnnConvTbcBackwardGetWorkspaceSize(
      grad_output.get(), input.get(), weight.get(), bias.get(), pad,
      /*cubeMathType=*/0, grad_input.get(), grad_weight.get(), grad_bias.get(), &bytes, &executor));
  const sample::AclMemory workspace = sample::allocate(bytes);
  sample::check(aclnnConvTbcBackward(workspace.get(), bytes, executor, session.stream()));
  sample::check(aclrtSynchronizeStream(session.stream()));

  const sample::ConvSums expected = conv_tbc_backward(grad_output.host, input.host, weight.host, pad);
  int wrong = sample::report("grad_input", grad_input.download(), expected.grad_input);
  wrong |= sample::report("grad_weight", grad_weight.download(), expected.grad_weight);
  wrong |= sample::report("grad_bias", grad_bias.download(), expected.grad_bias);
  return wrong;
}
