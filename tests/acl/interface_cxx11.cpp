// SPDX-License-Identifier: Apache-2.0
// The acl interface from C++11, with the constructs existing programs use: deleters, qualified enumerators,
// auto.
#include <cstdio>
#include <memory>
#include <type_traits>
#include <vector>

#include "acl/acl.h"
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_convolution_backward.h"

static_assert(std::is_same<aclError, int>::value && std::is_same<aclnnStatus, int32_t>::value,
              "status types");
static_assert(std::is_same<aclrtStream, void*>::value && std::is_same<aclFloat16, uint16_t>::value,
              "handle types");
static_assert(aclDataType::ACL_FLOAT == ACL_FLOAT && aclFormat::ACL_FORMAT_NCHW == ACL_FORMAT_NCHW,
              "enumerators");
static_assert(sizeof(aclDataType) == 4 && sizeof(aclFormat) == 4 && sizeof(aclrtMemcpyKind) == 4,
              "int enumerations");

template <class T>
using Owned = std::unique_ptr<T, aclnnStatus (*)(const T*)>;
using Block = std::unique_ptr<void, aclError (*)(void*)>;

static Block device_copy(const std::vector<float>& values) {
  void* address = nullptr;
  const size_t bytes = values.size() * sizeof(float);
  if (aclrtMalloc(&address, bytes, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS) std::printf("no memory\n");
  aclrtMemcpy(address, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE);
  return Block(address, aclrtFree);
}

static Owned<aclTensor> tensor(const std::vector<int64_t>& shape, const Block& data) {
  const aclFormat format = shape.size() == 4 ? aclFormat::ACL_FORMAT_NCHW : aclFormat::ACL_FORMAT_ND;
  return Owned<aclTensor>(aclCreateTensor(shape.data(), shape.size(), aclDataType::ACL_FLOAT, nullptr, 0,
                                          format, shape.data(), shape.size(), data.get()),
                          aclDestroyTensor);
}

static bool holds(const Block& block, size_t count, float value) {
  std::vector<float> values(count);
  aclrtMemcpy(values.data(), count * sizeof(float), block.get(), count * sizeof(float),
              ACL_MEMCPY_DEVICE_TO_HOST);
  for (float v : values)
    if (v != value) return false;
  return true;
}

static int gradients(aclrtStream stream) {
  const std::vector<int64_t> image{2, 2, 7, 7}, kernel{2, 2, 1, 1}, channels{2}, one{1, 1}, zero{0, 0};
  const std::vector<float> ones(196, 1.0f);
  const Block dy = device_copy(ones), x = device_copy(ones), w = device_copy(std::vector<float>(4, 1.0f));
  const Block dx = device_copy(ones), dw = device_copy(std::vector<float>(4)),
              db = device_copy(std::vector<float>(2));
  const auto dy_t = tensor(image, dy), x_t = tensor(image, x), w_t = tensor(kernel, w);
  const auto dx_t = tensor(image, dx), dw_t = tensor(kernel, dw), db_t = tensor(channels, db);
  const Owned<aclIntArray> ones_a(aclCreateIntArray(one.data(), 2), aclDestroyIntArray);
  const Owned<aclIntArray> zeros_a(aclCreateIntArray(zero.data(), 2), aclDestroyIntArray);
  const Owned<aclIntArray> sizes_a(aclCreateIntArray(channels.data(), 1), aclDestroyIntArray);
  const bool all[3] = {true, true, true};
  const Owned<aclBoolArray> mask(aclCreateBoolArray(all, 3), aclDestroyBoolArray);
  uint64_t size = 0;
  aclOpExecutor* executor;
  auto ret = ACL_SUCCESS;
  ret = aclnnConvolutionBackwardGetWorkspaceSize(
      dy_t.get(), x_t.get(), w_t.get(), sizes_a.get(), ones_a.get(), zeros_a.get(), ones_a.get(), false,
      zeros_a.get(), 1, mask.get(), 1, dx_t.get(), dw_t.get(), db_t.get(), &size, &executor);
  if (ret != ACLNN_SUCCESS) return 2;
  const Block workspace = device_copy(std::vector<float>(size / sizeof(float) + 1));
  if (aclnnConvolutionBackward(workspace.get(), size, executor, stream) != ACL_SUCCESS) return 3;
  if (aclrtSynchronizeStream(stream) != ACL_SUCCESS) return 4;
  return holds(dx, 196, 2) && holds(dw, 4, 98) && holds(db, 2, 98) ? 0 : 5;
}

int main() {
  aclrtStream stream = nullptr;
  if (aclInit(nullptr) != ACL_SUCCESS || aclrtSetDevice(0) != ACL_SUCCESS) return 1;
  if (aclrtCreateStream(&stream) != ACL_SUCCESS) return 1;
  const int result = gradients(stream);
  const char* text = aclGetRecentErrMsg();
  if (text != nullptr) std::printf("%s\n", text);
  aclrtDestroyStream(stream);
  aclrtResetDevice(0);
  return aclFinalize() == ACL_SUCCESS ? result : 6;
}
