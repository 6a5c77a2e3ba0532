// SPDX-License-Identifier: Apache-2.0
// The aclrt calls on init, devices, contexts and switches: what they do, and what each wrong use is told.
#include <thread>

#include "client.h"

namespace retrograd::acl_test {
namespace {

TEST(Init, IsOnceAndMayComeAgainAfterFinalize) {
  EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_TRUE(failed_with(aclInit(nullptr), ACL_ERROR_REPEAT_INITIALIZE, {"aclInit", "aclFinalize"}));
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  EXPECT_TRUE(failed_with(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE, {"aclFinalize", "aclInit"}));
  EXPECT_EQ(aclInit(""), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
}

TEST(Init, OfAclnnLeavesAclAlone) {
  EXPECT_EQ(aclnnInit(nullptr), ACLNN_SUCCESS);
  EXPECT_EQ(aclnnInit(""), ACLNN_SUCCESS);
  aclrtRunMode mode = ACL_HOST;
  EXPECT_TRUE(failed_with(aclrtGetRunMode(&mode), ACL_ERROR_UNINITIALIZE, {"aclInit"}));
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclnnFinalize(), ACLNN_SUCCESS);
  EXPECT_EQ(aclrtGetRunMode(&mode), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
}

TEST(RecentErrMsg, IsTakenOnceAndIsThisThreadsOwn) {
  EXPECT_EQ(aclDestroyTensor(reinterpret_cast<aclTensor*>(uintptr_t{1})), ACLNN_ERR_INNER_NULLPTR);
  std::thread([] { EXPECT_EQ(aclGetRecentErrMsg(), nullptr); }).join();
  const char* text = aclGetRecentErrMsg();
  ASSERT_NE(text, nullptr);
  EXPECT_TRUE(std::string(text).starts_with("561103 aclDestroyTensor: tensor is 0x1"));
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
}

TEST(RecentErrMsg, IsNotTouchedBySuccess) {
  EXPECT_EQ(aclDestroyTensor(reinterpret_cast<aclTensor*>(uintptr_t{1})), ACLNN_ERR_INNER_NULLPTR);
  EXPECT_EQ(aclDestroyTensor(nullptr), ACLNN_SUCCESS);
  EXPECT_NE(aclGetRecentErrMsg(), nullptr);
}

class Runtime : public AclTest {};

TEST_F(Runtime, CountsItsDevicesAndNamesThem) {
  uint32_t count = 0;
  EXPECT_EQ(aclrtGetDeviceCount(&count), ACL_SUCCESS);
  EXPECT_GE(count, 1u);
  EXPECT_TRUE(failed_with(aclrtGetDeviceCount(nullptr), ACL_ERROR_INVALID_PARAM, {"count is null"}));
  ASSERT_NE(aclrtGetSocName(), nullptr);
  EXPECT_TRUE(std::string(aclrtGetSocName()).starts_with("Retrograd-C"));
  aclrtRunMode mode = ACL_DEVICE;
  EXPECT_EQ(aclrtGetRunMode(&mode), ACL_SUCCESS);
  EXPECT_EQ(mode, ACL_HOST);
  EXPECT_TRUE(failed_with(aclrtGetRunMode(nullptr), ACL_ERROR_INVALID_PARAM, {"runMode is null"}));
}

TEST_F(Runtime, RefusesDevicesThatDoNotExist) {
  uint32_t count = 0;
  ASSERT_EQ(aclrtGetDeviceCount(&count), ACL_SUCCESS);
  aclrtContext context = &count;
  for (const int32_t id : {-1, static_cast<int32_t>(count), INT32_MAX, INT32_MIN}) {
    const std::string value = "deviceId is " + std::to_string(id);
    EXPECT_TRUE(failed_with(aclrtSetDevice(id), ACL_ERROR_RT_INVALID_DEVICEID,
                            {value, "expected 0 to 0: the numbers of the CPU devices"}));
    EXPECT_TRUE(failed_with(aclrtResetDevice(id), ACL_ERROR_RT_INVALID_DEVICEID, {value}));
    EXPECT_TRUE(failed_with(aclrtResetDeviceForce(id), ACL_ERROR_RT_INVALID_DEVICEID, {value}));
    EXPECT_TRUE(failed_with(aclrtCreateContext(&context, id), ACL_ERROR_RT_INVALID_DEVICEID, {value}));
  }
  EXPECT_EQ(context, &count);
}

TEST_F(Runtime, CountsSetAndResetOfADevice) {
  int32_t device = -1;
  EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);  // the second: SetUp was the first
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetDevice(&device), ACL_SUCCESS);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  EXPECT_TRUE(failed_with(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL, {"no current context"}));
  EXPECT_TRUE(failed_with(aclrtSynchronizeStream(stream_), ACL_ERROR_RT_INVALID_HANDLE,
                          {"stream is", "was destroyed"}))
      << "its context took it along";
  EXPECT_TRUE(
      failed_with(aclrtResetDevice(0), ACL_ERROR_RT_CONTEXT_NULL, {"deviceId is 0", "aclrtSetDevice"}));
}

TEST_F(Runtime, ForcesADeviceToZeroAtOnce) {
  EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
  int32_t device = -1;
  EXPECT_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
  EXPECT_EQ(device, -1);
  EXPECT_TRUE(failed_with(aclrtResetDeviceForce(0), ACL_ERROR_RT_CONTEXT_NULL, {"deviceId is 0"}));
}

TEST_F(Runtime, SharesTheDefaultContextBetweenThreads) {
  aclrtContext mine = nullptr, theirs = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&mine), ACL_SUCCESS);
  std::thread([&] {
    aclrtContext none = nullptr;
    EXPECT_TRUE(
        failed_with(aclrtGetCurrentContext(&none), ACL_ERROR_RT_CONTEXT_NULL, {"no current context"}));
    EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    EXPECT_EQ(aclrtGetCurrentContext(&theirs), ACL_SUCCESS);
    EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  }).join();
  EXPECT_EQ(mine, theirs);
  EXPECT_EQ(aclrtGetCurrentContext(&mine), ACL_SUCCESS) << "it was counted, and lives on";
}

