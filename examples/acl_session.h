// SPDX-License-Identifier: Apache-2.0
// The acl objects a sample needs, each released by its destructor: a device with a stream, tensors, arrays.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "sample.h"

namespace sample {

// The message names the function that failed, the argument, its value and the rule.
inline void check(int status) {
  if (status == ACL_SUCCESS) return;
  const char* why = aclGetRecentErrMsg();
  std::fprintf(stderr, "%s\n", why != nullptr ? why : "an acl call failed without a message");
  std::exit(EXIT_FAILURE);
}

// Declare it first, so that it outlives whatever lies on its device.
class AclSession {
 public:
  AclSession() {
    check(aclInit(nullptr));
    check(aclrtSetDevice(0));
    check(aclrtCreateStream(&stream_));
    std::printf("on %s\n", aclrtGetSocName());
  }
  AclSession(const AclSession&) = delete;
  AclSession& operator=(const AclSession&) = delete;
  ~AclSession() {
    check(aclrtDestroyStream(stream_));
    check(aclrtResetDevice(0));
    check(aclFinalize());
  }
  aclrtStream stream() const { return stream_; }

 private:
  aclrtStream stream_ = nullptr;
};

using AclMemory = std::unique_ptr<void, aclError (*)(void*)>;
using AclIntArray = std::unique_ptr<aclIntArray, aclnnStatus (*)(const aclIntArray*)>;
using AclBoolArray = std::unique_ptr<aclBoolArray, aclnnStatus (*)(const aclBoolArray*)>;

// Not every plan needs a workspace; a null one is right for 0 bytes, which aclrtMalloc refuses.
inline AclMemory allocate(uint64_t bytes) {
  void* address = nullptr;
  if (bytes > 0) check(aclrtMalloc(&address, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  return AclMemory(address, aclrtFree);
}

inline AclIntArray ints(const std::vector<int64_t>& values) {
  return AclIntArray(aclCreateIntArray(values.data(), values.size()), aclDestroyIntArray);
}

// Which gradients are wanted.
inline AclBoolArray mask(bool grad_input, bool grad_weight, bool grad_bias) {
  const bool values[] = {grad_input, grad_weight, grad_bias};
  return AclBoolArray(aclCreateBoolArray(values, 3), aclDestroyBoolArray);
}

// A tensor on the device that starts with the contents of a host one.
class AclTensor {
 public:
  AclTensor(const Tensor& contents, aclFormat format)
      : host(contents), memory_(allocate(contents.bytes())), tensor_(nullptr, aclDestroyTensor) {
    check(aclrtMemcpy(memory_.get(), host.bytes(), host.values.data(), host.bytes(),
                      ACL_MEMCPY_HOST_TO_DEVICE));
    // Null strides: dense, row-major. The storage has the shape of the view, for nothing is cut out of it.
    tensor_.reset(aclCreateTensor(host.shape.data(), host.shape.size(), ACL_FLOAT, nullptr, 0, format,
                                  host.shape.data(), host.shape.size(), memory_.get()));
  }
  aclTensor* get() const { return tensor_.get(); }
  void* data() const { return memory_.get(); }
  Tensor download() const {
    Tensor result(host.shape, 0.0f);
    check(aclrtMemcpy(result.values.data(), result.bytes(), memory_.get(), result.bytes(),
                      ACL_MEMCPY_DEVICE_TO_HOST));
    return result;
  }

  const Tensor host;

 private:
  AclMemory memory_;
  std::unique_ptr<aclTensor, aclnnStatus (*)(const aclTensor*)> tensor_;
};

}  // namespace sample
