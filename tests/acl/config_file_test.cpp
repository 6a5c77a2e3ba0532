// SPDX-License-Identifier: Apache-2.0
// The file given to aclInit and aclnnInit.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "client.h"

namespace retrograd::acl_test {
namespace {

class ConfigFile : public ::testing::Test {
 protected:
  void SetUp() override {
    // Named after the test: ctest runs them side by side.
    path_ = ::testing::TempDir() + "retrograd_acl_" +
            ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".json";
  }
  void TearDown() override {
    (void)aclFinalize();  // of a test that failed halfway
    std::remove(path_.c_str());
  }
  const char* holding(const std::string& text) {
    std::ofstream(path_, std::ios::binary) << text;
    return path_.c_str();
  }
  std::string path_;
};

TEST_F(ConfigFile, ThatIsMissingOrNoFileIsRefused) {
  for (const std::string& path : {path_, ::testing::TempDir(), std::string("/dev/null")}) {
    EXPECT_TRUE(failed_with(aclInit(path.c_str()), ACL_ERROR_INVALID_FILE,
                            {"configPath is \"" + path, "can be read"}));
    EXPECT_TRUE(failed_with(aclnnInit(path.c_str()), ACLNN_ERR_PARAM_INVALID, {"aclnnInit", path}));
  }
  EXPECT_EQ(aclFinalize() == ACL_SUCCESS, false) << "a failed aclInit initialises nothing";
}

TEST_F(ConfigFile, ThatIsNoJsonObjectIsRefused) {
  const std::pair<std::string, const char*> cases[] = {{"", "no JSON"},
                                                       {"{", "no JSON"},
                                                       {"{\"a\": 1,}", "no JSON"},
                                                       {"hello", "no JSON"},
                                                       {"[1, 2]", "array"},
                                                       {"42", "number"},
                                                       {"\"cpu\"", "string"},
                                                       {"null", "null"},
                                                       {"\xff\xfe", "no JSON"},
                                                       {std::string(100, '['), "no JSON"},
                                                       {std::string("{}\0{}", 5), "no JSON"}};
  for (const auto& [text, found] : cases) {
    const char* path = holding(text);
    EXPECT_TRUE(failed_with(aclInit(path), ACL_ERROR_PARSE_FILE, {path_, found, "expected a JSON object"}));
    EXPECT_TRUE(failed_with(aclnnInit(path), ACLNN_ERR_PARAM_INVALID, {path_, found}));
  }
}

// A tree of it would be as deep on the stack of whoever walks, prints or frees it.
TEST_F(ConfigFile, ThatIsNestedTooDeepIsRefused) {
  constexpr size_t kDeep = 100000;
  const auto nested = [](const std::string& before, const std::string& after, const std::string& key) {
    std::string text = "{\"" + key + "\": ";
    for (size_t i = 0; i < kDeep; ++i) text += before;
    text += "1";
    for (size_t i = 0; i < kDeep; ++i) text += after;
    return text + "}";
  };
  for (const std::string key : {"RETROGRAD_DEVICE", "others"})
    for (const std::string& text : {nested("[", "]", key), nested("{\"a\":", "}", key)}) {
      const char* path = holding(text);
      EXPECT_TRUE(failed_with(aclInit(path), ACL_ERROR_PARSE_FILE, {path_, "nested"}));
      EXPECT_TRUE(failed_with(aclnnInit(path), ACLNN_ERR_PARAM_INVALID, {path_, "nested"}));
    }
  ASSERT_EQ(aclInit(holding(R"({"others": [[[[[[[[{"a": [1]}]]]]]]]]})")), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
}

// /proc/self/mem is a regular file to stat and opens; its first page is not there to be read.
TEST_F(ConfigFile, ThatOpensButCannotBeReadIsRefused) {
  const std::string path = "/proc/self/mem";
  ASSERT_TRUE(std::filesystem::is_regular_file(path));
  EXPECT_TRUE(failed_with(aclInit(path.c_str()), ACL_ERROR_INVALID_FILE, {path, "can be read"}));
  EXPECT_TRUE(failed_with(aclnnInit(path.c_str()), ACLNN_ERR_PARAM_INVALID, {path, "can be read"}));
}

// Longer than any address space in practice, and a regular file to stat.
TEST_F(ConfigFile, ThatNeverEndsIsRefused) {
  std::ofstream(path_, std::ios::binary) << "{";
  std::filesystem::resize_file(path_, uintmax_t{1} << 32);  // a hole: takes no space
  EXPECT_TRUE(failed_with(aclInit(path_.c_str()), ACL_ERROR_INVALID_FILE, {path_, "MiB"}));
}

TEST_F(ConfigFile, MayHoldKeysOfOthers) {
  ASSERT_EQ(aclInit(holding(R"({"dump": {"dump_mode": "output"}, "profiler": [1, 2.5, null]})")),
            ACL_SUCCESS);
  EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
}

TEST_F(ConfigFile, ChoosesTheDevice) {
  ASSERT_EQ(aclInit(holding(R"({"RETROGRAD_DEVICE": "cpu"})")), ACL_SUCCESS);
  uint32_t count = 0;
  EXPECT_EQ(aclrtGetDeviceCount(&count), ACL_SUCCESS);
  EXPECT_EQ(count, 1u);
  EXPECT_STREQ(aclrtGetSocName(), "Retrograd-CPU");
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);

  ASSERT_EQ(aclInit(holding(R"({"RETROGRAD_DEVICE": "cuda"})")), ACL_SUCCESS);
  EXPECT_STRNE(aclrtGetSocName(), "Retrograd-CPU");
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);

