// SPDX-License-Identifier: Apache-2.0
// Messages about invalid handles.
#include "api/acl/objects.h"

namespace retrograd::api::acl {

Status null_handle(const char* name, const char* type) {
  return Status(Code::kNullArgument, "{} is null, expected an {}", name, type);
}

Status dead_handle(const char* name, const void* handle, const char* type) {
  return Status(Code::kBadHandle, "{} is {}, expected a live {}: it was destroyed, or was never one{}", name,
                handle, type, fork_note());
}

}  // namespace retrograd::api::acl
