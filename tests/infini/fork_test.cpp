// SPDX-License-Identifier: Apache-2.0
// infiniop and infinirt in a forked child.
#include "forked_child.h"
#include "infini/client.h"

namespace retrograd::infini_test {
namespace {

using testing::in_child;

constexpr infiniStatus_t kDead = INFINI_STATUS_BAD_PARAM;

// 2×2 pooling of ones: every element gets a quarter.
void expect_pool_works(const Operator& pool, infinirtStream_t stream) {
  Tensor grad_output({{2, 3, 4, 4}}), grad_input({{2, 3, 8, 8}});
  grad_output.fill([](size_t) { return 1.0; });
  ASSERT_EQ(infiniopAvgPoolBackward(pool.get(), room().data(), room().size(), grad_input.data(),
                                    grad_output.data(), nullptr, stream),
            INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infinirtStreamSynchronize(stream), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(grad_input.values(), std::vector<double>(grad_input.count(), 0.25));
}

void expect_own_objects_work() {
  const Operator pool = make(PoolCall{});
  infinirtStream_t stream = nullptr;
  ASSERT_EQ(infinirtStreamCreate(&stream), INFINI_STATUS_SUCCESS);
  expect_pool_works(pool, stream);
  expect_pool_works(pool, nullptr);
  EXPECT_EQ(infinirtStreamDestroy(stream), INFINI_STATUS_SUCCESS);
  void* block = nullptr;
  EXPECT_EQ(infinirtMalloc(&block, 64), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtFree(block), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtDeviceSynchronize(), INFINI_STATUS_SUCCESS);
}

TEST(InfiniFork, WhatTheParentMadeIsDeadInTheChild) {
  infinirtStream_t stream = nullptr;
  infinirtEvent_t event = nullptr;
  void* block = nullptr;
  ASSERT_EQ(infinirtStreamCreate(&stream), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infinirtEventCreate(&event), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infinirtMalloc(&block, 64), INFINI_STATUS_SUCCESS);
  const Handle handle;
  const TensorDescriptor tensor({{1}});
  const Operator pool = make(PoolCall{});
  EXPECT_TRUE(in_child([&] {
    float data[1024] = {};
    expect_refused(infinirtMemsetAsync(data, 0, 4, stream), kDead, "infinirtMemsetAsync",
                   {"stream is", "fork()"});
    expect_refused(infinirtStreamSynchronize(stream), kDead, "infinirtStreamSynchronize",
                   {"stream is", "fork()"});
    expect_refused(infinirtStreamDestroy(stream), kDead, "infinirtStreamDestroy", {"stream is", "fork()"});
    expect_refused(infinirtEventSynchronize(event), kDead, "infinirtEventSynchronize",
                   {"event is", "fork()"});
    expect_refused(infinirtEventDestroy(event), kDead, "infinirtEventDestroy", {"event is", "fork()"});
    expect_refused(infinirtFree(block), kDead, "infinirtFree", {"ptr is", "fork()"});
    expect_refused(infinirtFreeAsync(block, nullptr), kDead, "infinirtFreeAsync", {"ptr is", "fork()"});
    expect_refused(infiniopDestroyHandle(handle.get()), kDead, "infiniopDestroyHandle",
                   {"handle is", "fork()"});
    expect_refused(infiniopDestroyTensorDescriptor(tensor.get()), kDead, "infiniopDestroyTensorDescriptor",
                   {"desc is", "fork()"});
    expect_refused(infiniopAvgPoolBackward(pool.get(), nullptr, 0, data, data, data, nullptr), kDead,
                   "infiniopAvgPoolBackward", {"desc is", "fork()"});
    expect_refused(infiniopDestroyAvgPoolBackwardDescriptor(pool.get()), kDead,
                   "infiniopDestroyAvgPoolBackwardDescriptor", {"desc is", "fork()"});
    EXPECT_EQ(*reinterpret_cast<const int*>(handle.get()), INFINI_DEVICE_CPU) << "its memory can be read";
  }));
  EXPECT_EQ(infinirtFree(block), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtEventDestroy(event), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtStreamDestroy(stream), INFINI_STATUS_SUCCESS);
  expect_pool_works(pool, nullptr);
}

TEST(InfiniFork, AChildWorksWithWhatItMakesItself) {
  expect_own_objects_work();
  EXPECT_TRUE(in_child(expect_own_objects_work));
}

}  // namespace
}  // namespace retrograd::infini_test
