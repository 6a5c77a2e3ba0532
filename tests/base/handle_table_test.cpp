// SPDX-License-Identifier: Apache-2.0
// HandleTable: live, dead, foreign and doubly removed handles, from one thread and from many.
#include "base/handle_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

namespace retrograd::handle_table_test {
namespace {

constexpr int kThreads = 8;

TEST(MintHandle, GivesAlignedNumbersThatAreNoUserAddresses) {
  const auto first = reinterpret_cast<uintptr_t>(mint_handle());
  const auto second = reinterpret_cast<uintptr_t>(mint_handle());
  EXPECT_EQ(second - first, 16u);
  EXPECT_EQ(first % 16, 0u);
  EXPECT_NE(first >> 57, 0u) << "canonical on x86-64 with five-level paging";
  EXPECT_NE(first >> 52 & 0xf, 0u) << "an aarch64 address under its ignored top byte";
}

TEST(MintHandle, NeverRepeatsAcrossThreads) {
  constexpr size_t kEach = 10'000;
  std::vector<std::vector<void*>> minted(kThreads);
  {
    std::vector<std::jthread> threads;
    threads.reserve(kThreads);
    for (auto& mine : minted) {
      threads.emplace_back([&mine] {
        for (size_t i = 0; i < kEach; ++i) mine.push_back(mint_handle());
      });
    }
  }
  std::set<void*> distinct;
  for (const auto& mine : minted) distinct.insert(mine.begin(), mine.end());
  EXPECT_EQ(distinct.size(), kThreads * kEach);
}

TEST(HandleTable, FindsTheObjectBehindALiveHandle) {
  HandleTable<int> table;
  void* a = table.insert(std::make_shared<int>(1));
  void* b = table.insert(std::make_shared<int>(2));
  EXPECT_NE(a, b);
  EXPECT_EQ(table.size(), 2u);
  EXPECT_EQ(*table.find(a), 1);
  EXPECT_EQ(*table.find(b), 2);
}

TEST(HandleTable, RefusesForeignHandles) {
  HandleTable<int> table, other;
  void* theirs = other.insert(std::make_shared<int>(1));
  table.insert(std::make_shared<int>(2));
  int local = 0;
  const void* small = reinterpret_cast<const void*>(uintptr_t{1});  // NOLINT(performance-no-int-to-ptr)
  for (const void* key : {static_cast<const void*>(nullptr), static_cast<const void*>(theirs),
                          static_cast<const void*>(&local), small}) {
    EXPECT_EQ(table.find(key), nullptr);
    EXPECT_EQ(table.remove(key), nullptr);
  }
  EXPECT_EQ(table.size(), 1u);
  EXPECT_EQ(*other.find(theirs), 1);
}

TEST(HandleTable, RemovesOnce) {
  HandleTable<int> table;
  void* key = table.insert(std::make_shared<int>(1));
  EXPECT_EQ(*table.remove(key), 1);
  EXPECT_EQ(table.find(key), nullptr);
  EXPECT_EQ(table.remove(key), nullptr);
  EXPECT_NE(table.insert(std::make_shared<int>(2)), key);
  EXPECT_EQ(table.find(key), nullptr);
}

TEST(HandleTable, KeepsAFoundObjectAliveAfterItsHandleIsGone) {
  HandleTable<int> table;
  auto object = std::make_shared<int>(3);
  const std::weak_ptr<int> watch = object;
  void* key = table.insert(std::move(object));
  auto found = table.find(key);
  table.remove(key);
  EXPECT_EQ(*found, 3);
  found.reset();
  EXPECT_TRUE(watch.expired());
}

TEST(HandleTable, TakesAddressesAsHandles) {
  struct Descriptor {
    int device, device_id;
  };
  HandleTable<Descriptor> table;
  auto object = std::make_shared<Descriptor>(Descriptor{0, 5});
  const Descriptor* address = object.get();
  table.insert_at(address, std::move(object));
  EXPECT_EQ(table.find(address)->device_id, 5);
  EXPECT_EQ(table.remove(address).get(), address);
  EXPECT_EQ(table.size(), 0u);
}

TEST(HandleTable, RemovesAllThatSatisfyACondition) {
  HandleTable<int> table;
  std::vector<void*> keys;
  keys.reserve(10);
  for (int i = 0; i < 10; ++i) keys.push_back(table.insert(std::make_shared<int>(i)));
  auto removed = table.remove_if([](int value) { return value % 2 == 1; });
  std::set<int> values;
  for (const auto& object : removed) values.insert(*object);
  EXPECT_EQ(values, (std::set<int>{1, 3, 5, 7, 9}));
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(table.find(keys[i]) == nullptr, i % 2 == 1);
}

TEST(HandleTable, LetsOneOfManyThreadsRemoveAHandle) {
  constexpr int kRounds = 2'000;
  HandleTable<int> table;
  std::vector<void*> keys;
  keys.reserve(kRounds);
  for (int i = 0; i < kRounds; ++i) keys.push_back(table.insert(std::make_shared<int>(i)));
  std::vector<int> removed(kThreads, 0);
  std::vector<int> wrong(kThreads, 0);
  {
    std::vector<std::jthread> threads;
    threads.reserve(kThreads);
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        const size_t me = static_cast<size_t>(t);
        for (int i = 0; i < kRounds; ++i) {
          void* own = table.insert(std::make_shared<int>(-1));
          if (const auto shared = table.find(keys[static_cast<size_t>(i)]); shared && *shared != i)
            ++wrong[me];
          if (table.remove(keys[static_cast<size_t>(i)])) ++removed[me];
          if (const auto mine = table.remove(own); !mine || *mine != -1) ++wrong[me];
        }
      });
    }
  }
  int total = 0;
  for (size_t t = 0; t < kThreads; ++t) {
    total += removed[t];
    EXPECT_EQ(wrong[t], 0);
  }
  EXPECT_EQ(total, kRounds);
  EXPECT_EQ(table.size(), 0u);
}

}  // namespace
}  // namespace retrograd::handle_table_test
