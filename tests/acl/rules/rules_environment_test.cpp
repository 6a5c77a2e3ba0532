// SPDX-License-Identifier: Apache-2.0
// RETROGRAD_RULES wins over the file, RETROGRAD_SOC_NAME over every other name. A program of its own: the
// environment is read once.
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "../client.h"

namespace retrograd::acl_test {
namespace {

[[maybe_unused]] const int rules_are_set = setenv("RETROGRAD_RULES", "training", 1);
[[maybe_unused]] const int name_is_set = setenv("RETROGRAD_SOC_NAME", "My card", 1);

TEST(RulesEnvironment, WinsOverTheFile) {
  EXPECT_STREQ(aclrtGetSocName(), "My card") << "before aclInit, too";
  const std::string path = ::testing::TempDir() + "retrograd_acl_rules_environment.json";
  std::ofstream(path) << R"({"rules": "910_95"})";
  ASSERT_EQ(aclInit(path.c_str()), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_STREQ(aclrtGetSocName(), "My card");
  ConvCall call;
  for (TensorArg* tensor : call.inputs()) tensor->dtype = ACL_BF16;
  EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_PARAM_INVALID,
                      {"gradOutput.dtype is bf16", "product training refuses it, rule conv.bf16"}));
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace retrograd::acl_test
