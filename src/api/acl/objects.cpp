// SPDX-License-Identifier: Apache-2.0
// Names of the object types, and the message about an invalid handle.
#include "api/acl/objects.h"

#include <fmt/format.h>

namespace retrograd::api::acl {

template <>
const char* type_name<aclTensor>() {
  return "aclTensor";
}
template <>
const char* type_name<aclScalar>() {
  return "aclScalar";
}
template <>
const char* type_name<aclIntArray>() {
  return "aclIntArray";
}
template <>
const char* type_name<aclFloatArray>() {
  return "aclFloatArray";
}
template <>
const char* type_name<aclBoolArray>() {
  return "aclBoolArray";
}
template <>
const char* type_name<aclTensorList>() {
  return "aclTensorList";
}
template <>
const char* type_name<aclOpExecutor>() {
  return "aclOpExecutor";
}

Status null_handle(const char* name, const char* type) {
  return Status(Code::kNullArgument, fmt::format("{} is null, expected an {}", name, type));
}

Status dead_handle(const char* name, const void* handle, const char* type) {
  return Status(Code::kBadHandle,
                fmt::format("{} is {}, expected a live {}: it was destroyed, or was never one{}", name,
                            handle, type, fork_note()));
}

}  // namespace retrograd::api::acl
