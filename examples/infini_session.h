// SPDX-License-Identifier: Apache-2.0
// The infinirt and infiniop objects a sample needs, each released by its destructor.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <type_traits>
#include <vector>

#include "infiniop.h"
#include "infinirt.h"
#include "retrograd/retrograd.h"
#include "sample.h"

namespace sample {

// The status says little; the library's own sentence names the argument, its value and the rule.
inline void check(infiniStatus_t status) {
  if (status == INFINI_STATUS_SUCCESS) return;
  std::fprintf(stderr, "%s\n", retrogradGetLastError());
  std::exit(EXIT_FAILURE);
}

class InfiniSession {
 public:
  InfiniSession() {
    check(infinirtInit());
    check(infinirtSetDevice(INFINI_DEVICE_CPU, 0));
    check(infinirtStreamCreate(&stream_));
    check(infiniopCreateHandle(&handle_));
  }
  InfiniSession(const InfiniSession&) = delete;
  InfiniSession& operator=(const InfiniSession&) = delete;
  ~InfiniSession() {
    check(infiniopDestroyHandle(handle_));
    check(infinirtStreamDestroy(stream_));
  }
  infinirtStream_t stream() const { return stream_; }
  infiniopHandle_t handle() const { return handle_; }

 private:
  infinirtStream_t stream_ = nullptr;
  infiniopHandle_t handle_ = nullptr;
};

using InfiniMemory = std::unique_ptr<void, infiniStatus_t (*)(void*)>;

inline InfiniMemory allocate(size_t bytes) {
  void* address = nullptr;
  check(infinirtMalloc(&address, bytes));
  return InfiniMemory(address, infinirtFree);
}

// Data on the device that starts with the contents of a host tensor, and its description.
class InfiniTensor {
 public:
  explicit InfiniTensor(const Tensor& contents)
      : host(contents),
        memory_(allocate(contents.bytes())),
        descriptor_(nullptr, infiniopDestroyTensorDescriptor) {
    check(infinirtMemcpy(memory_.get(), host.values.data(), host.bytes(), INFINIRT_MEMCPY_H2D));
    const std::vector<size_t> shape(host.shape.begin(), host.shape.end());
    infiniopTensorDescriptor_t descriptor = nullptr;
    check(infiniopCreateTensorDescriptor(&descriptor, shape.size(), shape.data(), nullptr, INFINI_DTYPE_F32));
    descriptor_.reset(descriptor);
  }
  infiniopTensorDescriptor_t descriptor() const { return descriptor_.get(); }
  void* data() const { return memory_.get(); }
  Tensor download() const {
    Tensor result(host.shape, 0.0f);
    check(infinirtMemcpy(result.values.data(), memory_.get(), result.bytes(), INFINIRT_MEMCPY_D2H));
    return result;
  }

  const Tensor host;

 private:
  using Descriptor = std::remove_pointer<infiniopTensorDescriptor_t>::type;
  InfiniMemory memory_;
  std::unique_ptr<Descriptor, infiniStatus_t (*)(infiniopTensorDescriptor_t)> descriptor_;
};

}  // namespace sample
