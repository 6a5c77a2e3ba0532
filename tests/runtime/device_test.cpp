// SPDX-License-Identifier: Apache-2.0
// The devices of the process, and what the CPU answers as one of them.
#include "runtime/device.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "host_fixture.h"
#include "runtime/host/host_device.h"
#include "runtime/host/host_memory.h"

namespace retrograd::runtime {
namespace {

TEST(Device, ThereIsOneCpu) {
  EXPECT_EQ(device_count(DeviceKind::kCpu), 1);
  const int gpus = device_count(DeviceKind::kCuda);
  ASSERT_EQ(devices().size(), 1u + static_cast<size_t>(gpus));
  EXPECT_EQ(find_device(DeviceKind::kCpu, 0), devices()[0]);
  EXPECT_EQ(find_device(DeviceKind::kCpu, 1), nullptr);
  EXPECT_EQ(find_device(DeviceKind::kCpu, -1), nullptr);
  EXPECT_EQ(find_device(DeviceKind::kCuda, gpus), nullptr);
}

TEST(Device, NamesItself) {
  HostDevice another(3);
  EXPECT_EQ(cpu().label(), "cpu:0");
  EXPECT_EQ(another.label(), "cpu:3");
  EXPECT_EQ(another.index(), 3);
  EXPECT_EQ(another.kind(), DeviceKind::kCpu);
  EXPECT_EQ(std::string(cpu().soc_name()), "Retrograd-CPU");
}

TEST(Device, AllocatesAlignedMemory) {
  for (const size_t bytes : {1U, 63U, 64U, 1000U}) {
    const auto block = cpu().allocate(bytes);
    const auto host_block = cpu().allocate_host(bytes);
    ASSERT_TRUE(block.is_ok());
    ASSERT_TRUE(host_block.is_ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.value()) % HostDevice::kAlignment, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(host_block.value()) % HostDevice::kAlignment, 0u);
    cpu().deallocate(block.value());
    cpu().deallocate_host(host_block.value());
  }
}

TEST(Device, RefusesMoreMemoryThanThereIs) {
  const size_t total = cpu().memory_info().value().total_bytes;
  for (const size_t bytes : {total + 1, std::numeric_limits<size_t>::max()}) {
    const auto block = cpu().allocate(bytes);
    EXPECT_EQ(block.status().code(), Code::kOutOfMemory);
    EXPECT_EQ(block.status().message(),
              std::to_string(bytes) + " bytes were asked for on cpu:0, which has " + std::to_string(total));
  }
  EXPECT_EQ(cpu().allocate(0).status().code(), Code::kInvalidArgument);
}

TEST(Device, TellsItsMemory) {
  const auto info = cpu().memory_info();
  ASSERT_TRUE(info.is_ok());
  EXPECT_GT(info.value().free_bytes, 0u);
  EXPECT_LE(info.value().free_bytes, info.value().total_bytes);
}

TEST(Device, MemoryInfoIsReadFromTheTwoLinesThatTellIt) {
  const auto info =
      parse_meminfo("MemTotal:       16000 kB\nMemFree:  12 kB\nMemAvailable:    8000 kB\nBuffers: 1 kB\n");
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->total_bytes, 16000u * 1024);
  EXPECT_EQ(info->free_bytes, 8000u * 1024);
  EXPECT_TRUE(parse_meminfo("MemAvailable: 1 kB\nMemTotal: 2 kB").has_value());
}

TEST(Device, MemoryInfoOfAnotherFormIsNotGuessed) {
  for (const char* text :
       {"", "\n\n", "MemTotal: 16000 kB\n", "MemAvailable: 8000 kB\n", "MemTotal:\nMemAvailable:\n",
        "MemTotal: x kB\nMemAvailable: 1 kB\n", "MemTotal: 1 MB\nMemAvailable: 1 kB\n",
        "MemTotal: -1 kB\nMemAvailable: 1 kB\n", "MemTotal: 18446744073709551615 kB\nMemAvailable: 1 kB",
        "MemTotal: 99999999999999999999999 kB\nMemAvailable: 1 kB", "MemTotal: 1\nMemAvailable: 1"})
    EXPECT_FALSE(parse_meminfo(text).has_value()) << text;
}

TEST(Device, CopiesAndFills) {
  int numbers[4] = {1, 2, 3, 4};
  RG_EXPECT_OK(cpu().copy(numbers + 1, numbers, 3 * sizeof(int)));  // overlapping
  EXPECT_EQ(numbers[1], 1);
  EXPECT_EQ(numbers[2], 2);
  EXPECT_EQ(numbers[3], 3);
  RG_EXPECT_OK(cpu().fill(numbers, 0xff, sizeof(int)));
  EXPECT_EQ(numbers[0], -1);
  EXPECT_EQ(numbers[1], 1);
  RG_EXPECT_OK(cpu().copy(nullptr, nullptr, 0));
  RG_EXPECT_OK(cpu().fill(nullptr, 0, 0));
  EXPECT_EQ(cpu().copy(nullptr, numbers, 1).code(), Code::kNullArgument);
  EXPECT_EQ(cpu().copy(numbers, nullptr, 1).code(), Code::kNullArgument);
  EXPECT_EQ(cpu().fill(nullptr, 0, 1).code(), Code::kNullArgument);
}

}  // namespace
}  // namespace retrograd::runtime
