// SPDX-License-Identifier: Apache-2.0
// infinirt: devices, per thread, and those we do not run.
#include <gtest/gtest.h>

#include <array>
#include <climits>
#include <thread>

#include "infini/client.h"
#include "retrograd/retrograd.h"

namespace retrograd::infini_test {
namespace {

std::pair<int, int> current() {
  infiniDevice_t type = INFINI_DEVICE_ALI;
  int id = -1;
  EXPECT_EQ(infinirtGetDevice(&type, &id), INFINI_STATUS_SUCCESS);
  return {type, id};
}

TEST(InfinirtDevice, InitMayBeCalledOftenAndNeedNotBe) {
  EXPECT_EQ(infinirtInit(), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtInit(), INFINI_STATUS_SUCCESS);
}

TEST(InfinirtDevice, AllCountsAreNineNumbers) {
  std::array<int, 11> counts;
  counts.fill(-7);
  ASSERT_EQ(infinirtGetAllDeviceCount(counts.data()), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(counts[INFINI_DEVICE_CPU], 1);
  EXPECT_GE(counts[INFINI_DEVICE_NVIDIA], 0);
  for (size_t type = INFINI_DEVICE_CAMBRICON; type < 9; ++type) EXPECT_EQ(counts[type], 0) << type;
  EXPECT_EQ(counts[9], -7) << "an older client has no room for more";
  EXPECT_EQ(counts[10], -7);
}

TEST(InfinirtDevice, CountsByType) {
  int count = -1;
  EXPECT_EQ(infinirtGetDeviceCount(INFINI_DEVICE_CPU, &count), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(infinirtGetDeviceCount(INFINI_DEVICE_NVIDIA, &count), INFINI_STATUS_SUCCESS);
  EXPECT_GE(count, 0);
}

TEST(InfinirtDevice, TypesThatAreNotRunAreNotSupported) {
  for (int type : {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -1, INT_MAX, INT_MIN}) {
    SCOPED_TRACE(type);
    const auto device = static_cast<infiniDevice_t>(type);
    const std::string is = "device type is " + std::to_string(type);
    int count = -7;
    size_t free_bytes = 7, total = 7;
    expect_refused(infinirtGetDeviceCount(device, &count), INFINI_STATUS_DEVICE_TYPE_NOT_SUPPORTED,
                   "infinirtGetDeviceCount", {is.c_str(), "CPU (0) or NVIDIA (1)"});
    expect_refused(infinirtSetDevice(device, 0), INFINI_STATUS_DEVICE_TYPE_NOT_SUPPORTED, "infinirtSetDevice",
                   {is.c_str()});
    expect_refused(infiniopSetRuntimeDevice(device, 0), INFINI_STATUS_DEVICE_TYPE_NOT_SUPPORTED,
                   "infiniopSetRuntimeDevice", {is.c_str()});
    expect_refused(infinirtGetMemInfo(device, 0, &free_bytes, &total),
                   INFINI_STATUS_DEVICE_TYPE_NOT_SUPPORTED, "infinirtGetMemInfo", {is.c_str()});
    EXPECT_EQ(count, -7);
    EXPECT_EQ(current(), std::pair(0, 0)) << "a failing call changes nothing";
  }
}

TEST(InfinirtDevice, SugonIsTheOldNameOfHygon) { EXPECT_EQ(INFINI_DEVICE_SUGON, INFINI_DEVICE_HYGON); }

TEST(InfinirtDevice, IsSetThroughInfiniopToo) {
  int gpus = -1;
  ASSERT_EQ(infinirtGetDeviceCount(INFINI_DEVICE_NVIDIA, &gpus), INFINI_STATUS_SUCCESS);
  expect_refused(infiniopSetRuntimeDevice(INFINI_DEVICE_NVIDIA, gpus), INFINI_STATUS_DEVICE_NOT_FOUND,
                 "infiniopSetRuntimeDevice", {"does not exist"});
  if (gpus > 0) {
    EXPECT_EQ(infiniopSetRuntimeDevice(INFINI_DEVICE_NVIDIA, 0), INFINI_STATUS_SUCCESS);
    EXPECT_EQ(current(), std::pair(1, 0));
  }
  EXPECT_EQ(infiniopSetRuntimeDevice(INFINI_DEVICE_CPU, 0), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(current(), std::pair(0, 0));
}

TEST(InfinirtDevice, NumbersBeyondTheCountAreNotFound) {
  int gpus = -1;
  ASSERT_EQ(infinirtGetDeviceCount(INFINI_DEVICE_NVIDIA, &gpus), INFINI_STATUS_SUCCESS);
  size_t free_bytes = 7, total = 7;
  for (int id : {gpus, -1, INT_MAX, INT_MIN}) {
    expect_refused(infinirtSetDevice(INFINI_DEVICE_NVIDIA, id), INFINI_STATUS_DEVICE_NOT_FOUND,
                   "infinirtSetDevice", {("NVIDIA " + std::to_string(id)).c_str(), "does not exist"});
    expect_refused(infinirtGetMemInfo(INFINI_DEVICE_NVIDIA, id, &free_bytes, &total),
                   INFINI_STATUS_DEVICE_NOT_FOUND, "infinirtGetMemInfo", {"does not exist"});
  }
  for (int id : {1, -1}) {
    expect_refused(infinirtSetDevice(INFINI_DEVICE_CPU, id), INFINI_STATUS_DEVICE_NOT_FOUND,
                   "infinirtSetDevice", {"CPU", "does not exist", "expected 0 to 0"});
  }
  EXPECT_EQ(current(), std::pair(0, 0));
}

TEST(InfinirtDevice, EachThreadStartsOnTheCpu) {
  EXPECT_EQ(infinirtSetDevice(INFINI_DEVICE_CPU, 0), INFINI_STATUS_SUCCESS);
  std::thread([] { EXPECT_EQ(current(), std::pair(0, 0)); }).join();
}

TEST(InfinirtDevice, NullOutPointersAreNullPointers) {
  infiniDevice_t type;
  int id;
  size_t bytes;
  expect_refused(infinirtGetAllDeviceCount(nullptr), INFINI_STATUS_NULL_POINTER, "infinirtGetAllDeviceCount",
                 {"count_array is null"});
  expect_refused(infinirtGetDeviceCount(INFINI_DEVICE_CPU, nullptr), INFINI_STATUS_NULL_POINTER,
                 "infinirtGetDeviceCount", {"count is null"});
  expect_refused(infinirtGetDevice(nullptr, &id), INFINI_STATUS_NULL_POINTER, "infinirtGetDevice",
                 {"device_ptr is null"});
  expect_refused(infinirtGetDevice(&type, nullptr), INFINI_STATUS_NULL_POINTER, "infinirtGetDevice",
                 {"device_id_ptr is null"});
  expect_refused(infinirtGetMemInfo(INFINI_DEVICE_CPU, 0, nullptr, &bytes), INFINI_STATUS_NULL_POINTER,
                 "infinirtGetMemInfo", {"free_mem is null"});
  expect_refused(infinirtGetMemInfo(INFINI_DEVICE_CPU, 0, &bytes, nullptr), INFINI_STATUS_NULL_POINTER,
                 "infinirtGetMemInfo", {"total_mem is null"});
}

TEST(InfinirtDevice, TellsItsMemory) {
  size_t free_bytes = 0, total = 0;
  ASSERT_EQ(infinirtGetMemInfo(INFINI_DEVICE_CPU, 0, &free_bytes, &total), INFINI_STATUS_SUCCESS);
  EXPECT_GT(free_bytes, 0u);
  EXPECT_GE(total, free_bytes);
}

TEST(RetrogradLastError, BelongsToTheThreadAndStaysAfterSuccess) {
  expect_refused(infinirtGetAllDeviceCount(nullptr), INFINI_STATUS_NULL_POINTER, "infinirtGetAllDeviceCount",
                 {});
  std::thread([] { EXPECT_STREQ(retrogradGetLastError(), ""); }).join();
  EXPECT_EQ(infinirtInit(), INFINI_STATUS_SUCCESS);
  EXPECT_STREQ(retrogradGetLastError(),
               "4 infinirtGetAllDeviceCount: count_array is null, expected an address");
}

}  // namespace
}  // namespace retrograd::infini_test
