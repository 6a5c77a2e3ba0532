// SPDX-License-Identifier: Apache-2.0
// Calls that mean nothing here: they judge their arguments, and change nothing.
#include "acl/acl_op_compiler.h"
#include "client.h"

namespace retrograd::acl_test {
namespace {

class Compatibility : public AclTest {};

TEST_F(Compatibility, CompileOptionsAreJudgedAndForgotten) {
  EXPECT_EQ(aclSetCompileopt(ACL_OP_JIT_COMPILE, "disable"), ACL_SUCCESS);
  EXPECT_EQ(aclSetCompileopt(ACL_OP_DEBUG_OPTION, ""), ACL_SUCCESS);
  EXPECT_TRUE(failed_with(aclSetCompileopt(ACL_OP_JIT_COMPILE, nullptr), ACL_ERROR_INVALID_PARAM,
                          {"aclSetCompileopt", "value is null"}));
  EXPECT_TRUE(failed_with(aclSetCompileopt(static_cast<aclCompileOpt>(17), "x"), ACL_ERROR_RT_PARAM_INVALID,
                          {"opt is 17", "0 to 16"}));
  EXPECT_EQ(aclGetCompileoptSize(ACL_OP_JIT_COMPILE), 1u);
  char text[8] = "old";
  EXPECT_EQ(aclGetCompileopt(ACL_OP_JIT_COMPILE, text, sizeof text), ACL_SUCCESS);
  EXPECT_STREQ(text, "");
  EXPECT_TRUE(failed_with(aclGetCompileopt(ACL_OP_JIT_COMPILE, text, 0), ACL_ERROR_RT_PARAM_INVALID,
                          {"length is 0", "at least 1"}));
  EXPECT_TRUE(failed_with(aclGetCompileopt(ACL_OP_JIT_COMPILE, nullptr, 8), ACL_ERROR_INVALID_PARAM,
                          {"value is null"}));
  EXPECT_TRUE(failed_with(aclGetCompileopt(static_cast<aclCompileOpt>(31), text, 8),
                          ACL_ERROR_RT_PARAM_INVALID, {"opt is 31"}));
}

TEST_F(Compatibility, SaturationAndTimeoutsAreJudgedAndForgotten) {
  for (const auto mode :
       {ACL_RT_OVERFLOW_MODE_SATURATION, ACL_RT_OVERFLOW_MODE_INFNAN, ACL_RT_OVERFLOW_MODE_UNDEF})
    EXPECT_EQ(aclrtSetDeviceSatMode(mode), ACL_SUCCESS);
  EXPECT_TRUE(failed_with(aclrtSetDeviceSatMode(static_cast<aclrtFloatOverflowMode>(3)),
                          ACL_ERROR_RT_PARAM_INVALID, {"mode is 3", "0 to 2"}));
  EXPECT_EQ(aclrtSetOpExecuteTimeOut(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetOpExecuteTimeOut(~0U), ACL_SUCCESS);
}

TEST_F(Compatibility, ThePrimaryContextIsThatOfSetDevice) {
  uint32_t flags = 7;
  int32_t active = 7;
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetPrimaryCtxState(0, &flags, &active), ACL_SUCCESS);
  EXPECT_EQ(flags, 0u);
  EXPECT_EQ(active, 1);
  ASSERT_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetPrimaryCtxState(0, &flags, &active), ACL_SUCCESS);
  EXPECT_EQ(active, 0);
  EXPECT_TRUE(
      failed_with(aclrtGetPrimaryCtxState(99, &flags, &active), ACL_ERROR_RT_INVALID_DEVICEID, {"99"}));
  EXPECT_TRUE(failed_with(aclrtGetPrimaryCtxState(0, nullptr, &active), ACL_ERROR_INVALID_PARAM, {"flags"}));
  EXPECT_TRUE(failed_with(aclrtGetPrimaryCtxState(0, &flags, nullptr), ACL_ERROR_INVALID_PARAM, {"active"}));
}

TEST(HugeMemory, IsNotKeptApart) {
  EXPECT_EQ(InitHugeMemThreadLocal(nullptr, false), 0);
  UnInitHugeMemThreadLocal(nullptr, true);
  ReleaseHugeMem(nullptr, false);
}

}  // namespace
}  // namespace retrograd::acl_test
