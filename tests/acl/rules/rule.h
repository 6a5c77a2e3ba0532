// SPDX-License-Identifier: Apache-2.0
// Rule<Call>: one row of a table of the specification, as a change to a legal call and what it must be
// answered with.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "../client.h"

namespace retrograd::acl_test {

template <class Call>
struct Rule {
  std::string name;
  std::function<void(Call&)> break_it;
  aclnnStatus status;
  std::vector<std::string> fragments;  // argument, value and rule, as the message has them
};

template <class Call>
std::string name_of(const ::testing::TestParamInfo<Rule<Call>>& info) {
  return info.param.name;
}

template <class Call>
void PrintTo(const Rule<Call>& rule, std::ostream* out) {
  *out << rule.name;
}

// The call is legal before it is broken, refused after, and with the text that explains it.
template <class Call>
void expect_rule(const Rule<Call>& rule) {
  Call call;
  const PhaseOne legal = call.phase_one();
  ASSERT_EQ(legal.status, ACLNN_SUCCESS) << legal.message;
  EXPECT_EQ(aclDestroyAclOpExecutor(legal.executor), ACLNN_SUCCESS);
  rule.break_it(call);
  EXPECT_TRUE(refused(call.phase_one(), rule.status, rule.fragments));
}

}  // namespace retrograd::acl_test
