// SPDX-License-Identifier: Apache-2.0
// The text of the calling thread's last failure, behind aclGetRecentErrMsg and retrogradGetLastError.
#pragma once

#include <string>

#include "base/no_cancellation.h"
#include "base/status.h"

namespace retrograd::last_error {

// Also writes the text to the log (topic error). Neither form fails when memory is out: the first only moves,
// the second keeps at least 255 characters; seventeen threads that first fail at once may have to do with a
// fixed text. Use the second in handlers of std::bad_alloc, where building a string could throw again.
void set(std::string text) noexcept;
void set(const char* text) noexcept;

// How the C interfaces end a call: leaves "<number> <function>: <sentence>" as the last error unless the
// number is 0, and returns the number.
int report(int number, const char* function, const std::string& sentence) noexcept;
// For catch (...): the same for the exception that is being handled, whose number `number_of` tells.
int report_exception(int (*number_of)(Code), const char* function) noexcept;
// The frame of a C function, out of which no exception comes. The body reports its end.
template <class Body>
int guarded(int (*number_of)(Code), const char* function, const Body& body) noexcept {
  const NoCancellation here;
  try {
    return body();
  } catch (...) {
    return report_exception(number_of, function);
  }
}

// The pending text, then forgets it; null when nothing is pending. Valid until this thread's next take().
const char* take() noexcept;
// The newest text, kept; "" when this thread never failed. Valid until this thread's next set().
const char* peek() noexcept;

}  // namespace retrograd::last_error
