// SPDX-License-Identifier: Apache-2.0
// Memory, copies, streams, events and errors of a GPU.
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "cuda_fixture.h"

namespace retrograd::runtime {
namespace {

using CudaDeviceTest = CudaTest;

TEST_F(CudaDeviceTest, NamesItself) {
  EXPECT_EQ(gpu().label(), "cuda:0");
  EXPECT_EQ(std::string(gpu().soc_name()).rfind("Retrograd-CUDA-sm", 0), 0u) << gpu().soc_name();
  const auto info = gpu().memory_info();
  ASSERT_TRUE(info.is_ok());
  EXPECT_GT(info.value().total_bytes, 0u);
  EXPECT_LE(info.value().free_bytes, info.value().total_bytes);
}

TEST_F(CudaDeviceTest, CopiesInEveryDirection) {
  constexpr size_t kBytes = 1 << 20;
  std::vector<unsigned char> from(kBytes), to(kBytes), host(kBytes);
  for (size_t i = 0; i < kBytes; ++i) from[i] = static_cast<unsigned char>(i * 7 + i / 251);
  void* const a = gpu().allocate(kBytes).value();
  void* const b = gpu().allocate(kBytes).value();
  void* const pinned = gpu().allocate_host(kBytes).value();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 64, 0u);
  ASSERT_TRUE(gpu().copy(host.data(), from.data(), kBytes).is_ok());  // host to host
  ASSERT_TRUE(gpu().copy(a, host.data(), kBytes).is_ok());
  ASSERT_TRUE(gpu().copy(b, a, kBytes).is_ok());
  ASSERT_TRUE(gpu().copy(pinned, b, kBytes).is_ok());
  ASSERT_TRUE(gpu().copy(to.data(), pinned, kBytes).is_ok());
  EXPECT_EQ(to, from);
  ASSERT_TRUE(gpu().fill(a, 0x5A, kBytes).is_ok());
  ASSERT_TRUE(gpu().copy(to.data(), a, kBytes).is_ok());
  EXPECT_EQ(to, std::vector<unsigned char>(kBytes, 0x5A));
  ASSERT_TRUE(gpu().fill(to.data(), 1, kBytes).is_ok());  // pageable memory of the host
  EXPECT_EQ(to, std::vector<unsigned char>(kBytes, 1));
  gpu().deallocate(a);
  gpu().deallocate(b);
  gpu().deallocate_host(pinned);
}

TEST_F(CudaDeviceTest, SaysWhenMemoryRunsOutAndLivesOn) {
  const size_t total = gpu().memory_info().value().total_bytes;
  const auto block = gpu().allocate(total + (size_t{1} << 30));
  EXPECT_EQ(block.status().code(), Code::kOutOfMemory);
  EXPECT_NE(block.status().message().find("cudaMalloc of " + std::to_string(total + (size_t{1} << 30))),
            std::string::npos)
      << block.status().message();
  EXPECT_EQ(gpu().allocate(0).status().code(), Code::kInvalidArgument);
  const auto small = gpu().allocate(64);
  ASSERT_TRUE(small.is_ok());
  gpu().deallocate(small.value());
}

TEST_F(CudaDeviceTest, EventsOrderAndTimeStreams) {
  constexpr size_t kBytes = size_t{64} << 20;
  void* const block = gpu().allocate(kBytes).value();
  const auto first = gpu().create_stream().value(), second = gpu().create_stream().value();
  const auto start = gpu().create_event(true).value(), end = gpu().create_event(true).value();
  EXPECT_EQ(end->state(), EventState::kUnrecorded);
  EXPECT_EQ(end->elapsed_since(*start).status().code(), Code::kInvalidArgument);
  ASSERT_TRUE(second->wait(end).is_ok());  // never recorded: no wait
  ASSERT_TRUE(first->record(start).is_ok());
  ASSERT_TRUE(first->fill(block, 1, kBytes).is_ok());
  ASSERT_TRUE(first->record(end).is_ok());
  ASSERT_TRUE(second->wait(end).is_ok());
  unsigned char last = 0;
  ASSERT_TRUE(second->copy(&last, static_cast<unsigned char*>(block) + kBytes - 1, 1).is_ok());
  ASSERT_TRUE(second->synchronize().is_ok());
  EXPECT_EQ(last, 1);
  EXPECT_EQ(end->state(), EventState::kComplete);
  EXPECT_TRUE(first->idle());
  const auto elapsed = end->elapsed_since(*start);
  ASSERT_TRUE(elapsed.is_ok());
  EXPECT_GT(elapsed.value(), 0.0f);
  end->reset();
  EXPECT_EQ(end->state(), EventState::kUnrecorded);
  const auto untimed = gpu().create_event(false).value();
  ASSERT_TRUE(first->record(untimed).is_ok());
  ASSERT_TRUE(untimed->synchronize().is_ok());
  EXPECT_EQ(untimed->elapsed_since(*start).status().code(), Code::kInvalidArgument);
  ASSERT_TRUE(first->synchronize(std::chrono::milliseconds(1000)).is_ok());
  gpu().deallocate(block);
}

TEST_F(CudaDeviceTest, EventsOfTheCpuAreRefused) {
  Device& cpu = *find_device(DeviceKind::kCpu, 0);
  const auto stream = gpu().create_stream().value();
  EXPECT_EQ(stream->record(cpu.create_event().value()).code(), Code::kWrongDevice);
  EXPECT_EQ(cpu.null_stream()->record(gpu().create_event().value()).code(), Code::kWrongDevice);
}

TEST_F(CudaDeviceTest, TakesStreamsOfItsCallers) {
  cudaStream_t native = nullptr;
  ASSERT_EQ(cudaStreamCreate(&native), cudaSuccess);
  const auto stream = gpu().adopt_stream(native);
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(stream->native_handle(), native);
  EXPECT_EQ(gpu().adopt_stream(native), stream);
  EXPECT_EQ(gpu().adopt_stream(nullptr), gpu().null_stream());
  EXPECT_TRUE(stream->synchronize().is_ok());
  ASSERT_EQ(cudaStreamDestroy(native), cudaSuccess);
}

TEST_F(CudaDeviceTest, ManyThreadsUseStreamsAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      const auto stream = gpu().create_stream().value();
      void* const block = gpu().allocate(1 << 16).value();
      std::vector<unsigned char> back(1 << 16);
      for (int i = 0; i < 20; ++i) {
        EXPECT_TRUE(stream->fill(block, t * 20 + i, back.size()).is_ok());
        EXPECT_TRUE(stream->copy(back.data(), block, back.size()).is_ok());
        EXPECT_TRUE(stream->synchronize().is_ok());
        EXPECT_EQ(back, std::vector<unsigned char>(back.size(), static_cast<unsigned char>(t * 20 + i)));
      }
      gpu().deallocate(block);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace retrograd::runtime
