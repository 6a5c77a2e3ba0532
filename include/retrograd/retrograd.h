/* SPDX-License-Identifier: Apache-2.0
 * Calls of our own, for users of either interface.
 */
#ifndef RETROGRAD_RETROGRAD_H
#define RETROGRAD_RETROGRAD_H

#include "export.h"

#define RETROGRAD_VERSION_MAJOR 0
#define RETROGRAD_VERSION_MINOR 2
#define RETROGRAD_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that was loaded, "0.2.0"; the macros above are that of the header. */
RETROGRAD_API const char* retrogradVersion(void);

/* Why the calling thread's last failing call failed: "<number> <function>: <sentence>". Never null; "" when
 * no call of this thread failed yet. A call that succeeds leaves the text. Valid until the thread's next
 * failing call. */
RETROGRAD_API const char* retrogradGetLastError(void);

#ifdef __cplusplus
}
#endif

#endif
