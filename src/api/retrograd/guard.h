// SPDX-License-Identifier: Apache-2.0
// The boundary of our own interface: failures become a number and a text, exceptions stop here.
#pragma once

#include "base/in_flight.h"
#include "base/last_error.h"
#include "base/status.h"
#include "retrograd/retrograd.h"

namespace retrograd::api::own {

int number_of(Code code);

// Every C function is one guard(__func__, body). aclFinalize waits for those that are going on.
template <class Body>
retrogradStatus_t guard(const char* function, Body&& body) noexcept {
  return static_cast<retrogradStatus_t>(last_error::guarded(number_of, function, [&] {
    const InFlight::Call call(calls_in_flight());
    const Status status = body();
    return last_error::report(number_of(status.code()), function, status.message());
  }));
}

}  // namespace retrograd::api::own
