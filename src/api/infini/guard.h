// SPDX-License-Identifier: Apache-2.0
// The boundary of the infini interfaces: failures become documented numbers and a text, exceptions stop here.
#pragma once

#include "base/in_flight.h"
#include "base/last_error.h"
#include "base/status.h"
#include "infinicore.h"

namespace retrograd::api::infini {

// Of an argument of infinirt.
Status null_pointer(const char* argument);

int number_of(Code code);

// Every C function is one guard(__func__, body). aclFinalize waits for those that are going on: they may use
// acl's memory.
template <class Body>
infiniStatus_t guard(const char* function, Body&& body) noexcept {
  return static_cast<infiniStatus_t>(last_error::guarded(number_of, function, [&] {
    const InFlight::Call call(calls_in_flight());
    const Status status = body();
    return last_error::report(number_of(status.code()), function, status.message());
  }));
}

}  // namespace retrograd::api::infini
