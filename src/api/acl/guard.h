// SPDX-License-Identifier: Apache-2.0
// The C boundary: runs an entry point's body, turns its outcome into the documented number, and lets no
// exception out.
#pragma once

#include <string>
#include <utility>

#include "acl/acl_base.h"
#include "aclnn/acl_meta.h"
#include "base/in_flight.h"
#include "base/last_error.h"
#include "base/status.h"

namespace retrograd::api::acl {

// What a runtime call ends with: a Status, whose code has one documented number, or a number that no Code
// stands for.
class [[nodiscard]] Outcome {
 public:
  Outcome(Status status);
  Outcome(aclError code, std::string message) : code_(code), message_(std::move(message)) {}
  template <class First, class... More>
  Outcome(aclError code, fmt::format_string<First, More...> text, First&& first, More&&... more)
      : Outcome(code, fmt::format(text, std::forward<First>(first), std::forward<More>(more)...)) {}

  aclError code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  aclError code_ = 0;
  std::string message_;
};

aclError to_acl_error(Code code);
aclnnStatus to_aclnn_status(Code code);

Status not_null(const void* pointer, const char* name);

// What is said before aclInit and after aclFinalize.
std::string not_initialised();
// ACL_ERROR_UNINITIALIZE before aclInit and after aclFinalize.
Outcome check_initialised();

// For aclInit and aclFinalize, which run in either state.
template <class Body>
aclError guard_any_state(const char* function, Body&& body) noexcept {
  return last_error::guarded(to_acl_error, function, [&] {
    const Outcome outcome = body();
    return last_error::report(outcome.code(), function, outcome.message());
  });
}

// For runtime calls: nothing but 100001 before aclInit. An aclFinalize that comes meanwhile waits for the
// body.
template <class Body>
aclError guard_runtime(const char* function, Body&& body) noexcept {
  return guard_any_state(function, [&]() -> Outcome {
    const InFlight::Call call(calls_in_flight());
    if (const Outcome initialised = check_initialised(); initialised.code() != 0) return initialised;
    return body();
  });
}

// For operators and their objects; `body` returns a Status.
template <class Body>
aclnnStatus guard_operator(const char* function, Body&& body) noexcept {
  return last_error::guarded(to_aclnn_status, function, [&] {
    const Status status = body();
    return last_error::report(to_aclnn_status(status.code()), function, status.message());
  });
}

// For the aclCreate… calls; `body` returns Result<T*>, and a failure becomes null.
template <class T, class Body>
T* guard_create(const char* function, Body&& body) noexcept {
  T* object = nullptr;
  (void)guard_operator(function, [&]() -> Status {
    RG_TRY(object, body());
    return Status::ok();
  });
  return object;
}

}  // namespace retrograd::api::acl
