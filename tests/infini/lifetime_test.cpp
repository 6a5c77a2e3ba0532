// SPDX-License-Identifier: Apache-2.0
// Handles and descriptors that are used after they were destroyed: refused, whatever was made meanwhile.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "infini/client.h"

namespace retrograd::infini_test {
namespace {

infiniopHandle_t new_handle() {
  infiniopHandle_t handle = nullptr;
  EXPECT_EQ(infiniopCreateHandle(&handle), INFINI_STATUS_SUCCESS);
  return handle;
}

infiniopTensorDescriptor_t new_tensor() {
  const size_t shape[3] = {1, 1, 4};
  infiniopTensorDescriptor_t tensor = nullptr;
  EXPECT_EQ(infiniopCreateTensorDescriptor(&tensor, 3, shape, nullptr, INFINI_DTYPE_F32),
            INFINI_STATUS_SUCCESS);
  return tensor;
}

infiniopAvgPoolBackwardDescriptor_t new_pool() {
  infiniopAvgPoolBackwardDescriptor_t pool = nullptr;
  EXPECT_EQ(PoolCall{}.create(&pool), INFINI_STATUS_SUCCESS);
  return pool;
}

infiniopConvBackwardDescriptor_t new_conv() {
  infiniopConvBackwardDescriptor_t conv = nullptr;
  EXPECT_EQ(ConvCall{}.create(&conv), INFINI_STATUS_SUCCESS);
  return conv;
}

constexpr infiniStatus_t kDead = INFINI_STATUS_BAD_PARAM;

// More than a quarantine of a few thousand would hold.
constexpr int kMade = 20000;

TEST(StaleHandles, AreNotMistakenForNewerOnes) {
  infiniopHandle_t const stale = new_handle();
  ASSERT_EQ(infiniopDestroyHandle(stale), INFINI_STATUS_SUCCESS);
  for (int i = 0; i < kMade; ++i) {
    infiniopHandle_t const handle = new_handle();
    ASSERT_NE(handle, stale);
    expect_refused(infiniopDestroyHandle(stale), kDead, "infiniopDestroyHandle",
                   {"handle is 0x", "not alive"});
    ASSERT_EQ(infiniopDestroyHandle(handle), INFINI_STATUS_SUCCESS) << "a double destroy kills nobody";
  }
}

TEST(StaleHandles, AreRefusedByCreateCalls) {
  const TensorDescriptor wide({{1, 1, 4}}), narrow({{1, 1, 2}});
  size_t kernel = 2;
  infiniopHandle_t const stale = new_handle();
  ASSERT_EQ(infiniopDestroyHandle(stale), INFINI_STATUS_SUCCESS);
  const Handle next;
  infiniopAvgPoolBackwardDescriptor_t pool = nullptr;
  expect_refused(infiniopCreateAvgPoolBackwardDescriptor(stale, &pool, wide.get(), narrow.get(), wide.get(),
                                                         &kernel, nullptr, nullptr, false),
                 kDead, "infiniopCreateAvgPoolBackwardDescriptor", {"handle is 0x", "not alive"});
}

TEST(StaleTensorDescriptors, AreNotMistakenForNewerOnes) {
  infiniopTensorDescriptor_t const stale = new_tensor();
  ASSERT_EQ(infiniopDestroyTensorDescriptor(stale), INFINI_STATUS_SUCCESS);
  const Handle handle;
  const TensorDescriptor narrow({{1, 1, 2}});
  size_t kernel = 2;
  for (int i = 0; i < kMade; ++i) {
    infiniopTensorDescriptor_t const tensor = new_tensor();
    ASSERT_NE(tensor, stale);
    ASSERT_EQ(infiniopDestroyTensorDescriptor(stale), kDead);
    infiniopAvgPoolBackwardDescriptor_t pool = nullptr;
    ASSERT_EQ(infiniopCreateAvgPoolBackwardDescriptor(handle.get(), &pool, stale, narrow.get(), tensor,
                                                      &kernel, nullptr, nullptr, false),
              kDead);
    ASSERT_EQ(infiniopDestroyTensorDescriptor(tensor), INFINI_STATUS_SUCCESS);
  }
}

TEST(StaleDescriptors, AreNotMistakenForNewerOnes) {
  infiniopConvBackwardDescriptor_t const conv = new_conv();
  infiniopAvgPoolBackwardDescriptor_t const pool = new_pool();
  ASSERT_EQ(infiniopDestroyConvBackwardDescriptor(conv), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infiniopDestroyAvgPoolBackwardDescriptor(pool), INFINI_STATUS_SUCCESS);
  float data[1024] = {};
  size_t bytes = 0;
  for (int i = 0; i < kMade / 4; ++i) {
    infiniopAvgPoolBackwardDescriptor_t const next = new_pool();
    ASSERT_NE(next, pool);
    ASSERT_NE(next, conv);
    ASSERT_EQ(infiniopDestroyAvgPoolBackwardDescriptor(pool), kDead);
    ASSERT_EQ(infiniopDestroyConvBackwardDescriptor(conv), kDead);
    ASSERT_EQ(infiniopGetAvgPoolBackwardWorkspaceSize(pool, &bytes), kDead);
    ASSERT_EQ(infiniopAvgPoolBackward(pool, room().data(), room().size(), data, data, data, nullptr), kDead);
    ASSERT_EQ(
        infiniopConvBackward(conv, room().data(), room().size(), data, data, data, data, data, data, nullptr),
        kDead);
    ASSERT_EQ(infiniopDestroyAvgPoolBackwardDescriptor(next), INFINI_STATUS_SUCCESS);
  }
}

// Of one kind or of another: addresses are shared by none.
TEST(StaleDescriptors, AreOfNoOtherKindEither) {
  infiniopTensorDescriptor_t const tensor = new_tensor();
  ASSERT_EQ(infiniopDestroyTensorDescriptor(tensor), INFINI_STATUS_SUCCESS);
  for (int i = 0; i < 1000; ++i) {
    const Handle handle;
    ASSERT_NE(static_cast<void*>(handle.get()), static_cast<void*>(tensor));
  }
}

// Clients that look where they should not any more find memory, not a fault.
TEST(StaleDescriptors, CanStillBeLookedAt) {
  infiniopAvgPoolBackwardDescriptor_t const stale = new_pool();
  ASSERT_EQ(infiniopDestroyAvgPoolBackwardDescriptor(stale), INFINI_STATUS_SUCCESS);
  for (int i = 0; i < kMade; ++i) infiniopDestroyHandle(new_handle());
  const auto* header = reinterpret_cast<const volatile int*>(stale);
  EXPECT_EQ(header[0], INFINI_DEVICE_CPU);
  EXPECT_EQ(header[1], 0);
}

TEST(StaleDescriptors, AreDestroyedOnceByManyThreads) {
  for (int round = 0; round < 50; ++round) {
    infiniopAvgPoolBackwardDescriptor_t const pool = new_pool();
    infiniopHandle_t const handle = new_handle();
    std::atomic<int> pools{0}, handles{0}, at_work{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        for (++at_work; at_work < 4;) std::this_thread::yield();
        pools += infiniopDestroyAvgPoolBackwardDescriptor(pool) == INFINI_STATUS_SUCCESS ? 1 : 0;
        handles += infiniopDestroyHandle(handle) == INFINI_STATUS_SUCCESS ? 1 : 0;
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(pools, 1);
    EXPECT_EQ(handles, 1);
  }
}

}  // namespace
}  // namespace retrograd::infini_test
