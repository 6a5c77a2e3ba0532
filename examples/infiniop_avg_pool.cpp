// SPDX-License-Identifier: Apache-2.0
// The gradient of average pooling through infiniop: in 1-D with a window that hangs over the end, and in 2-D.
#include "infini_session.h"
#include "plain_loops.h"

namespace {

int pool(const sample::InfiniSession& session, const sample::Shape& grad_output_shape,
         const sample::Shape& input_shape, std::vector<size_t> kernel, std::vector<size_t> strides,
         std::vector<size_t> pads, bool ceil_mode) {
  std::printf("%zu-D, %s mode\n", kernel.size(), ceil_mode ? "ceil" : "floor");
  const sample::InfiniTensor grad_output(sample::numbers(grad_output_shape, 1));
  const sample::InfiniTensor grad_input(sample::unwritten(input_shape));

  // grad_input stands in for the input: of that, the operator needs the shape only, and no data below.
  infiniopAvgPoolBackwardDescriptor_t pooling = nullptr;
  sample::check(infiniopCreateAvgPoolBackwardDescriptor(
      session.handle(), &pooling, grad_input.descriptor(), grad_output.descriptor(), grad_input.descriptor(),
      kernel.data(), strides.data(), pads.data(), ceil_mode));
  size_t bytes = 0;
  sample::check(infiniopGetAvgPoolBackwardWorkspaceSize(pooling, &bytes));
  const sample::InfiniMemory workspace = sample::allocate(bytes);
  sample::check(infiniopAvgPoolBackward(pooling, workspace.get(), bytes, grad_input.data(),
                                        grad_output.data(),
                                        /*input=*/nullptr, session.stream()));
  sample::check(infinirtStreamSynchronize(session.stream()));
  sample::check(infiniopDestroyAvgPoolBackwardDescriptor(pooling));

  const sample::Sums expected = sample::avg_pool_backward(
      grad_output.host, input_shape, {kernel.begin(), kernel.end()}, {strides.begin(), strides.end()},
      {pads.begin(), pads.end()}, /*count_padding=*/true);
  return sample::report("grad_input", grad_input.download(), expected);
}

}  // namespace

int main() {
  const sample::InfiniSession session;
  // Five elements under windows of two: the third window covers the last element alone and passes all of its
  // gradient on, where a full window passes half.
  int wrong = pool(session, {1, 2, 3}, {1, 2, 5}, {2}, {2}, {0}, true);
  wrong |= pool(session, {2, 3, 4, 5}, {2, 3, 8, 9}, {3, 3}, {2, 2}, {1, 1}, false);
  return wrong;
}
