// SPDX-License-Identifier: Apache-2.0
// Version and last error, for users of every interface.
#include "base/last_error.h"
#include "retrograd/retrograd.h"

#define RG_TEXT_(x) #x
#define RG_TEXT(x) RG_TEXT_(x)

const char* retrogradVersion(void) {
  return RG_TEXT(RETROGRAD_VERSION_MAJOR) "." RG_TEXT(RETROGRAD_VERSION_MINOR) "." RG_TEXT(
      RETROGRAD_VERSION_PATCH);
}

const char* retrogradGetLastError(void) { return retrograd::last_error::peek(); }
