// SPDX-License-Identifier: Apache-2.0
// A whole training step through aclnn: convolutions and average pooling, forward and backward. Executors are
// made once, kept, and run in every step.
#include "acl_session.h"
#include "aclnnop/aclnn_avgpool2d.h"
#include "aclnnop/aclnn_avgpool2d_backward.h"
#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "training.h"

namespace {

using sample::AclTensor;
using sample::Shape;
using sample::Values;

void upload(const AclTensor& tensor, const Values& values) {
  const size_t bytes = values.size() * sizeof(float);
  sample::check(aclrtMemcpy(tensor.data(), bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
}

// An operator that runs any number of times on the same tensors.
class Repeated {
 public:
  using PhaseTwo = aclnnStatus (*)(void*, uint64_t, aclOpExecutor*, aclrtStream);
  Repeated(aclrtStream stream, PhaseTwo phase_two)
      : stream_(stream), phase_two_(phase_two), workspace_(nullptr, aclrtFree) {}
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;
  ~Repeated() { sample::check(aclDestroyAclOpExecutor(executor_)); }
  // Behind phase one, which writes these two.
  uint64_t* bytes() { return &bytes_; }
  aclOpExecutor** executor() { return &executor_; }
  void keep(aclnnStatus status) {
    sample::check(status);
    sample::check(aclSetAclOpExecutorRepeatable(executor_));
    workspace_ = sample::allocate(bytes_);
  }
  void run() {
    sample::check(phase_two_(workspace_.get(), bytes_, executor_, stream_));
    sample::check(aclrtSynchronizeStream(stream_));
  }

 private:
  aclrtStream stream_;
  PhaseTwo phase_two_;
  uint64_t bytes_ = 0;
  aclOpExecutor* executor_ = nullptr;
  sample::AclMemory workspace_;
};

// Stride 1, and as much padding as keeps the size, or a kernel of one tap.
class Conv {
 public:
  Conv(const sample::AclSession& session, const Shape& x, const Shape& w, int64_t padding)
      : x_(sample::unwritten(x), ACL_FORMAT_NCHW),
        w_(sample::unwritten(w), ACL_FORMAT_NCHW),
        b_(sample::unwritten({w[0]}), ACL_FORMAT_ND),
        y_(sample::unwritten({x[0], w[0], x[2], x[3]}), ACL_FORMAT_NCHW),
        dy_(y_.host, ACL_FORMAT_NCHW),
        dx_(x_.host, ACL_FORMAT_NCHW),
        dw_(w_.host, ACL_FORMAT_NCHW),
        db_(b_.host, ACL_FORMAT_ND),
        forward_(session.stream(), aclnnConvolution),
        backward_(session.stream(), aclnnConvolutionBackward) {
    const auto ones = sample::ints({1, 1}), zeros = sample::ints({0, 0}),
               pads = sample::ints({padding, padding}), bias_sizes = sample::ints({w[0]});
    const auto all = sample::mask(true, true, true);
    forward_.keep(aclnnConvolutionGetWorkspaceSize(
        x_.get(), w_.get(), b_.get(), ones.get(), pads.get(), ones.get(), /*transposed=*/false, zeros.get(),
        /*groups=*/1, y_.get(), /*cubeMathType=*/0, forward_.bytes(), forward_.executor()));
    backward_.keep(aclnnConvolutionBackwardGetWorkspaceSize(
        dy_.get(), x_.get(), w_.get(), bias_sizes.get(), ones.get(), pads.get(), ones.get(),
        /*transposed=*/false, zeros.get(), /*groups=*/1, all.get(), /*cubeMathType=*/0, dx_.get(), dw_.get(),
        db_.get(), backward_.bytes(), backward_.executor()));
  }
  Values forward(const Values& x, const Values& w, const Values& b) {
    upload(x_, x);
    upload(w_, w);
    upload(b_, b);
    forward_.run();
    return y_.download().values;
  }
  // x and w are those of the last forward(), and still there.
  sample::ConvGradients backward(const Values& dy, const Values& /*x*/, const Values& /*w*/) {
    upload(dy_, dy);
    backward_.run();
    return {dx_.download().values, dw_.download().values, db_.download().values};
  }

 private:
  AclTensor x_, w_, b_, y_, dy_, dx_, dw_, db_;
  Repeated forward_, backward_;
};

class Pool {
 public:
  Pool(const sample::AclSession& session, const Shape& x, int64_t window)
      : x_(sample::unwritten(x), ACL_FORMAT_NCHW),
        y_(sample::unwritten({x[0], x[1], x[2] / window, x[3] / window}), ACL_FORMAT_NCHW),
        dy_(y_.host, ACL_FORMAT_NCHW),
        dx_(x_.host, ACL_FORMAT_NCHW),
        forward_(session.stream(), aclnnAvgPool2d),
        backward_(session.stream(), aclnnAvgPool2dBackward) {
    const auto size = sample::ints({window, window}), zeros = sample::ints({0, 0});
    forward_.keep(aclnnAvgPool2dGetWorkspaceSize(x_.get(), size.get(), size.get(), zeros.get(),
                                                 /*ceilMode=*/false, /*countIncludePad=*/true,
                                                 /*divisorOverride=*/0, /*cubeMathType=*/0, y_.get(),
                                                 forward_.bytes(), forward_.executor()));
    backward_.keep(aclnnAvgPool2dBackwardGetWorkspaceSize(
        dy_.get(), x_.get(), size.get(), size.get(), zeros.get(), /*ceilMode=*/false,
        /*countIncludePad=*/true,
        /*divisorOverride=*/0, /*cubeMathType=*/0, dx_.get(), backward_.bytes(), backward_.executor()));
  }
  Values forward(const Values& x) {
    upload(x_, x);
    forward_.run();
    return y_.download().values;
  }
  Values backward(const Values& dy) {
    upload(dy_, dy);
    backward_.run();
    return dx_.download().values;
  }

 private:
  AclTensor x_, y_, dy_, dx_;
  Repeated forward_, backward_;
};

}  // namespace

int main() {
  const sample::AclSession session;
  sample::Network<sample::AclSession, Conv, Pool> network(session);
  return sample::train(network);
}
