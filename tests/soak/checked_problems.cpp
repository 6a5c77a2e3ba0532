// SPDX-License-Identifier: Apache-2.0
// Small convolutions through both interfaces, in memory of their own, compared with plain loops. All numbers
// are small integers, which every type of arithmetic adds exactly.
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "infiniop.h"
#include "infinirt.h"
#include "storm.h"

namespace retrograd::soak {
namespace {

// y = conv(x, w) + b over two equal axes; dx, dw, db from dy.
struct Problem {
  explicit Problem(Monkey& m) {
    groups = m.between(1, 3);
    channels = groups * m.between(1, 3);
    kernels = groups * m.between(1, 3);
    batch = m.between(1, 3);
    kernel = m.between(1, 3);
    stride = m.between(1, 2);
    padding = m.between(0, 1);
    dilation = m.between(1, 2);
    places = m.between(dilation * (kernel - 1) + 1, 12);
    out = (places + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
    const auto fill = [&](std::vector<float>& values, int64_t count) {
      values.resize(static_cast<size_t>(count));
      for (float& value : values) value = static_cast<float>(m.between(-3, 3));
    };
    fill(x, batch * channels * places * places);
    fill(w, kernels * (channels / groups) * kernel * kernel);
    fill(dy, batch * kernels * out * out);
    fill(bias, kernels);
    compute();
    dx.assign(x.size(), -99);
    dw.assign(w.size(), -99);
    db.assign(static_cast<size_t>(kernels), -99);
    y.assign(dy.size(), -99);
  }

  void compute() {
    expected_dx.assign(x.size(), 0);
    expected_dw.assign(w.size(), 0);
    expected_db.assign(static_cast<size_t>(kernels), 0);
    expected_y.assign(dy.size(), 0);
    const int64_t per_group = channels / groups, kernels_per_group = kernels / groups;
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t k = 0; k < kernels; ++k)
        for (int64_t i = 0; i < out; ++i)
          for (int64_t j = 0; j < out; ++j) {
            const auto to = static_cast<size_t>(((n * kernels + k) * out + i) * out + j);
            const float g = dy[to];
            expected_y[to] += bias[static_cast<size_t>(k)];
            expected_db[static_cast<size_t>(k)] += g;
            for (int64_t c = 0; c < per_group; ++c)
              for (int64_t a = 0; a < kernel; ++a)
                for (int64_t b = 0; b < kernel; ++b) {
                  const int64_t row = i * stride - padding + a * dilation,
                                column = j * stride - padding + b * dilation;
                  if (row < 0 || row >= places || column < 0 || column >= places) continue;
                  const int64_t channel = k / kernels_per_group * per_group + c;
                  const auto at =
                      static_cast<size_t>(((n * channels + channel) * places + row) * places + column);
                  const auto tap = static_cast<size_t>(((k * per_group + c) * kernel + a) * kernel + b);
                  expected_dx[at] += g * w[tap];
                  expected_dw[tap] += g * x[at];
                  expected_y[to] += x[at] * w[tap];
                }
          }
  }

  void compare_forward(Monkey& m, const char* interface) const {
    ++m.checked;
    if (y != expected_y) tell(m, interface, " output");
  }
  void compare(Monkey& m, const char* interface) const {
    ++m.checked;
    if (dx == expected_dx && dw == expected_dw && db == expected_db) return;
    tell(m, interface,
         std::string(dx == expected_dx ? "" : " grad_input") + (dw == expected_dw ? "" : " grad_weight") +
             (db == expected_db ? "" : " grad_bias"));
  }
  void tell(Monkey& m, const char* interface, const std::string& what) const {
    m.storm.fail(std::string("wrong results through ") + interface + ": conv input=" + std::to_string(batch) +
                 "x" + std::to_string(channels) + "x" + std::to_string(places) + "x" +
                 std::to_string(places) + " kernels=" + std::to_string(kernels) +
                 " kernel=" + std::to_string(kernel) + " stride=" + std::to_string(stride) +
                 " padding=" + std::to_string(padding) + " dilation=" + std::to_string(dilation) +
                 " groups=" + std::to_string(groups) + what);
  }

