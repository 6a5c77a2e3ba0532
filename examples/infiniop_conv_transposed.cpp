// SPDX-License-Identifier: Apache-2.0
// A transposed 1-D convolution under infiniop: an extension of ours creates the descriptor, infiniop runs it.
#include "infini_session.h"
#include "plain_loops.h"
#include "retrograd/infiniop_ext.h"

int main() {
  const sample::InfiniSession session;
  // (6 - 1) * 2 - 2 * 1 + (4 - 1) + 1 + output padding 1 = 13.
  const sample::InfiniTensor grad_output(sample::numbers({2, 6, 13}, 1));
  const sample::InfiniTensor input(sample::numbers({2, 4, 6}, 2));
  const sample::InfiniTensor weight(sample::numbers({4, 3, 4}, 3));  // (C_in, C_out / groups, taps)
  const sample::InfiniTensor grad_input(sample::unwritten({2, 4, 6}));
  const sample::InfiniTensor grad_weight(sample::unwritten({4, 3, 4}));
  const sample::InfiniTensor grad_bias(sample::unwritten({6}));
  const int64_t pads[] = {1}, strides[] = {2}, dilations[] = {1}, output_padding[] = {1};

  infiniopConvBackwardDescriptor_t conv = nullptr;
  sample::check(retrogradInfiniopCreateConvBackwardDescriptor(
      session.handle(), &conv, grad_output.descriptor(), input.descriptor(), weight.descriptor(),
      grad_bias.descriptor(), pads, /*pads_count=*/1, strides, dilations, /*transposed=*/true, output_padding,
      /*groups=*/2));
  size_t bytes = 0;
  sample::check(infiniopGetConvBackwardWorkspaceSize(conv, &bytes));
  const sample::InfiniMemory workspace = sample::allocate(bytes);
  sample::check(infiniopConvBackward(conv, workspace.get(), bytes, grad_input.data(), grad_weight.data(),
                                     grad_bias.data(), grad_output.data(), input.data(), weight.data(),
                                     session.stream()));
  sample::check(infinirtStreamSynchronize(session.stream()));
  sample::check(infiniopDestroyConvBackwardDescriptor(conv));

  const sample::ConvSums expected =
      sample::conv_backward(grad_output.host, input.host, weight.host, {2}, {1}, {1}, 2, true);
  int wrong = sample::report("grad_input", grad_input.download(), expected.grad_input);
  wrong |= sample::report("grad_weight", grad_weight.download(), expected.grad_weight);
  wrong |= sample::report("grad_bias", grad_bias.download(), expected.grad_bias);
  return wrong;
}
