// SPDX-License-Identifier: Apache-2.0
// Rule<Call>: one row of a table of the specification, as a change to a legal call and what it must be
// answered with.
#pragma once

#include <ostream>
#include <string>

#include "../client.h"

namespace retrograd::acl_test {

// Constants: tables of strings and vectors would be code that makes them, which takes long to compile.
template <class Call>
struct Rule {
  const char* name;
  void (*break_it)(Call&);
  aclnnStatus status;
  Texts fragments;  // argument, value and rule, as the message has them
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
  EXPECT_TRUE(refused(call.phase_one(), rule.status, strings(rule.fragments)));
}

}  // namespace retrograd::acl_test
