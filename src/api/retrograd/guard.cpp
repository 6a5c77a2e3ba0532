// SPDX-License-Identifier: Apache-2.0
// The table from internal codes to retrogradStatus_t, and the text "<number> <function>: <sentence>".
#include "api/retrograd/guard.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>

#include "base/last_error.h"

namespace retrograd::api::own {
namespace {

retrogradStatus_t number_of(Code code) {
  switch (code) {
    case Code::kOk:
      return RETROGRAD_OK;
    case Code::kNullArgument:
      return RETROGRAD_NULL_ARGUMENT;
    case Code::kInvalidArgument:
      return RETROGRAD_INVALID_ARGUMENT;
    case Code::kBadShape:
      return RETROGRAD_BAD_SHAPE;
    case Code::kBadDtype:
      return RETROGRAD_BAD_DTYPE;
    case Code::kBadStrides:
      return RETROGRAD_BAD_STRIDES;
    case Code::kNullWorkspace:
    case Code::kShortWorkspace:
      return RETROGRAD_BAD_WORKSPACE;
    case Code::kBadHandle:
      return RETROGRAD_BAD_HANDLE;
    case Code::kWrongDevice:
      return RETROGRAD_WRONG_DEVICE;
    case Code::kNoDevice:
      return RETROGRAD_NO_DEVICE;
    case Code::kOutOfMemory:
      return RETROGRAD_OUT_OF_MEMORY;
    case Code::kTimeout:
    case Code::kInternal:
      return RETROGRAD_INTERNAL_ERROR;
  }
  return RETROGRAD_INTERNAL_ERROR;
}

// No string: the memory for one may be what is missing.
retrogradStatus_t report_text(retrogradStatus_t number, const char* function, const char* what) noexcept {
  char text[256];
  std::snprintf(text, sizeof text, "%d %s: %s", static_cast<int>(number), function, what);
  last_error::set(text);
  return number;
}

}  // namespace

retrogradStatus_t report(const char* function, const Status& status) noexcept {
  const retrogradStatus_t number = number_of(status.code());
  if (status.is_ok()) return number;
  try {
    last_error::set(fmt::format("{} {}: {}", static_cast<int>(number), function, status.message()));
  } catch (...) {
    report_text(number, function, "no memory for the text of this failure");
  }
  return number;
}

retrogradStatus_t report_exception(const char* function) noexcept {
  std::exception_ptr held;  // keeps the text of what() while it is printed
  try {
    held = std::current_exception();
    throw;
  } catch (const std::bad_alloc&) {
    return report_text(RETROGRAD_OUT_OF_MEMORY, function, "out of host memory");
  } catch (const std::exception& error) {
    return report_text(RETROGRAD_INTERNAL_ERROR, function, error.what());
  } catch (...) {
    return report_text(RETROGRAD_INTERNAL_ERROR, function, "an unknown exception");
  }
}

}  // namespace retrograd::api::own
