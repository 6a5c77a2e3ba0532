// SPDX-License-Identifier: Apache-2.0
// The table from internal codes to infiniStatus_t, and the text "<number> <function>: <sentence>".
#include "api/infini/guard.h"

namespace retrograd::api::infini {

int number_of(Code code) {
  switch (code) {
    case Code::kOk:
      return INFINI_STATUS_SUCCESS;
    case Code::kNullArgument:
    case Code::kInvalidArgument:
    case Code::kBadHandle:
    case Code::kWrongDevice:
      return INFINI_STATUS_BAD_PARAM;
    case Code::kNullPointer:
      return INFINI_STATUS_NULL_POINTER;
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
    case Code::kDeviceType:
      return INFINI_STATUS_DEVICE_TYPE_NOT_SUPPORTED;
    case Code::kOutOfMemory:
    case Code::kTimeout:
    case Code::kInternal:
      return INFINI_STATUS_INTERNAL_ERROR;
  }
  return INFINI_STATUS_INTERNAL_ERROR;
}

Status null_pointer(const char* argument) {
  return Status(Code::kNullPointer, "{} is null, expected an address", argument);
}

}  // namespace retrograd::api::infini
