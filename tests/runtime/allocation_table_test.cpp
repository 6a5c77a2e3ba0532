// SPDX-License-Identifier: Apache-2.0
// The table of blocks: what may be freed, what a range may reach, what is left.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "host_fixture.h"
#include "runtime/memory.h"

namespace retrograd::runtime {
namespace {

constexpr auto kAcl = MemoryOwner::kAcl;
constexpr auto kInfini = MemoryOwner::kInfini;
constexpr auto kDevice = MemorySpace::kDevice;
constexpr auto kHost = MemorySpace::kHost;

// A table of its own for each test; what a test leaves in it is freed.
class AllocationTableTest : public ::testing::Test {
 protected:
  ~AllocationTableTest() override {
    table.release_all(kAcl);
    table.release_all(kInfini);
  }
  std::byte* allocate(size_t bytes, MemorySpace space = kDevice, MemoryOwner owner = kAcl) {
    const auto block = table.allocate(cpu(), bytes, space, owner);
    EXPECT_TRUE(block.is_ok()) << block.status().message();
    return block.is_ok() ? static_cast<std::byte*>(block.value()) : nullptr;
  }
  // The refusal of a release, which must have the code of a wrong argument.
  std::string refusal(void* address, MemorySpace space = kDevice, MemoryOwner owner = kAcl) {
    const Status status = table.release(address, space, owner);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    return status.message();
  }
  AllocationTable table;
};

TEST_F(AllocationTableTest, BlocksAreAlignedAndWritable) {
  for (const size_t bytes : {1U, 7U, 64U, 65U, 4096U, 100000U}) {
    for (const auto space : {kDevice, kHost}) {
      std::byte* const block = allocate(bytes, space);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
      std::memset(block, 0x5a, bytes);
      RG_EXPECT_OK(table.release(block, space, kAcl));
    }
  }
  EXPECT_EQ(table.live_blocks(kAcl), 0u);
}

TEST_F(AllocationTableTest, NothingAndTooMuchAreRefused) {
  EXPECT_EQ(table.allocate(cpu(), 0, kDevice, kAcl).status().code(), Code::kInvalidArgument);
  constexpr size_t kMost = std::numeric_limits<size_t>::max();
  for (const size_t bytes : {kMost, kMost - 63, kMost / 2, kMost / 2 + 1, kMost / 4}) {
    for (const auto space : {kDevice, kHost}) {
      const auto block = table.allocate(cpu(), bytes, space, kAcl);
      EXPECT_EQ(block.status().code(), Code::kOutOfMemory);
      EXPECT_NE(block.status().message().find(std::to_string(bytes)), std::string::npos)
          << block.status().message();
    }
  }
  EXPECT_EQ(table.live_blocks(kAcl), 0u);
}

TEST_F(AllocationTableTest, OnlyTheStartOfALiveBlockIsFreed) {
  std::byte* const block = allocate(100);
  int on_the_stack = 0;
  EXPECT_NE(refusal(block + 1).find("lies 1 bytes into a block of 100 bytes, expected its start"),
            std::string::npos);
  EXPECT_NE(refusal(block + 99).find("lies 99 bytes into"), std::string::npos);
  EXPECT_NE(refusal(block + 100).find("is not the start of a live block"), std::string::npos);
  EXPECT_NE(refusal(block - 1).find("is not the start of a live block"), std::string::npos);
  EXPECT_NE(refusal(&on_the_stack).find("is not the start of a live block"), std::string::npos);
  EXPECT_NE(refusal(nullptr).find("is not the start of a live block"), std::string::npos);
  EXPECT_NE(refusal(reinterpret_cast<void*>(std::numeric_limits<uintptr_t>::max())).find("live block"),
            std::string::npos);
  EXPECT_EQ(table.live_blocks(kAcl), 1u);
  RG_EXPECT_OK(table.release(block, kDevice, kAcl));
  EXPECT_NE(refusal(block).find("is not the start of a live block"), std::string::npos);
  EXPECT_EQ(table.live_blocks(kAcl), 0u);
}

TEST_F(AllocationTableTest, AnInterfaceDoesNotFreeTheOthersBlocks) {
  std::byte* const block = allocate(10, kDevice, kInfini);
  EXPECT_NE(refusal(block, kDevice, kAcl).find("was allocated by infinirt, expected a block of aclrt"),
            std::string::npos);
  RG_EXPECT_OK(table.release(block, kDevice, kInfini));
}

TEST_F(AllocationTableTest, HostAndDeviceBlocksAreFreedByTheirOwnCalls) {
  std::byte* const device_block = allocate(10, kDevice);
  std::byte* const host_block = allocate(10, kHost);
  EXPECT_NE(refusal(device_block, kHost).find("is device memory, expected host memory"), std::string::npos);
  EXPECT_NE(refusal(host_block, kDevice).find("is host memory, expected device memory"), std::string::npos);
  RG_EXPECT_OK(table.release(device_block, kDevice, kAcl));
  RG_EXPECT_OK(table.release(host_block, kHost, kAcl));
}

TEST_F(AllocationTableTest, FindAnswersForEveryByteOfABlockAndNoOther) {
  std::byte* const block = allocate(100, kHost, kInfini);
  for (const size_t offset : {0U, 1U, 99U}) {
    const auto found = table.find(block + offset);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->base, block);
    EXPECT_EQ(found->bytes, 100u);
    EXPECT_EQ(found->device, &cpu());
    EXPECT_EQ(found->space, kHost);
    EXPECT_EQ(found->owner, kInfini);
  }
  EXPECT_FALSE(table.find(block - 1).has_value());
  EXPECT_FALSE(table.find(block + 100).has_value());
  EXPECT_FALSE(table.find(nullptr).has_value());
  RG_EXPECT_OK(table.release(block, kHost, kInfini));
  EXPECT_FALSE(table.find(block).has_value());
}

TEST_F(AllocationTableTest, FindTellsManyBlocksApart) {
  std::vector<std::byte*> blocks;
  for (size_t bytes = 1; bytes <= 50; ++bytes) blocks.push_back(allocate(bytes));
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto found = table.find(blocks[i] + i);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->base, blocks[i]);
    EXPECT_EQ(found->bytes, i + 1);
  }
}

