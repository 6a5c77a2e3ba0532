// SPDX-License-Identifier: Apache-2.0
// The aclrt calls on memory: alignment, bounds, and copies that are refused before a byte moves.
#include <cstdint>
#include <cstring>

#include "run_call.h"

namespace retrograd::acl_test {
namespace {

constexpr aclError kInvalid = ACL_ERROR_INVALID_PARAM;

class Memory : public AclTest {};

TEST_F(Memory, IsAlignedTo64Bytes) {
  for (const size_t size : {size_t{1}, size_t{63}, size_t{64}, size_t{1000}}) {
    for (int policy = 0; policy <= 5; ++policy) {
      void* block = nullptr;
      ASSERT_EQ(aclrtMalloc(&block, size, static_cast<aclrtMemMallocPolicy>(policy)), ACL_SUCCESS);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
      EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
    }
    void* block = nullptr;
    ASSERT_EQ(aclrtMallocHost(&block, size), ACL_SUCCESS);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
    EXPECT_EQ(aclrtFreeHost(block), ACL_SUCCESS);
  }
}

TEST_F(Memory, OfNoSizeOrNoAddressIsRefused) {
  void* block = this;
  EXPECT_TRUE(failed_with(aclrtMalloc(nullptr, 8, ACL_MEM_MALLOC_HUGE_FIRST), kInvalid, {"devPtr is null"}));
  EXPECT_TRUE(
      failed_with(aclrtMalloc(&block, 0, ACL_MEM_MALLOC_HUGE_FIRST), kInvalid, {"size is 0", "at least 1"}));
  EXPECT_TRUE(failed_with(aclrtMallocHost(nullptr, 8), kInvalid, {"hostPtr is null"}));
  EXPECT_TRUE(failed_with(aclrtMallocHost(&block, 0), kInvalid, {"size is 0"}));
  EXPECT_TRUE(failed_with(aclrtFree(nullptr), kInvalid, {"devPtr is null"}));
  EXPECT_TRUE(failed_with(aclrtFreeHost(nullptr), kInvalid, {"hostPtr is null"}));
  EXPECT_EQ(block, this);
}

TEST_F(Memory, OfAnUnknownPolicyIsRefused) {
  void* block = this;
  for (const int policy : {-1, 6, 1000}) {
    EXPECT_TRUE(failed_with(aclrtMalloc(&block, 8, static_cast<aclrtMemMallocPolicy>(policy)),
                            ACL_ERROR_RT_PARAM_INVALID, {"policy is " + std::to_string(policy), "0 to 5"}));
  }
  EXPECT_EQ(block, this);
}

TEST_F(Memory, BeyondWhatThereIsIsRefused) {
  void* block = this;
  for (const size_t size : {SIZE_MAX, SIZE_MAX / 2, size_t{1} << 60}) {
    EXPECT_TRUE(failed_with(aclrtMalloc(&block, size, ACL_MEM_MALLOC_HUGE_FIRST),
                            ACL_ERROR_RT_MEMORY_ALLOCATION, {}));
    EXPECT_TRUE(failed_with(aclrtMallocHost(&block, size), ACL_ERROR_RT_MEMORY_ALLOCATION, {}));
  }
  EXPECT_EQ(block, this);
}

TEST_F(Memory, IsFreedByTheStartOfItsBlockOnceAndInItsSpace) {
  void *device = nullptr, *host = nullptr;
  ASSERT_EQ(aclrtMalloc(&device, 128, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  ASSERT_EQ(aclrtMallocHost(&host, 128), ACL_SUCCESS);
  char own = 0;
  constexpr aclError kParam = ACL_ERROR_RT_PARAM_INVALID;
  EXPECT_TRUE(failed_with(aclrtFree(static_cast<char*>(device) + 1), kParam,
                          {"devPtr is 0x", "1 bytes into a block of 128"}));
  EXPECT_TRUE(failed_with(aclrtFree(&own), kParam, {"devPtr is 0x", "not the start of a live block"}));
  EXPECT_TRUE(failed_with(aclrtFree(host), kParam, {"devPtr is 0x", "host memory", "device memory"}));
  EXPECT_TRUE(failed_with(aclrtFreeHost(device), kParam, {"hostPtr is 0x", "device memory", "host memory"}));
  EXPECT_EQ(aclrtFree(device), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreeHost(host), ACL_SUCCESS);
  EXPECT_TRUE(failed_with(aclrtFree(device), kParam, {"not the start of a live block"}));
  EXPECT_TRUE(failed_with(aclrtFreeHost(host), kParam, {"not the start of a live block"}));
}

TEST_F(Memory, IsCopiedInEveryDirection) {
  const DeviceBlock device(std::vector<uint8_t>{1, 2, 3, 4}), other(size_t{4});
  for (int kind = 0; kind <= 4; ++kind) {
    ASSERT_EQ(aclrtMemset(other.get(), 4, 0, 4), ACL_SUCCESS);
    ASSERT_EQ(aclrtMemcpy(other.get(), 4, device.get(), 3, static_cast<aclrtMemcpyKind>(kind)), ACL_SUCCESS);
    EXPECT_EQ(other.bytes(), (std::vector<uint8_t>{1, 2, 3, 0}));
  }
  ASSERT_EQ(aclrtMemsetAsync(other.get(), 4, 9, 2, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtMemcpyAsync(device.get(), 4, other.get(), 4, ACL_MEMCPY_DEFAULT, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(device.bytes(), (std::vector<uint8_t>{9, 9, 3, 0}));
}

TEST_F(Memory, OfNoBytesIsCopiedFromAndToAnything) {
  EXPECT_EQ(aclrtMemcpy(nullptr, 0, nullptr, 0, ACL_MEMCPY_DEFAULT), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpyAsync(nullptr, 0, nullptr, 0, ACL_MEMCPY_DEFAULT, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemset(nullptr, 0, 1, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemsetAsync(nullptr, 0, 1, 0, stream_), ACL_SUCCESS);
}

// Each refused copy and fill, in both forms; the destination keeps its bytes.
TEST_F(Memory, IsNotTouchedByWhatIsRefused) {
  const std::vector<uint8_t> before(64, 7);
  const DeviceBlock target(before), source(std::vector<uint8_t>(64, 9));
  char* inside = static_cast<char*>(target.get()) + 60;
  const auto expect_copy = [&](void* dst, size_t max, const void* src, size_t count, int kind,
                               const std::string& says) {
    const auto k = static_cast<aclrtMemcpyKind>(kind);
    EXPECT_TRUE(failed_with(aclrtMemcpy(dst, max, src, count, k), kInvalid, {says}));
    EXPECT_TRUE(failed_with(aclrtMemcpyAsync(dst, max, src, count, k, stream_), kInvalid, {says}));
  };
  expect_copy(nullptr, 8, source.get(), 8, 4, "dst is null");
  expect_copy(target.get(), 8, nullptr, 8, 4, "src is null");
  expect_copy(target.get(), 8, source.get(), 9, 4, "count is 9, expected at most destMax = 8");
  expect_copy(target.get(), SIZE_MAX, source.get(), SIZE_MAX, 4, "dst needs 18446744073709551615 bytes");
  expect_copy(inside, 64, source.get(), 5, 4, "dst needs 5 bytes");
  expect_copy(target.get(), 64, static_cast<char*>(source.get()) + 60, 5, 4, "src needs 5 bytes");
  expect_copy(target.get(), 8, source.get(), 8, 5, "kind is 5, expected an aclrtMemcpyKind, 0 to 4");
  expect_copy(target.get(), 8, source.get(), 8, -1, "kind is -1");
  expect_copy(target.get(), 8, source.get(), 0, 7, "kind is 7");
  const auto expect_fill = [&](void* dst, size_t max, size_t count, const std::string& says) {
    EXPECT_TRUE(failed_with(aclrtMemset(dst, max, 1, count), kInvalid, {says}));
    EXPECT_TRUE(failed_with(aclrtMemsetAsync(dst, max, 1, count, stream_), kInvalid, {says}));
  };
  expect_fill(nullptr, 8, 8, "devPtr is null");
  expect_fill(target.get(), 8, 9, "count is 9, expected at most maxCount = 8");
  expect_fill(inside, 64, 5, "devPtr needs 5 bytes");
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(target.bytes(), before);
}

TEST_F(Memory, NeedsAContext) {
  ASSERT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  void* block = this;
  char bytes[2] = {1, 2};
  EXPECT_EQ(aclrtMalloc(&block, 8, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_CONTEXT_NULL);
  EXPECT_EQ(aclrtMallocHost(&block, 8), ACL_ERROR_RT_CONTEXT_NULL);
  EXPECT_EQ(aclrtMemcpy(bytes, 1, bytes + 1, 1, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_CONTEXT_NULL);
  EXPECT_EQ(aclrtMemset(bytes, 1, 3, 1), ACL_ERROR_RT_CONTEXT_NULL);
  EXPECT_EQ(aclrtCreateStream(&block), ACL_ERROR_RT_CONTEXT_NULL);
  EXPECT_EQ(aclrtCreateEvent(&block), ACL_ERROR_RT_CONTEXT_NULL);
  EXPECT_EQ(aclrtSynchronizeDevice(), ACL_ERROR_RT_CONTEXT_NULL);
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_CONTEXT_NULL);
  EXPECT_EQ(block, this);
  EXPECT_EQ(bytes[0], 1);
}

TEST_F(Memory, LivesUntilFinalizeWhenNobodyFreesIt) {
  void *device = nullptr, *host = nullptr;
  ASSERT_EQ(aclrtMalloc(&device, 1 << 20, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  ASSERT_EQ(aclrtMallocHost(&host, 1 << 20), ACL_SUCCESS);
  std::memset(device, 1, 1 << 20);  // the leak sanitizer watches the rest
  std::memset(host, 1, 1 << 20);
}

}  // namespace
}  // namespace retrograd::acl_test
