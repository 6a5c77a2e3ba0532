// SPDX-License-Identifier: Apache-2.0
// Tests of the rules of products ("rules" in the file given to aclInit): a call, and the products that refuse
// it. What a product refuses is taken without rules, so that it is the rule that refuses.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "../client.h"

namespace retrograd::acl_test {

inline constexpr const char* kProducts[] = {"a2", "a3", "910_95", "training"};
using Products = std::vector<std::string>;
inline const Products kNone, kAll{"a2", "a3", "910_95", "training"}, kOlder{"a2", "a3", "training"},
    kA2A3{"a2", "a3"}, kOnly910{"910_95"}, kOnlyTraining{"training"}, k910AndTraining{"910_95", "training"};

inline bool has(const Products& products, const std::string& product) {
  return std::find(products.begin(), products.end(), product) != products.end();
}

// An initialised acl that keeps the rules of a product; "" keeps none.
class Rules {
 public:
  explicit Rules(const std::string& product) {
    // Of this process: ctest runs tests side by side.
    const std::string path =
        ::testing::TempDir() + "retrograd_acl_rules_" + std::to_string(getpid()) + ".json";
    std::ofstream(path) << (product.empty() ? "{}" : "{\"rules\": \"" + product + "\"}");
    EXPECT_EQ(aclInit(path.c_str()), ACL_SUCCESS);
    std::remove(path.c_str());
    EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    EXPECT_EQ(aclrtCreateStream(&stream_), ACL_SUCCESS);
    (void)aclGetRecentErrMsg();
  }
  ~Rules() { EXPECT_EQ(aclFinalize(), ACL_SUCCESS); }
  Rules(const Rules&) = delete;
  Rules& operator=(const Rules&) = delete;
  aclrtStream stream() const { return stream_; }

 private:
  aclrtStream stream_ = nullptr;
};

template <class Call>
void expect_taken(const Call& call) {
  const PhaseOne result = call.phase_one();
  EXPECT_EQ(result.status, ACLNN_SUCCESS) << result.message;
  if (result.status != ACLNN_SUCCESS) return;
  EXPECT_EQ(aclDestroyAclOpExecutor(result.executor), ACLNN_SUCCESS);
}

// A call, the products that refuse it, the rule that they name and what it says.
template <class Call>
struct Case {
  std::string name;
  std::function<void(Call&)> make;
  Products refused;
  std::string rule;
  std::vector<std::string> fragments;
};

template <class Call>
void PrintTo(const Case<Call>& each, std::ostream* out) {
  *out << each.name;
}

template <class Call>
std::string name_of(const ::testing::TestParamInfo<Case<Call>>& info) {
  return info.param.name;
}

template <class Call>
void expect_case(const Case<Call>& each, const Call& call) {
  {
    const Rules without("");
    expect_taken(call);
  }
  for (const std::string product : kProducts) {
    SCOPED_TRACE(product);
    const Rules rules(product);
    if (!has(each.refused, product)) {
      expect_taken(call);
      continue;
    }
    std::vector<std::string> fragments = each.fragments;
    fragments.push_back("product " + product + " refuses it, rule " + each.rule + ": ");
    fragments.push_back("reproduce: retrograd explain");
    fragments.push_back("product=" + product);
    EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_PARAM_INVALID, fragments));
  }
}

}  // namespace retrograd::acl_test
