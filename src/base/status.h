// SPDX-License-Identifier: Apache-2.0
// Status and Result<T>: how everything below the C boundary reports failure. Nothing throws, nothing prints.
#pragma once

#include <fmt/format.h>

#include <cassert>
#include <optional>
#include <string>
#include <utility>

namespace retrograd {

// What went wrong, finer than either C interface needs: `api/` maps each code to the documented number.
enum class Code : unsigned char {
  kOk,
  kNullArgument,     // a pointer that must not be null
  kNullPointer,      // the same of infinirt, which has a number of its own for it
  kInvalidArgument,  // an attribute outside its range
  kBadShape,         // sizes that do not fit together
  kBadDtype,         // an element type or a mix of them that is not served
  kBadStrides,       // a view outside its storage, an output that overlaps itself
  kNullWorkspace,
  kShortWorkspace,
  kBadHandle,    // dead, foreign or of another kind
  kWrongDevice,  // a stream or a tensor of another device
  kNoDevice,     // no such device, or none is current on this thread
  kDeviceType,   // a type of devices that are not run here
  kOutOfMemory,
  kTimeout,
  kInternal,
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  // A text with places for arguments.
  template <class First, class... More>
  Status(Code code, fmt::format_string<First, More...> text, First&& first, More&&... more)
      : Status(code, fmt::format(text, std::forward<First>(first), std::forward<More>(more)...)) {}
  static Status ok() { return {}; }

  bool is_ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) { assert(!status_.is_ok()); }

  bool is_ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return *std::move(value_); }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace retrograd

#define RG_CONCAT_(a, b) a##b
#define RG_CONCAT(a, b) RG_CONCAT_(a, b)

// NOLINTBEGIN(bugprone-macro-parentheses): a declaration takes none
// RG_TRY(auto plan, make_plan(problem)); binds the value, or returns the failure from this function.
#define RG_TRY(declaration, expression) RG_TRY_(declaration, expression, RG_CONCAT(rg_result_, __LINE__))
#define RG_TRY_(declaration, expression, result) \
  auto result = (expression);                    \
  if (!result.is_ok()) return result.status();   \
  declaration = std::move(result).value()
// NOLINTEND(bugprone-macro-parentheses)

// RG_CHECK(stream.synchronize()); returns the failure from this function, if it is one.
#define RG_CHECK(expression)                                                                \
  do {                                                                                      \
    if (::retrograd::Status rg_status = (expression); !rg_status.is_ok()) return rg_status; \
  } while (false)
