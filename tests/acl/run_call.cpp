// SPDX-License-Identifier: Apache-2.0
// Device memory of a test's tensors, and the places of their elements in it.
#include "run_call.h"

#include <algorithm>
#include <cstring>

namespace retrograd::acl_test {

DeviceBlock::DeviceBlock(const std::vector<uint8_t>& bytes) : size_(bytes.size()) {
  if (bytes.empty()) return;
  EXPECT_EQ(aclrtMalloc(&address_, size_, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(address_, size_, bytes.data(), size_, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
}

DeviceBlock::~DeviceBlock() {
  if (address_ == nullptr) return;
  EXPECT_EQ(aclrtFree(address_), ACL_SUCCESS);
}

std::vector<uint8_t> DeviceBlock::bytes() const {
  std::vector<uint8_t> bytes(size_);
  EXPECT_EQ(aclrtMemcpy(bytes.data(), size_, address_, size_, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
  return bytes;
}

size_t block_bytes(const TensorArg& arg) {
  const int64_t elements = arg.storage.empty() ? count_of(arg.shape) : count_of(arg.storage);
  return static_cast<size_t>(elements) * aclDataTypeSize(arg.dtype);
}

int64_t element_offset(const TensorArg& arg, int64_t index) {
  const Sizes strides = arg.strides.value_or(dense_strides(arg.shape));
  int64_t offset = arg.offset;
  for (size_t i = arg.shape.size(); i-- > 0;) {
    offset += index % arg.shape[i] * strides[i];
    index /= arg.shape[i];
  }
  return offset;
}

std::vector<uint8_t> scatter(const TensorArg& arg, const Values& values) {
  EXPECT_EQ(static_cast<int64_t>(values.size()), count_of(arg.shape));
  const size_t width = aclDataTypeSize(arg.dtype);
  const auto encoded = encode(arg.dtype, values);
  std::vector<uint8_t> bytes(block_bytes(arg), 0xAA);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<size_t>(element_offset(arg, static_cast<int64_t>(i)));
    std::memcpy(bytes.data() + at * width, encoded.data() + i * width, width);
  }
  return bytes;
}

Values gather(const TensorArg& arg, const std::vector<uint8_t>& bytes) {
  const size_t width = aclDataTypeSize(arg.dtype);
  std::vector<uint8_t> dense(static_cast<size_t>(count_of(arg.shape)) * width);
  for (size_t i = 0; i < dense.size() / width; ++i) {
    const auto at = static_cast<size_t>(element_offset(arg, static_cast<int64_t>(i)));
    std::memcpy(dense.data() + i * width, bytes.data() + at * width, width);
  }
  return decode(arg.dtype, dense);
}

}  // namespace retrograd::acl_test
