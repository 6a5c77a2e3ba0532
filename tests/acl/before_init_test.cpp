// SPDX-License-Identifier: Apache-2.0
// Every runtime call in a process that has never called aclInit. A program of its own: nothing here
// initialises.
#include "acl/acl_op_compiler.h"
#include "client.h"

namespace retrograd::acl_test {
namespace {

TEST(BeforeInit, FinalizeIsToldThatNothingWasInitialised) {
  EXPECT_TRUE(
      failed_with(aclFinalize(), ACL_ERROR_UNINITIALIZE, {"aclFinalize", "aclInit has not been called"}));
}

TEST(BeforeInit, EveryRuntimeCallIsRefused) {
  int32_t device = 0;
  uint32_t flags = 0;
  aclrtRunMode mode = ACL_HOST;
  size_t bytes = 0;
  int64_t value = 0;
  float ms = 0;
  void* pointer = nullptr;
  char memory[8] = {};
  aclrtStreamStatus stream_status = ACL_STREAM_STATUS_COMPLETE;
  aclrtEventStatus status = ACL_EVENT_STATUS_COMPLETE;
  aclrtEventRecordedStatus recorded = ACL_EVENT_RECORDED_STATUS_COMPLETE;
  const std::pair<const char*, aclError> calls[] = {
      {"aclrtSetDevice", aclrtSetDevice(0)},
      {"aclrtResetDevice", aclrtResetDevice(0)},
      {"aclrtResetDeviceForce", aclrtResetDeviceForce(0)},
      {"aclrtGetDevice", aclrtGetDevice(&device)},
      {"aclrtGetRunMode", aclrtGetRunMode(&mode)},
      {"aclrtSynchronizeDevice", aclrtSynchronizeDevice()},
      {"aclrtGetPrimaryCtxState", aclrtGetPrimaryCtxState(0, &flags, &device)},
      {"aclrtSetDeviceSatMode", aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN)},
      {"aclrtSetOpExecuteTimeOut", aclrtSetOpExecuteTimeOut(1)},
      {"aclSetCompileopt", aclSetCompileopt(ACL_OP_JIT_COMPILE, "disable")},
      {"aclGetCompileopt", aclGetCompileopt(ACL_OP_JIT_COMPILE, memory, sizeof memory)},
      {"aclrtGetMemInfo", aclrtGetMemInfo(ACL_HBM_MEM, &bytes, &bytes)},
      {"aclrtCreateContext", aclrtCreateContext(&pointer, 0)},
      {"aclrtDestroyContext", aclrtDestroyContext(memory)},
      {"aclrtSetCurrentContext", aclrtSetCurrentContext(memory)},
      {"aclrtGetCurrentContext", aclrtGetCurrentContext(&pointer)},
      {"aclrtCtxSetSysParamOpt", aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1)},
      {"aclrtCtxGetSysParamOpt", aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value)},
      {"aclrtSetSysParamOpt", aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1)},
      {"aclrtGetSysParamOpt", aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value)},
      {"aclrtCreateStream", aclrtCreateStream(&pointer)},
      {"aclrtCreateStreamWithConfig", aclrtCreateStreamWithConfig(&pointer, 0, 0)},
      {"aclrtDestroyStream", aclrtDestroyStream(memory)},
      {"aclrtDestroyStreamForce", aclrtDestroyStreamForce(memory)},
      {"aclrtSynchronizeStream", aclrtSynchronizeStream(nullptr)},
      {"aclrtSynchronizeStreamWithTimeout", aclrtSynchronizeStreamWithTimeout(nullptr, 1)},
      {"aclrtStreamQuery", aclrtStreamQuery(nullptr, &stream_status)},
      {"aclrtStreamWaitEvent", aclrtStreamWaitEvent(nullptr, memory)},
      {"aclrtCreateEvent", aclrtCreateEvent(&pointer)},
      {"aclrtCreateEventWithFlag", aclrtCreateEventWithFlag(&pointer, 0)},
      {"aclrtDestroyEvent", aclrtDestroyEvent(memory)},
      {"aclrtRecordEvent", aclrtRecordEvent(memory, nullptr)},
      {"aclrtResetEvent", aclrtResetEvent(memory, nullptr)},
      {"aclrtQueryEventStatus", aclrtQueryEventStatus(memory, &recorded)},
      {"aclrtQueryEvent", aclrtQueryEvent(memory, &status)},
      {"aclrtSynchronizeEvent", aclrtSynchronizeEvent(memory)},
      {"aclrtEventElapsedTime", aclrtEventElapsedTime(&ms, memory, memory)},
      {"aclrtMalloc", aclrtMalloc(&pointer, 8, ACL_MEM_MALLOC_HUGE_FIRST)},
      {"aclrtFree", aclrtFree(memory)},
      {"aclrtMallocHost", aclrtMallocHost(&pointer, 8)},
      {"aclrtFreeHost", aclrtFreeHost(memory)},
      {"aclrtMemcpy", aclrtMemcpy(memory, 4, memory + 4, 4, ACL_MEMCPY_DEFAULT)},
      {"aclrtMemcpyAsync", aclrtMemcpyAsync(memory, 4, memory + 4, 4, ACL_MEMCPY_DEFAULT, nullptr)},
      {"aclrtMemset", aclrtMemset(memory, 4, 1, 4)},
      {"aclrtMemsetAsync", aclrtMemsetAsync(memory, 4, 1, 4, nullptr)},
  };
  for (const auto& [name, code] : calls) EXPECT_EQ(code, ACL_ERROR_UNINITIALIZE) << name;
  EXPECT_EQ(pointer, nullptr);
  for (const char byte : memory) EXPECT_EQ(byte, 0);
  EXPECT_TRUE(failed_with(aclrtSetDevice(0), ACL_ERROR_UNINITIALIZE, {"100001 aclrtSetDevice: aclInit"}));
}

