// SPDX-License-Identifier: Apache-2.0
// The three gradients of 1-D, 2-D and 3-D convolutions through infiniop: create, run, destroy.
#include "infini_session.h"
#include "plain_loops.h"

namespace {

int convolve(const sample::InfiniSession& session, const sample::Shape& grad_output_shape,
             const sample::Shape& input_shape, const sample::Shape& weight_shape, std::vector<int> pads,
             std::vector<int> strides, std::vector<int> dilations, size_t groups) {
  std::printf("%zu-D\n", pads.size());
  const sample::InfiniTensor grad_output(sample::numbers(grad_output_shape, 1));
  const sample::InfiniTensor input(sample::numbers(input_shape, 2)),
      grad_input(sample::unwritten(input_shape));
  const sample::InfiniTensor weight(sample::numbers(weight_shape, 3)),
      grad_weight(sample::unwritten(weight_shape));
  const sample::InfiniTensor grad_bias(sample::unwritten({weight_shape[0]}));

  // The descriptor copies what it is given, and can be run many times with other data.
  infiniopConvBackwardDescriptor_t conv = nullptr;
  sample::check(infiniopCreateConvBackwardDescriptor(
      session.handle(), &conv, grad_output.descriptor(), input.descriptor(), weight.descriptor(),
      grad_bias.descriptor(), pads.data(), strides.data(), dilations.data(), groups));
  size_t bytes = 0;
  sample::check(infiniopGetConvBackwardWorkspaceSize(conv, &bytes));
  const sample::InfiniMemory workspace = sample::allocate(bytes);
  sample::check(infiniopConvBackward(conv, workspace.get(), bytes, grad_input.data(), grad_weight.data(),
                                     grad_bias.data(), grad_output.data(), input.data(), weight.data(),
                                     session.stream()));
  sample::check(infinirtStreamSynchronize(session.stream()));
  sample::check(infiniopDestroyConvBackwardDescriptor(conv));

  const sample::ConvSums expected = sample::conv_backward(
      grad_output.host, input.host, weight.host, {strides.begin(), strides.end()}, {pads.begin(), pads.end()},
      {dilations.begin(), dilations.end()}, static_cast<int64_t>(groups), false);
  int wrong = sample::report("grad_input", grad_input.download(), expected.grad_input);
  wrong |= sample::report("grad_weight", grad_weight.download(), expected.grad_weight);
  wrong |= sample::report("grad_bias", grad_bias.download(), expected.grad_bias);
  return wrong;
}

}  // namespace

int main() {
  const sample::InfiniSession session;
  int wrong = convolve(session, {2, 4, 8}, {2, 4, 16}, {4, 2, 5}, {2}, {2}, {1}, 2);
  wrong |= convolve(session, {2, 6, 6, 4}, {2, 3, 10, 10}, {6, 3, 3, 3}, {0, 1}, {1, 2}, {2, 2}, 1);
  wrong |= convolve(session, {1, 4, 4, 6, 3}, {1, 2, 5, 5, 5}, {4, 2, 2, 2, 2}, {0, 1, 1}, {1, 1, 2},
                    {1, 1, 1}, 1);
  return wrong;
}