TEST_F(AllocationTableTest, ARangeMayReachTheEndOfItsBlockAndNotBeyond) {
  std::byte* const block = allocate(100);
  constexpr size_t kMost = std::numeric_limits<size_t>::max();
  RG_EXPECT_OK(table.check_range(block, 100, "src"));
  RG_EXPECT_OK(table.check_range(block + 40, 60, "src"));
  RG_EXPECT_OK(table.check_range(block + 99, 1, "src"));
  RG_EXPECT_OK(table.check_range(block + 99, 0, "src"));
  for (const size_t bytes : {size_t{101}, kMost, kMost - 63})
    EXPECT_EQ(table.check_range(block, bytes, "src").code(), Code::kInvalidArgument);
  EXPECT_EQ(table.check_range(block + 99, 2, "src").code(), Code::kInvalidArgument);
  const Status status = table.check_range(block + 40, 61, "dst");
  EXPECT_EQ(status.message().find("dst needs 61 bytes at 0x"), 0u) << status.message();
  EXPECT_NE(status.message().find("but its block of 100 bytes ends 60 bytes from there"), std::string::npos)
      << status.message();
}

TEST_F(AllocationTableTest, MemoryThatIsNotOursIsNotJudged) {
  std::byte* const block = allocate(100);
  int on_the_stack = 0;
  RG_EXPECT_OK(table.check_range(&on_the_stack, 1000000, "src"));
  RG_EXPECT_OK(table.check_range(nullptr, 1000000, "src"));
  RG_EXPECT_OK(table.check_range(block + 100, 1, "src"));
}

TEST_F(AllocationTableTest, ReleaseAllTakesTheBlocksOfOneInterface) {
  for (int i = 0; i < 5; ++i) allocate(10, i % 2 == 0 ? kDevice : kHost, kAcl);
  std::byte* const kept = allocate(10, kDevice, kInfini);
  EXPECT_EQ(table.live_blocks(kAcl), 5u);
  EXPECT_EQ(table.live_blocks(kInfini), 1u);
  EXPECT_EQ(table.release_all(kAcl), 5u);
  EXPECT_EQ(table.release_all(kAcl), 0u);
  EXPECT_EQ(table.live_blocks(kAcl), 0u);
  EXPECT_TRUE(table.find(kept).has_value());
  EXPECT_EQ(table.release_all(kInfini), 1u);
}

TEST_F(AllocationTableTest, TakesManyThreads) {
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([this] {
      for (size_t i = 1; i <= 100; ++i) {
        std::byte* const block = allocate(i);
        EXPECT_TRUE(table.find(block).has_value());
        RG_EXPECT_OK(table.release(block, kDevice, kAcl));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(table.live_blocks(kAcl), 0u);
}

TEST_F(AllocationTableTest, ThereIsOneForTheProcess) {
  EXPECT_EQ(&AllocationTable::instance(), &AllocationTable::instance());
}

}  // namespace
}  // namespace retrograd::runtime
