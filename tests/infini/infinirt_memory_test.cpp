// SPDX-License-Identifier: Apache-2.0
// infinirt: blocks, copies that stay inside them, frees in stream order.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "infini/client.h"
#include "retrograd/retrograd.h"

namespace retrograd::infini_test {
namespace {

constexpr size_t kBytes = 100;

void* allocate(size_t bytes) {
  void* block = nullptr;
  EXPECT_EQ(infinirtMalloc(&block, bytes), INFINI_STATUS_SUCCESS) << retrogradGetLastError();
  return block;
}

TEST(InfinirtMemory, BlocksAreAlignedAndWritable) {
  for (auto [get, give_back] :
       {std::pair{&infinirtMalloc, &infinirtFree}, std::pair{&infinirtMallocHost, &infinirtFreeHost}})
    for (size_t bytes : {size_t{1}, kBytes, size_t{1} << 20}) {
      void* block = nullptr;
      ASSERT_EQ(get(&block, bytes), INFINI_STATUS_SUCCESS);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
      std::memset(block, 1, bytes);
      EXPECT_EQ(give_back(block), INFINI_STATUS_SUCCESS);
    }
}

TEST(InfinirtMemory, NoBytesAreANullBlock) {
  void* block = &block;
  EXPECT_EQ(infinirtMalloc(&block, 0), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(block, nullptr);
  block = &block;
  EXPECT_EQ(infinirtMallocHost(&block, 0), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(block, nullptr);
  block = &block;
  EXPECT_EQ(infinirtMallocAsync(&block, 0, nullptr), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(block, nullptr);
  EXPECT_EQ(infinirtFree(nullptr), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtFreeHost(nullptr), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtFreeAsync(nullptr, nullptr), INFINI_STATUS_SUCCESS);
}

TEST(InfinirtMemory, NullOutPointersAreNullPointers) {
  expect_refused(infinirtMalloc(nullptr, 1), INFINI_STATUS_NULL_POINTER, "infinirtMalloc", {"p_ptr is null"});
  expect_refused(infinirtMallocHost(nullptr, 1), INFINI_STATUS_NULL_POINTER, "infinirtMallocHost",
                 {"p_ptr is null"});
  expect_refused(infinirtMallocAsync(nullptr, 1, nullptr), INFINI_STATUS_NULL_POINTER, "infinirtMallocAsync",
                 {"p_ptr is null"});
}

TEST(InfinirtMemory, MoreThanThereIsIsAnInternalError) {
  void* block = nullptr;
  for (size_t bytes : {SIZE_MAX, SIZE_MAX / 2}) {
    expect_refused(infinirtMalloc(&block, bytes), INFINI_STATUS_INTERNAL_ERROR, "infinirtMalloc",
                   {std::to_string(bytes).c_str()});
    EXPECT_EQ(block, nullptr);
  }
}

TEST(InfinirtMemory, FreesOnlyWhatItHandedOutAndOnlyOnce) {
  void* block = allocate(kBytes);
  void* host = nullptr;
  ASSERT_EQ(infinirtMallocHost(&host, kBytes), INFINI_STATUS_SUCCESS);
  int foreign = 0;
  expect_refused(infinirtFree(&foreign), INFINI_STATUS_BAD_PARAM, "infinirtFree",
                 {"not the start of a live block"});
  expect_refused(infinirtFreeAsync(&foreign, nullptr), INFINI_STATUS_BAD_PARAM, "infinirtFreeAsync",
                 {"live block"});
  expect_refused(infinirtFree(static_cast<char*>(block) + 1), INFINI_STATUS_BAD_PARAM, "infinirtFree",
                 {"expected its start"});
  expect_refused(infinirtFree(host), INFINI_STATUS_BAD_PARAM, "infinirtFree", {"ptr is 0x", "host memory"});
  expect_refused(infinirtFreeAsync(host, nullptr), INFINI_STATUS_BAD_PARAM, "infinirtFreeAsync",
                 {"live block"});
  expect_refused(infinirtFreeHost(block), INFINI_STATUS_BAD_PARAM, "infinirtFreeHost", {"device memory"});
  EXPECT_EQ(infinirtFreeHost(host), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtFree(block), INFINI_STATUS_SUCCESS);
  expect_refused(infinirtFree(block), INFINI_STATUS_BAD_PARAM, "infinirtFree", {"ptr is 0x", "live block"});
}

TEST(InfinirtMemory, CopiesInEveryDirectionAndKind) {
  std::vector<char> source(kBytes, 9), back(kBytes);
  void* a = allocate(kBytes);
  void* b = allocate(kBytes);
  EXPECT_EQ(infinirtMemcpy(a, source.data(), kBytes, INFINIRT_MEMCPY_H2D), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtMemcpy(b, a, kBytes, INFINIRT_MEMCPY_D2D), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtMemcpy(back.data(), b, kBytes, INFINIRT_MEMCPY_D2H), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(back, source);
  EXPECT_EQ(infinirtMemset(b, 0x1FF, kBytes), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtMemcpy(source.data(), b, kBytes, INFINIRT_MEMCPY_H2H), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(source, std::vector<char>(kBytes, '\xFF')) << "a value is one byte";
  EXPECT_EQ(infinirtFree(a), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtFree(b), INFINI_STATUS_SUCCESS);
}

TEST(InfinirtMemory, CopyingNothingSucceedsFromAnywhere) {
  EXPECT_EQ(infinirtMemcpy(nullptr, nullptr, 0, INFINIRT_MEMCPY_H2D), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtMemcpyAsync(nullptr, nullptr, 0, INFINIRT_MEMCPY_H2D, nullptr), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtMemset(nullptr, 0, 0), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtMemsetAsync(nullptr, 0, 0, nullptr), INFINI_STATUS_SUCCESS);
}

TEST(InfinirtMemory, RefusesNullAddressesAndUnknownKinds) {
  char byte = 0;
  constexpr infiniStatus_t kNull = INFINI_STATUS_NULL_POINTER;
  expect_refused(infinirtMemcpy(nullptr, &byte, 1, INFINIRT_MEMCPY_H2H), kNull, "infinirtMemcpy",
                 {"dst is null"});
  expect_refused(infinirtMemcpy(&byte, nullptr, 1, INFINIRT_MEMCPY_H2H), kNull, "infinirtMemcpy",
                 {"src is null"});
  expect_refused(infinirtMemcpyAsync(nullptr, &byte, 1, INFINIRT_MEMCPY_H2H, nullptr), kNull,
                 "infinirtMemcpyAsync", {"dst is null"});
  expect_refused(infinirtMemcpyAsync(&byte, nullptr, 1, INFINIRT_MEMCPY_H2H, nullptr), kNull,
                 "infinirtMemcpyAsync", {"src is null"});
  expect_refused(infinirtMemset(nullptr, 0, 1), kNull, "infinirtMemset", {"ptr is null"});
  expect_refused(infinirtMemsetAsync(nullptr, 0, 1, nullptr), kNull, "infinirtMemsetAsync", {"ptr is null"});
  for (int kind : {-1, 4, 1000}) {
    const std::string is = "kind is " + std::to_string(kind);
    const auto value = static_cast<infinirtMemcpyKind_t>(kind);
    expect_refused(infinirtMemcpy(&byte, &byte, 1, value), INFINI_STATUS_BAD_PARAM, "infinirtMemcpy",
                   {is.c_str()});
    expect_refused(infinirtMemcpyAsync(&byte, &byte, 1, value, nullptr), INFINI_STATUS_BAD_PARAM,
                   "infinirtMemcpyAsync", {is.c_str()});
  }
}

TEST(InfinirtMemory, NeverLeavesABlockOfItsOwn) {
  std::vector<char> large(kBytes + 1, 1);
  auto* block = static_cast<char*>(allocate(kBytes));
  ASSERT_EQ(infinirtMemset(block, 2, kBytes), INFINI_STATUS_SUCCESS);
  constexpr infiniStatus_t kBad = INFINI_STATUS_BAD_PARAM;
  expect_refused(infinirtMemcpy(block, large.data(), kBytes + 1, INFINIRT_MEMCPY_H2D), kBad, "infinirtMemcpy",
                 {"dst needs 101 bytes", "100 bytes"});
  expect_refused(infinirtMemcpy(large.data(), block + 1, kBytes, INFINIRT_MEMCPY_D2H), kBad, "infinirtMemcpy",
                 {"src needs 100 bytes"});
  expect_refused(infinirtMemcpyAsync(block, large.data(), SIZE_MAX, INFINIRT_MEMCPY_H2D, nullptr), kBad,
                 "infinirtMemcpyAsync", {"dst needs"});
  expect_refused(infinirtMemset(block + kBytes - 1, 3, 2), kBad, "infinirtMemset", {"ptr needs 2 bytes"});
  expect_refused(infinirtMemsetAsync(block, 3, kBytes + 1, nullptr), kBad, "infinirtMemsetAsync",
                 {"ptr needs"});
  EXPECT_EQ(std::vector<char>(block, block + kBytes), std::vector<char>(kBytes, 2)) << "nothing was written";
  EXPECT_EQ(large, std::vector<char>(kBytes + 1, 1));
  EXPECT_EQ(infinirtFree(block), INFINI_STATUS_SUCCESS);
}

class InfinirtStreamOrder : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(infinirtStreamCreate(&stream_), INFINI_STATUS_SUCCESS); }
  void TearDown() override { EXPECT_EQ(infinirtStreamDestroy(stream_), INFINI_STATUS_SUCCESS); }
  infinirtStream_t stream_ = nullptr;
};

TEST_F(InfinirtStreamOrder, FreeAsyncLetsTheWorkBeforeItUseTheBlock) {
  constexpr size_t kLarge = size_t{16} << 20;
  std::vector<char> result(kLarge);
  void* block = nullptr;
  ASSERT_EQ(infinirtMallocAsync(&block, kLarge, stream_), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtMemsetAsync(block, 5, kLarge, stream_), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtMemcpyAsync(result.data(), block, kLarge, INFINIRT_MEMCPY_D2H, stream_),
            INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtFreeAsync(block, stream_), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtStreamSynchronize(stream_), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(result, std::vector<char>(kLarge, 5));
  expect_refused(infinirtFree(block), INFINI_STATUS_BAD_PARAM, "infinirtFree", {"live block"});
}

TEST_F(InfinirtStreamOrder, ABlockThatIsLeavingCannotBeFreedAgain) {
  void* block = allocate(kBytes);
  std::vector<char> busy(size_t{16} << 20);
  EXPECT_EQ(infinirtMemsetAsync(busy.data(), 1, busy.size(), stream_), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtFreeAsync(block, stream_), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtFreeAsync(block, stream_), INFINI_STATUS_BAD_PARAM);
  EXPECT_EQ(infinirtFree(block), INFINI_STATUS_BAD_PARAM);
  EXPECT_EQ(infinirtStreamSynchronize(stream_), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtFree(block), INFINI_STATUS_BAD_PARAM);
}

TEST_F(InfinirtStreamOrder, FreeWaitsForTheStreams) {
  constexpr size_t kLarge = size_t{16} << 20;
  std::vector<char> result(kLarge);
  void* block = allocate(kLarge);
  EXPECT_EQ(infinirtMemsetAsync(block, 6, kLarge, stream_), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtMemcpyAsync(result.data(), block, kLarge, INFINIRT_MEMCPY_D2H, stream_),
            INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtFree(block), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(result, std::vector<char>(kLarge, 6)) << "the work that used the block is done";
}

}  // namespace
}  // namespace retrograd::infini_test