TEST_F(Runtime, MakesExplicitContextsCurrent) {
  aclrtContext first = nullptr, made = nullptr, current = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&first), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateContext(&made, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetCurrentContext(&current), ACL_SUCCESS);
  EXPECT_EQ(current, made);
  EXPECT_NE(made, first);
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetCurrentContext(first), ACL_SUCCESS);
  EXPECT_TRUE(failed_with(aclrtSynchronizeStream(stream), ACL_ERROR_RT_STREAM_CONTEXT,
                          {"belongs to context", "current"}));
  EXPECT_EQ(aclrtDestroyContext(made), ACL_SUCCESS);
  EXPECT_TRUE(failed_with(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INVALID_HANDLE, {"stream is"}));
  EXPECT_TRUE(failed_with(aclrtSetCurrentContext(made), ACL_ERROR_RT_INVALID_HANDLE,
                          {"context is", "was destroyed"}));
  EXPECT_TRUE(failed_with(aclrtDestroyContext(made), ACL_ERROR_RT_INVALID_HANDLE, {"context is"}));
}

TEST_F(Runtime, LeavesAThreadWithoutAContextWhenItsOwnDies) {
  aclrtContext made = nullptr;
  ASSERT_EQ(aclrtCreateContext(&made, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyContext(made), ACL_SUCCESS);
  void* block = this;
  EXPECT_TRUE(failed_with(aclrtMalloc(&block, 8, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_CONTEXT_NULL, {}));
  EXPECT_EQ(block, this);
  EXPECT_TRUE(refused(ConvCall().phase_one(), ACLNN_ERR_RUNTIME_ERROR, {"no current context"}));
}

TEST_F(Runtime, RefusesNullForeignAndDefaultContexts) {
  aclrtContext current = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&current), ACL_SUCCESS);
  EXPECT_TRUE(failed_with(aclrtCreateContext(nullptr, 0), ACL_ERROR_INVALID_PARAM, {"context is null"}));
  EXPECT_TRUE(failed_with(aclrtDestroyContext(nullptr), ACL_ERROR_INVALID_PARAM, {"context is null"}));
  EXPECT_TRUE(failed_with(aclrtSetCurrentContext(nullptr), ACL_ERROR_INVALID_PARAM, {"context is null"}));
  EXPECT_TRUE(failed_with(aclrtGetCurrentContext(nullptr), ACL_ERROR_INVALID_PARAM, {"context is null"}));
  EXPECT_TRUE(failed_with(aclrtSetCurrentContext(this), ACL_ERROR_RT_INVALID_HANDLE,
                          {"expected a live aclrtContext"}));
  EXPECT_TRUE(
      failed_with(aclrtSetCurrentContext(stream_), ACL_ERROR_RT_INVALID_HANDLE, {"live aclrtContext"}));
  EXPECT_TRUE(failed_with(aclrtDestroyContext(stream_), ACL_ERROR_RT_INVALID_HANDLE, {"live aclrtContext"}));
  EXPECT_TRUE(failed_with(aclrtDestroyContext(current), ACL_ERROR_RT_PARAM_INVALID,
                          {"default context", "aclrtResetDevice"}));
  EXPECT_TRUE(failed_with(aclrtGetDevice(nullptr), ACL_ERROR_INVALID_PARAM, {"deviceId is null"}));
}

