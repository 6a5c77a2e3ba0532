// SPDX-License-Identifier: Apache-2.0
// A whole training step through infiniop: convolutions and average pooling, forward and backward. Descriptors
// are made once and run in every step.
#include "infini_session.h"
#include "training.h"

namespace {

using sample::InfiniTensor;
using sample::Shape;
using sample::Values;

void upload(const InfiniTensor& tensor, const Values& values) {
  sample::check(
      infinirtMemcpy(tensor.data(), values.data(), values.size() * sizeof(float), INFINIRT_MEMCPY_H2D));
}

// A descriptor with its workspace.
class Operator {
 public:
  using Destroy = infiniStatus_t (*)(InfiniopDescriptor*);
  using Size = infiniStatus_t (*)(InfiniopDescriptor*, size_t*);
  Operator(InfiniopDescriptor* descriptor, Size size, Destroy destroy)
      : descriptor_(descriptor, destroy), memory_(nullptr, infinirtFree) {
    sample::check(size(descriptor, &bytes_));
    if (bytes_ > 0) memory_ = sample::allocate(bytes_);
  }
  InfiniopDescriptor* get() const { return descriptor_.get(); }
  void* workspace() const { return memory_.get(); }
  size_t bytes() const { return bytes_; }

 private:
  std::unique_ptr<InfiniopDescriptor, Destroy> descriptor_;
  sample::InfiniMemory memory_;
  size_t bytes_ = 0;
};

// Stride 1, and as much padding as keeps the size, or a kernel of one tap.
class Conv {
 public:
  Conv(const sample::InfiniSession& session, const Shape& x, const Shape& w, int64_t padding)
      : stream_(session.stream()),
        x_(sample::unwritten(x)),
        w_(sample::unwritten(w)),
        b_(sample::unwritten({w[0]})),
        y_(sample::unwritten({x[0], w[0], x[2], x[3]})),
        dy_(y_.host),
        dx_(x_.host),
        dw_(w_.host),
        db_(b_.host),
        forward_(make_forward(session.handle(), static_cast<int>(padding)), infiniopGetConvWorkspaceSize,
                 infiniopDestroyConvDescriptor),
        backward_(make_backward(session.handle(), static_cast<int>(padding)),
                  infiniopGetConvBackwardWorkspaceSize, infiniopDestroyConvBackwardDescriptor) {}
  Values forward(const Values& x, const Values& w, const Values& b) {
    upload(x_, x);
    upload(w_, w);
    upload(b_, b);
    sample::check(infiniopConv(forward_.get(), forward_.workspace(), forward_.bytes(), y_.data(), x_.data(),
                               w_.data(), b_.data(), stream_));
    sample::check(infinirtStreamSynchronize(stream_));
    return y_.download().values;
  }
  // x and w are those of the last forward(), and still there.
  sample::ConvGradients backward(const Values& dy, const Values& /*x*/, const Values& /*w*/) {
    upload(dy_, dy);
    sample::check(infiniopConvBackward(backward_.get(), backward_.workspace(), backward_.bytes(), dx_.data(),
                                       dw_.data(), db_.data(), dy_.data(), x_.data(), w_.data(), stream_));
    sample::check(infinirtStreamSynchronize(stream_));
    return {dx_.download().values, dw_.download().values, db_.download().values};
  }

 private:
  InfiniopDescriptor* make_forward(infiniopHandle_t handle, int padding) {
    int pads[] = {padding, padding}, ones[] = {1, 1};
    infiniopConvDescriptor_t made = nullptr;
    sample::check(infiniopCreateConvDescriptor(handle, &made, y_.descriptor(), x_.descriptor(),
                                               w_.descriptor(), b_.descriptor(), pads, ones, ones, /*n=*/2));
    return made;
  }
  InfiniopDescriptor* make_backward(infiniopHandle_t handle, int padding) {
    int pads[] = {padding, padding}, ones[] = {1, 1};
    infiniopConvBackwardDescriptor_t made = nullptr;
    sample::check(infiniopCreateConvBackwardDescriptor(handle, &made, dy_.descriptor(), x_.descriptor(),
                                                       w_.descriptor(), b_.descriptor(), pads, ones, ones,
                                                       /*n=*/1));
    return made;
  }

  infinirtStream_t stream_;
  InfiniTensor x_, w_, b_, y_, dy_, dx_, dw_, db_;
  Operator forward_, backward_;
};

class Pool {
 public:
  Pool(const sample::InfiniSession& session, const Shape& x, int64_t window)
      : stream_(session.stream()),
        x_(sample::unwritten(x)),
        y_(sample::unwritten({x[0], x[1], x[2] / window, x[3] / window})),
        dy_(y_.host),
        dx_(x_.host),
        forward_(make_forward(session.handle(), static_cast<size_t>(window)), infiniopGetAvgPoolWorkspaceSize,
                 infiniopDestroyAvgPoolDescriptor),
        backward_(make_backward(session.handle(), static_cast<size_t>(window)),
                  infiniopGetAvgPoolBackwardWorkspaceSize, infiniopDestroyAvgPoolBackwardDescriptor) {}
  Values forward(const Values& x) {
    upload(x_, x);
    sample::check(infiniopAvgPool(forward_.get(), forward_.workspace(), forward_.bytes(), y_.data(),
                                  x_.data(), stream_));
    sample::check(infinirtStreamSynchronize(stream_));
    return y_.download().values;
  }
  Values backward(const Values& dy) {
    upload(dy_, dy);
    sample::check(infiniopAvgPoolBackward(backward_.get(), backward_.workspace(), backward_.bytes(),
                                          dx_.data(), dy_.data(), nullptr, stream_));
    sample::check(infinirtStreamSynchronize(stream_));
    return dx_.download().values;
  }

 private:
  InfiniopDescriptor* make_forward(infiniopHandle_t handle, size_t window) {
    size_t size[] = {window, window}, pads[] = {0, 0};
    infiniopAvgPoolDescriptor_t made = nullptr;
    sample::check(infiniopCreateAvgPoolDescriptor(handle, &made, y_.descriptor(), x_.descriptor(), size, size,
                                                  pads, /*ceil_mode=*/false));
    return made;
  }
  InfiniopDescriptor* make_backward(infiniopHandle_t handle, size_t window) {
    size_t size[] = {window, window}, pads[] = {0, 0};
    infiniopAvgPoolBackwardDescriptor_t made = nullptr;
    sample::check(infiniopCreateAvgPoolBackwardDescriptor(handle, &made, dx_.descriptor(), dy_.descriptor(),
                                                          x_.descriptor(), size, size, pads,
                                                          /*ceil_mode=*/false));
    return made;
  }

  infinirtStream_t stream_;
  InfiniTensor x_, y_, dy_, dx_;
  Operator forward_, backward_;
};

}  // namespace

int main() {
  const sample::InfiniSession session;
  sample::Network<sample::InfiniSession, Conv, Pool> network(session);
  return sample::train(network);
}
