// SPDX-License-Identifier: Apache-2.0
// RETROGRAD_DEVICE in the environment wins over the file. A program of its own: the environment is read once.
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "client.h"

namespace retrograd::acl_test {
namespace {

[[maybe_unused]] const int environment_is_set = setenv("RETROGRAD_DEVICE", "cuda", 1);

TEST(Environment, WinsOverTheFile) {
  const std::string path = ::testing::TempDir() + "retrograd_acl_environment.json";
  std::ofstream(path) << R"({"RETROGRAD_DEVICE": "cpu"})";
  ASSERT_EQ(aclInit(path.c_str()), ACL_SUCCESS);
  EXPECT_STRNE(aclrtGetSocName(), "Retrograd-CPU");
  uint32_t count = 77;
  ASSERT_EQ(aclrtGetDeviceCount(&count), ACL_SUCCESS);
  const std::string limit = count == 0 ? "there is no CUDA device" : "the numbers of the CUDA devices";
  EXPECT_TRUE(
      failed_with(aclrtSetDevice(static_cast<int32_t>(count)), ACL_ERROR_RT_INVALID_DEVICEID, {limit}));
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace retrograd::acl_test
