// SPDX-License-Identifier: Apache-2.0
// The table from internal codes to infiniStatus_t, and the text "<number> <function>: <sentence>".
#include "api/infini/guard.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>

#include "base/last_error.h"

namespace retrograd::api::infini {
namespace {

infiniStatus_t number_of(Code code) {
  switch (code) {
    case Code::kOk:
      return INFINI_STATUS_SUCCESS;
    case Code::kNullArgument:
    case Code::kInvalidArgument:
    case Code::kBadHandle:
    case Code::kWrongDevice:
      return INFINI_STATUS_BAD_PARAM;
    case Code::kBadShape:
      return INFINI_STATUS_BAD_TENSOR_SHAPE;
    case Code::kBadDtype:
      return INFINI_STATUS_BAD_TENSOR_DTYPE;
    case Code::kBadStrides:
      return INFINI_STATUS_BAD_TENSOR_STRIDES;
    case Code::kNullWorkspace:
    case Code::kShortWorkspace:
      return INFINI_STATUS_INSUFFICIENT_WORKSPACE;
    case Code::kNoDevice:
      return INFINI_STATUS_DEVICE_NOT_FOUND;
    case Code::kOutOfMemory:
    case Code::kTimeout:
    case Code::kInternal:
      return INFINI_STATUS_INTERNAL_ERROR;
  }
  return INFINI_STATUS_INTERNAL_ERROR;
}

// No string: the memory for one may be what is missing.
void report_text(infiniStatus_t number, const char* function, const char* what) noexcept {
  char text[256];
  std::snprintf(text, sizeof text, "%d %s: %s", static_cast<int>(number), function, what);
  last_error::set(text);
}

}  // namespace

Answer::Answer(Status status) : number_(number_of(status.code())), sentence_(status.message()) {}

Answer null_pointer(const char* argument) {
  return {INFINI_STATUS_NULL_POINTER, fmt::format("{} is null, expected an address", argument)};
}

infiniStatus_t report(const char* function, const Answer& answer) noexcept {
  if (answer.is_ok()) return INFINI_STATUS_SUCCESS;
  try {
    last_error::set(fmt::format("{} {}: {}", static_cast<int>(answer.number()), function, answer.sentence()));
  } catch (...) {
    report_text(answer.number(), function, "no memory for the text of this failure");
  }
  return answer.number();
}

infiniStatus_t report_exception(const char* function) noexcept {
  std::exception_ptr held;  // keeps the text of what() while it is printed
  try {
    held = std::current_exception();
    throw;
  } catch (const std::bad_alloc&) {
    report_text(INFINI_STATUS_INTERNAL_ERROR, function, "out of host memory");
  } catch (const std::exception& error) {
    report_text(INFINI_STATUS_INTERNAL_ERROR, function, error.what());
  } catch (...) {
    report_text(INFINI_STATUS_INTERNAL_ERROR, function, "an unknown exception");
  }
  return INFINI_STATUS_INTERNAL_ERROR;
}

}  // namespace retrograd::api::infini