TEST(BeforeInit, WhatNeedsNoDeviceWorks) {
  EXPECT_EQ(aclGetRecentErrMsg() == nullptr, true);
  uint32_t count = 0;
  EXPECT_EQ(aclrtGetDeviceCount(&count), ACL_SUCCESS);
  EXPECT_GE(count, 1u);
  int32_t major = -1, minor = -1, patch = -1;
  EXPECT_EQ(aclrtGetVersion(&major, &minor, &patch), ACL_SUCCESS);
  EXPECT_EQ((std::vector{major, minor, patch}), (std::vector{1, 0, 0}));
  EXPECT_TRUE(
      failed_with(aclrtGetVersion(nullptr, &minor, &patch), ACL_ERROR_INVALID_PARAM, {"majorVersion"}));
  EXPECT_TRUE(
      failed_with(aclrtGetVersion(&major, nullptr, &patch), ACL_ERROR_INVALID_PARAM, {"minorVersion"}));
  EXPECT_TRUE(
      failed_with(aclrtGetVersion(&major, &minor, nullptr), ACL_ERROR_INVALID_PARAM, {"patchVersion"}));
  EXPECT_TRUE(failed_with(aclrtGetDeviceCount(nullptr), ACL_ERROR_INVALID_PARAM, {"count is null"}));
  ASSERT_NE(aclrtGetSocName(), nullptr);
  EXPECT_TRUE(std::string(aclrtGetSocName()).starts_with("Retrograd-"));
  EXPECT_EQ(aclDataTypeSize(ACL_DOUBLE), 8u);
  EXPECT_EQ(aclnnFinalize(), ACLNN_SUCCESS);
}

TEST(BeforeInit, PhaseTwoJudgesItsExecutorAndIsRefused) {
  for (const PhaseTwo run :
       {aclnnConvolutionBackward, aclnnConvTbcBackward, aclnnAvgPool2dBackward, aclnnAvgPool3dBackward}) {
    EXPECT_TRUE(
        failed_with(run(nullptr, 0, nullptr, nullptr), ACLNN_ERR_PARAM_NULLPTR, {"executor is null"}));
    EXPECT_TRUE(failed_with(run(nullptr, 0, PhaseOne::poisoned(), nullptr), ACLNN_ERR_INNER_NULLPTR,
                            {"aclOpExecutor"}));
  }
}

}  // namespace
}  // namespace retrograd::acl_test
