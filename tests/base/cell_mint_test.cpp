// SPDX-License-Identifier: Apache-2.0
// Addresses that are handed out once, and memory that goes back all the same.
#include "base/cell_mint.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace retrograd {
namespace {

TEST(CellMint, NeverHandsOutAnAddressTwice) {
  CellMint mint;
  std::set<void*> seen;
  for (int i = 0; i < 20000; ++i) {
    void* const cell = mint.take();
    EXPECT_TRUE(seen.insert(cell).second);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(cell) % CellMint::kCellBytes, 0u);
    EXPECT_EQ(*static_cast<uint64_t*>(cell), 0u);
    *static_cast<uint64_t*>(cell) = 1;
    mint.give_back(cell);
  }
}

TEST(CellMint, KeepsMemoryForChunksWithLiveCellsOnly) {
  CellMint mint;
  void* const kept = mint.take();
  *static_cast<int*>(kept) = 77;
  for (int i = 0; i < 100000; ++i) mint.give_back(mint.take());
  EXPECT_LE(mint.chunks(), 2u);
  EXPECT_EQ(*static_cast<int*>(kept), 77);
  mint.give_back(kept);
  EXPECT_LE(mint.chunks(), 1u);
  EXPECT_EQ(*static_cast<int*>(kept), 0) << "readable for ever, and empty";
}

TEST(CellMint, IsSharedByThreads) {
  CellMint mint;
  std::vector<std::vector<void*>> taken(4);
  std::vector<std::thread> threads;
  for (auto& mine : taken)
    threads.emplace_back([&] {
      for (int i = 0; i < 3000; ++i) mine.push_back(mint.take());
      for (void* cell : mine) mint.give_back(cell);
    });
  for (std::thread& thread : threads) thread.join();
  std::set<void*> seen;
  for (const auto& mine : taken) seen.insert(mine.begin(), mine.end());
  EXPECT_EQ(seen.size(), 12000u);
}

}  // namespace
}  // namespace retrograd
