// SPDX-License-Identifier: Apache-2.0
// The boundary of the infini interfaces: failures become documented numbers and a text, exceptions stop here.
#pragma once

#include <string>
#include <utility>

#include "base/in_flight.h"
#include "base/last_error.h"
#include "base/status.h"
#include "infinicore.h"

namespace retrograd::api::infini {

// What a call ends with. Converts from Status by the documented table; the other form is for the numbers that
// no Code stands for: NULL_POINTER and DEVICE_TYPE_NOT_SUPPORTED.
class [[nodiscard]] Answer {
 public:
  Answer(Status status);
  template <class... Arguments>
  Answer(infiniStatus_t number, fmt::format_string<Arguments...> text, Arguments&&... arguments)
      : number_(number), sentence_(fmt::format(text, std::forward<Arguments>(arguments)...)) {}
  static Answer ok() { return Status::ok(); }

  bool is_ok() const { return number_ == INFINI_STATUS_SUCCESS; }
  infiniStatus_t number() const { return number_; }
  const std::string& sentence() const { return sentence_; }

 private:
  infiniStatus_t number_;
  std::string sentence_;
};

// infinirt's answer for a pointer that must not be null.
Answer null_pointer(const char* argument);

int number_of(Code code);

// Every C function is one guard(__func__, body). aclFinalize waits for those that are going on: they may use
// acl's memory.
template <class Body>
infiniStatus_t guard(const char* function, Body&& body) noexcept {
  return static_cast<infiniStatus_t>(last_error::guarded(number_of, function, [&] {
    const InFlight::Call call(calls_in_flight());
    const Answer answer = body();
    return last_error::report(answer.number(), function, answer.sentence());
  }));
}

}  // namespace retrograd::api::infini