TEST_F(Runtime, KeepsSwitchesOfTheContextAndOfTheProcessApart) {
  int64_t value = 77;
  EXPECT_TRUE(failed_with(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value),
                          ACL_ERROR_RT_SYS_PARAMS_OPT_NOT_SET, {"opt is 0", "aclrtCtxSetSysParamOpt"}));
  EXPECT_EQ(value, 77);
  EXPECT_EQ(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 0);
  EXPECT_EQ(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetSysParamOpt(ACL_OPT_STRONG_CONSISTENCY, 5), ACL_SUCCESS);
  EXPECT_EQ(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 0);
  EXPECT_EQ(aclrtGetSysParamOpt(ACL_OPT_STRONG_CONSISTENCY, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 5);
}

TEST_F(Runtime, RefusesSwitchesThatDoNotExistAndNull) {
  int64_t value = 0;
  for (const int number : {-1, 4, 1000}) {
    const auto opt = static_cast<aclSysParamOpt>(number);
    const std::vector<std::string> says = {"opt is " + std::to_string(number), "expected 0 to 3"};
    EXPECT_TRUE(failed_with(aclrtSetSysParamOpt(opt, 1), ACL_ERROR_RT_PARAM_INVALID, says));
    EXPECT_TRUE(failed_with(aclrtGetSysParamOpt(opt, &value), ACL_ERROR_RT_PARAM_INVALID, says));
    EXPECT_TRUE(failed_with(aclrtCtxSetSysParamOpt(opt, 1), ACL_ERROR_RT_PARAM_INVALID, says));
    EXPECT_TRUE(failed_with(aclrtCtxGetSysParamOpt(opt, &value), ACL_ERROR_RT_PARAM_INVALID, says));
  }
  EXPECT_TRUE(
      failed_with(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, nullptr), ACL_ERROR_INVALID_PARAM, {"value"}));
  EXPECT_TRUE(failed_with(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, nullptr), ACL_ERROR_INVALID_PARAM,
                          {"value"}));
}

TEST_F(Runtime, ForgetsTheSwitchesOfTheProcessAtFinalize) {
  int64_t value = 77;
  ASSERT_EQ(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1), ACL_SUCCESS);
  ASSERT_EQ(aclFinalize(), ACL_SUCCESS);
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 0);
}

TEST_F(Runtime, TellsTheMemoryOfTheDevice) {
  size_t free_bytes = 0, total = 0;
  EXPECT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total), ACL_SUCCESS);
  EXPECT_GT(total, 0u);
  EXPECT_LE(free_bytes, total);
  EXPECT_TRUE(
      failed_with(aclrtGetMemInfo(ACL_HBM_MEM, nullptr, &total), ACL_ERROR_INVALID_PARAM, {"free is null"}));
  EXPECT_TRUE(
      failed_with(aclrtGetMemInfo(ACL_HBM_MEM, &total, nullptr), ACL_ERROR_INVALID_PARAM, {"total is null"}));
  EXPECT_TRUE(failed_with(aclrtGetMemInfo(static_cast<aclrtMemAttr>(10), &free_bytes, &total),
                          ACL_ERROR_RT_PARAM_INVALID, {"attr is 10", "0 to 9"}));
}

TEST_F(Runtime, SurvivesTheSamplesErrorPath) {
  // Finalise, then destroy and free what is gone, then finalise again; destroy a stream that never was.
  void* block = nullptr;
  ASSERT_EQ(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  const int64_t size = 16;
  aclTensor* tensor = aclCreateTensor(&size, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &size, 1, block);
  EXPECT_EQ(aclrtDestroyStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  EXPECT_EQ(aclDestroyTensor(tensor), ACLNN_SUCCESS);
  EXPECT_TRUE(failed_with(aclrtFree(block), ACL_ERROR_UNINITIALIZE, {"aclInit"}));
  EXPECT_TRUE(failed_with(aclrtDestroyStream(stream_), ACL_ERROR_UNINITIALIZE, {"aclInit"}));
  EXPECT_TRUE(failed_with(aclrtResetDevice(0), ACL_ERROR_UNINITIALIZE, {"aclInit"}));
  EXPECT_TRUE(failed_with(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE, {}));

  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  const aclrtStream never = reinterpret_cast<aclrtStream>(uintptr_t{0xDEADBEEF});
  EXPECT_TRUE(failed_with(aclrtDestroyStream(never), ACL_ERROR_RT_INVALID_HANDLE, {"stream is 0xdeadbeef"}));
  EXPECT_TRUE(failed_with(aclrtDestroyStream(stream_), ACL_ERROR_RT_INVALID_HANDLE, {}))
      << "of the life before";
  EXPECT_TRUE(failed_with(aclrtFree(block), ACL_ERROR_RT_PARAM_INVALID, {})) << "of the life before";
}

}  // namespace
}  // namespace retrograd::acl_test
