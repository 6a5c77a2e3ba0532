// SPDX-License-Identifier: Apache-2.0
// Validates a request of any kind.
#include "problem/problem.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "problem/problem_text.h"
#include "problem/product_rules.h"

namespace retrograd::problem {

namespace {

// Requests are large: this one is moved once, into the problem it was judged for.
Status fill(Request& request, Problem& problem) {
  if (const auto product = product_of(request)) RG_CHECK(keep_product_rules(request, *product));
  RG_CHECK(std::visit([&](const auto& asked) { return fill_problem(asked, problem); }, request));
  problem.request = std::move(request);
  return Status::ok();
}

// Whether a text is refused as the request was: storage sizes and the ends of long lists are not in it.
// Not inlined: the stack that a second request takes is needed for refusals only.
[[gnu::noinline]] bool shows(const std::string& text, Code refusal) {
  auto request = parse_request(text);
  Problem problem;
  return request.is_ok() && fill(request.value(), problem).code() == refusal;
}

}  // namespace

Result<Problem> make_problem(Request request) {
  Result<Problem> made{Problem{}};
  RG_CHECK(fill(request, made.value()));
  return made;
}

Result<Problem> judge(Request request) {
  Result<Problem> made{Problem{}};
  const Status status = fill(request, made.value());
  if (status.is_ok()) return made;
  const std::string text = to_text(request);
  if (!shows(text, status.code())) return status;
  return Status(status.code(),
                fmt::format("{}\nreproduce: retrograd explain \"{}\"", status.message(), text));
}

}  // namespace retrograd::problem
