// SPDX-License-Identifier: Apache-2.0
// A rule and a problem that breaks it: the code, and the argument, value and rule that the message must hold.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "problem/problem.h"
#include "problem/problem_text.h"

namespace retrograd::problem {

struct RuleCase {
  const char* name;
  const char* text;
  Code code;
  std::vector<std::string> parts;
};

inline void PrintTo(const RuleCase& rule, std::ostream* out) { *out << rule.text; }

inline Result<Problem> judge_text(const char* text) {
  RG_TRY(const Request request, parse_request(text));
  return judge(request);
}

// The command in the last line of the message is refused with the same message.
inline void expect_reproduced(const Status& refusal) {
  const std::string& message = refusal.message();
  const std::string command = "\nreproduce: retrograd explain \"";
  const size_t at = message.find(command);
  ASSERT_NE(at, std::string::npos) << message;
  const std::string text = message.substr(at + command.size(), message.size() - at - command.size() - 1);
  const auto again = judge_text(text.c_str());
  EXPECT_EQ(again.status().code(), refusal.code()) << text;
  EXPECT_EQ(again.status().message(), message);
}

inline void expect_explained(const RuleCase& rule) {
  const auto problem = judge_text(rule.text);
  ASSERT_FALSE(problem.is_ok()) << "accepted: " << rule.text;
  EXPECT_EQ(problem.status().code(), rule.code) << problem.status().message();
  for (const std::string& part : rule.parts)
    EXPECT_NE(problem.status().message().find(part), std::string::npos)
        << "'" << part << "' is not in: " << problem.status().message();
  expect_reproduced(problem.status());
}

}  // namespace retrograd::problem