  int64_t batch, channels, kernels, groups, kernel, stride, padding, dilation, places, out;
  std::vector<float> x, w, bias, dy, dx, dw, db, y, expected_dx, expected_dw, expected_db, expected_y;
};

// The handles of one call; destroyed with it.
class AclHandles {
 public:
  explicit AclHandles(Monkey& monkey) : monkey_(monkey) {}
  AclHandles(const AclHandles&) = delete;
  AclHandles& operator=(const AclHandles&) = delete;
  ~AclHandles() {
    for (const aclTensor* tensor : tensors_) RG_ACLNN(monkey_, aclDestroyTensor, tensor);
    for (const aclIntArray* array : arrays_) RG_ACLNN(monkey_, aclDestroyIntArray, array);
    if (mask_ != nullptr) RG_ACLNN(monkey_, aclDestroyBoolArray, mask_);
  }
  aclTensor* tensor(const std::vector<int64_t>& shape, std::vector<float>& data) {
    tensors_.push_back(RG_CREATE(monkey_, aclCreateTensor, shape.data(), shape.size(), ACL_FLOAT, nullptr, 0,
                                 shape.size() == 4 ? ACL_FORMAT_NCHW : ACL_FORMAT_ND, shape.data(),
                                 shape.size(), data.data()));
    return tensors_.back();
  }
  aclIntArray* array(const std::vector<int64_t>& values) {
    arrays_.push_back(RG_CREATE(monkey_, aclCreateIntArray, values.data(), values.size()));
    return arrays_.back();
  }
  aclBoolArray* mask() {
    const bool all[3] = {true, true, true};
    return mask_ = RG_CREATE(monkey_, aclCreateBoolArray, all, 3);
  }