  ASSERT_EQ(aclInit(holding(R"({"RETROGRAD_DEVICE": "auto"})")), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
}

TEST_F(ConfigFile, WithAnIllegalDeviceIsWarnedAboutOnceAndIgnored) {
  for (const std::string& value :
       {std::string("\"npu\""), std::string("3"), std::string("[\"cpu\"]"), std::string("\"CPU\"")}) {
    ::testing::internal::CaptureStderr();
    ASSERT_EQ(aclInit(holding("{\"RETROGRAD_DEVICE\": " + value + "}")), ACL_SUCCESS);
    EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
    const std::string first = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(first.find(value), std::string::npos) << first;
    EXPECT_NE(first.find("expected \"cpu\", \"cuda\" or \"auto\""), std::string::npos) << first;
    ::testing::internal::CaptureStderr();
    ASSERT_EQ(aclInit(path_.c_str()), ACL_SUCCESS);
    EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  }
}

TEST_F(ConfigFile, ChoosesTheProductBesideTheDevice) {
  ASSERT_EQ(aclInit(holding(R"({"others": {"rules": "a3"}, "rules": "a2", "RETROGRAD_DEVICE": "cpu"})")),
            ACL_SUCCESS);
  EXPECT_STREQ(aclrtGetSocName(), "Ascend910B1");
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  ASSERT_EQ(aclInit(holding(R"({"rules": ["a2"], "rules": "training"})")), ACL_SUCCESS);
  EXPECT_STREQ(aclrtGetSocName(), "Ascend910A");
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  ASSERT_EQ(aclInit(holding(R"({"RETROGRAD_DEVICE": "cpu"})")), ACL_SUCCESS);
  EXPECT_STREQ(aclrtGetSocName(), "Retrograd-CPU") << "forgotten";
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
}

TEST_F(ConfigFile, WithAnIllegalProductIsWarnedAboutOnceAndIgnored) {
  for (const std::string& value : {std::string("\"A2\""), std::string("910"), std::string("[\"a2\"]")}) {
    ::testing::internal::CaptureStderr();
    ASSERT_EQ(aclInit(holding("{\"RETROGRAD_DEVICE\": \"cpu\", \"rules\": " + value + "}")), ACL_SUCCESS);
    EXPECT_STREQ(aclrtGetSocName(), "Retrograd-CPU");
    EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
    const std::string first = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(first.find("rules in " + path_ + " is " + value +
                         ", expected \"a2\", \"a3\", \"910_95\" or \"training\"; it is ignored"),
              std::string::npos)
        << first;
    ::testing::internal::CaptureStderr();
    ASSERT_EQ(aclInit(path_.c_str()), ACL_SUCCESS);
    EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  }
}

TEST_F(ConfigFile, IsForgottenAtFinalize) {
  ASSERT_EQ(aclInit(holding(R"({"RETROGRAD_DEVICE": "cuda"})")), ACL_SUCCESS);
  ASSERT_EQ(aclFinalize(), ACL_SUCCESS);
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
}

}  // namespace
}  // namespace retrograd::acl_test
