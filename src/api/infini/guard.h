// SPDX-License-Identifier: Apache-2.0
// The boundary of the infini interfaces: failures become documented numbers and a text, exceptions stop here.
#pragma once

#include <string>
#include <utility>

#include "base/in_flight.h"
#include "base/no_cancellation.h"
#include "base/status.h"
#include "infinicore.h"

namespace retrograd::api::infini {

// What a call ends with. Converts from Status by the documented table; the other form is for the numbers that
// no Code stands for: NULL_POINTER and DEVICE_TYPE_NOT_SUPPORTED.
class [[nodiscard]] Answer {
 public:
  Answer(Status status);
  Answer(infiniStatus_t number, std::string sentence) : number_(number), sentence_(std::move(sentence)) {}
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

// The number of `answer`; a failure's text is kept for retrogradGetLastError.
infiniStatus_t report(const char* function, const Answer& answer) noexcept;
// For catch (...): reports the exception that is being handled.
infiniStatus_t report_exception(const char* function) noexcept;

// Every C function is one guard(__func__, body). aclFinalize waits for those that are going on: they may use
// acl's memory.
template <class Body>
infiniStatus_t guard(const char* function, Body&& body) noexcept {
  const NoCancellation here;
  try {
    const InFlight::Call call(calls_in_flight());
    return report(function, std::forward<Body>(body)());
  } catch (...) {
    return report_exception(function);
  }
}

}  // namespace retrograd::api::infini