 private:
  Monkey& monkey_;
  std::vector<aclTensor*> tensors_;
  std::vector<aclIntArray*> arrays_;
  aclBoolArray* mask_ = nullptr;
};

}  // namespace

void checked_acl_problem(Monkey& m) {
  Problem p(m);
  AclHandles h(m);
  if (RG_ACL(m, aclrtSetDevice, 0) != 0) return;
  aclrtStream stream = nullptr;
  if (m.chance(50) && RG_ACL(m, aclrtCreateStream, &stream) != 0) return;
  const std::vector<int64_t> x{p.batch, p.channels, p.places, p.places},
      w{p.kernels, p.channels / p.groups, p.kernel, p.kernel}, y{p.batch, p.kernels, p.out, p.out};
  const auto pair = [&](int64_t value) { return h.array({value, value}); };
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  const bool forward = m.chance(40);
  const int planned =
      forward
          ? RG_ACLNN(m, aclnnConvolutionGetWorkspaceSize, h.tensor(x, p.x), h.tensor(w, p.w),
                     h.tensor({p.kernels}, p.bias), pair(p.stride), pair(p.padding), pair(p.dilation), false,
                     pair(0), p.groups, h.tensor(y, p.y), 0, &bytes, &executor)
          : RG_ACLNN(m, aclnnConvolutionBackwardGetWorkspaceSize, h.tensor(y, p.dy), h.tensor(x, p.x),
                     h.tensor(w, p.w), h.array({p.kernels}), pair(p.stride), pair(p.padding),
                     pair(p.dilation), false, pair(0), static_cast<int>(p.groups), h.mask(), 0,
                     h.tensor(x, p.dx), h.tensor(w, p.dw), h.tensor({p.kernels}, p.db), &bytes, &executor);
  if (planned == 0) {
    std::vector<char> workspace(static_cast<size_t>(bytes));
    const int ran = forward
                        ? RG_ACLNN(m, aclnnConvolution, workspace.data(), bytes, executor, stream)
                        : RG_ACLNN(m, aclnnConvolutionBackward, workspace.data(), bytes, executor, stream);
    if (ran != 0) RG_ACLNN(m, aclDestroyAclOpExecutor, executor);
    if (ran == 0) {
      if (RG_ACL(m, aclrtSynchronizeStream, stream) == 0)
        forward ? p.compare_forward(m, "aclnn") : p.compare(m, "aclnn");
      else
        m.storm.calls.drain();  // whoever ended the stream has finished its work first
    }
  } else if (planned != 361001) {
    m.storm.fail("phase one refused a legal problem");
  }
  if (stream != nullptr) RG_ACL(m, aclrtDestroyStream, stream);
  RG_ACL(m, aclrtResetDevice, 0);
}

// Nobody else has these handles, so everything must succeed.
void checked_infini_problem(Monkey& m) {
  Problem p(m);
  bool fine = RG_INFINI(m, infinirtSetDevice, INFINI_DEVICE_CPU, 0) == 0;
  infiniopHandle_t handle = nullptr;
  infiniopTensorDescriptor_t tensors[4] = {};
  infiniopConvBackwardDescriptor_t conv = nullptr;
  infinirtStream_t stream = nullptr;
  const auto sizes = [](std::initializer_list<int64_t> values) {
    return std::vector<size_t>(values.begin(), values.end());
  };
  const std::vector<size_t> shapes[4] = {
      sizes({p.batch, p.kernels, p.out, p.out}), sizes({p.batch, p.channels, p.places, p.places}),
      sizes({p.kernels, p.channels / p.groups, p.kernel, p.kernel}), sizes({p.kernels})};
  for (size_t i = 0; i < 4; ++i)
    fine &= RG_INFINI(m, infiniopCreateTensorDescriptor, &tensors[i], shapes[i].size(), shapes[i].data(),
                      nullptr, INFINI_DTYPE_F32) == 0;
  const auto pair = [](int64_t value) { return std::vector<int>(2, static_cast<int>(value)); };
  std::vector<int> pads = pair(p.padding), strides = pair(p.stride), dilations = pair(p.dilation);
  fine &= RG_INFINI(m, infiniopCreateHandle, &handle) == 0;
  fine &= RG_INFINI(m, infiniopCreateConvBackwardDescriptor, handle, &conv, tensors[0], tensors[1],
                    tensors[2], tensors[3], pads.data(), strides.data(), dilations.data(),
                    static_cast<size_t>(p.groups)) == 0;
  if (m.chance(50)) fine &= RG_INFINI(m, infinirtStreamCreate, &stream) == 0;
  size_t bytes = 0;
  fine &= RG_INFINI(m, infiniopGetConvBackwardWorkspaceSize, conv, &bytes) == 0;
  std::vector<char> workspace(bytes);
  fine &= RG_INFINI(m, infiniopConvBackward, conv, workspace.data(), bytes, p.dx.data(), p.dw.data(),
                    p.db.data(), p.dy.data(), p.x.data(), p.w.data(), stream) == 0;
  fine &= RG_INFINI(m, infinirtStreamSynchronize, stream) == 0;
  p.compare(m, "infiniop");
  infiniopConvDescriptor_t forward = nullptr;
  fine &= RG_INFINI(m, infiniopCreateConvDescriptor, handle, &forward, tensors[0], tensors[1], tensors[2],
                    tensors[3], pads.data(), strides.data(), dilations.data(), size_t{2}) == 0;
  fine &= RG_INFINI(m, infiniopGetConvWorkspaceSize, forward, &bytes) == 0;
  workspace.resize(bytes);
  fine &= RG_INFINI(m, infiniopConv, forward, workspace.data(), bytes, p.y.data(), p.x.data(), p.w.data(),
                    p.bias.data(), stream) == 0;
  fine &= RG_INFINI(m, infinirtStreamSynchronize, stream) == 0;
  p.compare_forward(m, "infiniop");
  fine &= RG_INFINI(m, infiniopDestroyConvDescriptor, forward) == 0;
  if (stream != nullptr) fine &= RG_INFINI(m, infinirtStreamDestroy, stream) == 0;
  fine &= RG_INFINI(m, infiniopDestroyConvBackwardDescriptor, conv) == 0;
  fine &= RG_INFINI(m, infiniopDestroyHandle, handle) == 0;
  for (infiniopTensorDescriptor_t tensor : tensors)
    fine &= RG_INFINI(m, infiniopDestroyTensorDescriptor, tensor) == 0;
  if (!fine) m.storm.fail("infiniop refused a legal problem, or a handle that nobody else has");
}

}  // namespace retrograd::soak
