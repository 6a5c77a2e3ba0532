// SPDX-License-Identifier: Apache-2.0
// Infiniop objects decoded from a fuzzer's bytes: live ones of any shape, and null, dead and foreign ones.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "byte_reader.h"
#include "infiniop.h"
#include "view_memory.h"

namespace retrograd::fuzz {

struct InfiniTensorArgument {
  infiniopTensorDescriptor_t descriptor = nullptr;
  std::vector<int64_t> shape;
  ViewMemory memory;  // for the tensor the descriptor describes
  ViewMemory twin;    // the same once more: a gradient with that tensor's shape and strides
  bool live = false;
};

// The attribute arrays of one call, in memory of exactly the size a caller with that width would give.
class AttributeArrays {
 public:
  // `arrays` of them; `count` numbers each. Whether 32 or 64 bits wide is read first.
  AttributeArrays(ByteReader& reader, size_t arrays, size_t count);
  // Null when the input says so.
  void* pointer(size_t array) { return arrays_[array].empty() ? nullptr : arrays_[array].data(); }
  // For shapes that fit; empty when the pointer is null.
  const std::vector<int64_t>& values(size_t array) const { return values_[array]; }

 private:
  std::vector<std::vector<int64_t>> values_;
  std::vector<std::vector<unsigned char>> arrays_;
};

class InfiniArguments {
 public:
  explicit InfiniArguments(ByteReader& reader) : reader_(reader) {}
  InfiniArguments(const InfiniArguments&) = delete;
  InfiniArguments& operator=(const InfiniArguments&) = delete;
  ~InfiniArguments();

  infiniopHandle_t handle();
  InfiniTensorArgument& tensor(const std::vector<int64_t>& fitting);
  bool small() const;

 private:
  ByteReader& reader_;
  infiniopHandle_t handle_ = nullptr;
  std::vector<std::unique_ptr<InfiniTensorArgument>> tensors_;
  std::vector<infiniopTensorDescriptor_t> descriptors_;
};

// Aborts when a failure wrote a descriptor, lacks a message, or has a code of no documented kind.
bool created(infiniStatus_t status, const struct InfiniopDescriptor* descriptor);
inline struct InfiniopDescriptor* untouched() {
  return reinterpret_cast<struct InfiniopDescriptor*>(uintptr_t{0xDEADBEEF});
}

// Runs a descriptor with a workspace that may be a byte short and with operands that may be null, as the
// input says. `call(workspace, size, unless)` passes its operands as unless(1, address), unless(2, address),
// … Aborts when the status is of no documented kind.
template <class Call>
void run_any(ByteReader& reader, infiniStatus_t (*workspace_size)(struct InfiniopDescriptor*, size_t*),
             struct InfiniopDescriptor* descriptor, Call&& call) {
  const uint8_t mode = reader.byte();
  const auto unless = [mode](int bit, void* address) { return (mode >> bit & 1) != 0 ? nullptr : address; };
  size_t bytes = 0;
  require(workspace_size(descriptor, &bytes) == INFINI_STATUS_SUCCESS);
  const size_t given = (mode & 1) != 0 && bytes > 0 ? bytes - 1 : bytes;
  std::vector<unsigned char> workspace(given, 0xA5);
  const infiniStatus_t status = call(workspace.data(), given, unless);
  require(status == INFINI_STATUS_SUCCESS || status == INFINI_STATUS_BAD_PARAM ||
          status == INFINI_STATUS_INSUFFICIENT_WORKSPACE);
  if (given < bytes) require(status != INFINI_STATUS_SUCCESS);
}

}  // namespace retrograd::fuzz
