// SPDX-License-Identifier: Apache-2.0
// The boundary of our own interface: failures become a number and a text, exceptions stop here.
#pragma once

#include <utility>

#include "base/in_flight.h"
#include "base/no_cancellation.h"
#include "base/status.h"
#include "retrograd/retrograd.h"

namespace retrograd::api::own {

// The number of `status`; a failure's text is kept for retrogradGetLastError.
retrogradStatus_t report(const char* function, const Status& status) noexcept;
// For catch (...): reports the exception that is being handled.
retrogradStatus_t report_exception(const char* function) noexcept;

// Every C function is one guard(__func__, body). aclFinalize waits for those that are going on.
template <class Body>
retrogradStatus_t guard(const char* function, Body&& body) noexcept {
  const NoCancellation here;
  try {
    const InFlight::Call call(calls_in_flight());
    return report(function, std::forward<Body>(body)());
  } catch (...) {
    return report_exception(function);
  }
}

}  // namespace retrograd::api::own
