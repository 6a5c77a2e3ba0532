// SPDX-License-Identifier: Apache-2.0
// The table from internal codes to retrogradStatus_t, and the text "<number> <function>: <sentence>".
#include "api/retrograd/guard.h"

namespace retrograd::api::own {

int number_of(Code code) {
  switch (code) {
    case Code::kOk:
      return RETROGRAD_OK;
    case Code::kNullArgument:
    case Code::kNullPointer:
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
    case Code::kDeviceType:
      return RETROGRAD_NO_DEVICE;
    case Code::kOutOfMemory:
      return RETROGRAD_OUT_OF_MEMORY;
    case Code::kTimeout:
    case Code::kInternal:
      return RETROGRAD_INTERNAL_ERROR;
  }
  return RETROGRAD_INTERNAL_ERROR;
}

}  // namespace retrograd::api::own
