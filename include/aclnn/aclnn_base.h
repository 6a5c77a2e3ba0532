/* SPDX-License-Identifier: Apache-2.0 */
/* Legal, and needed by nobody: aclInit does the work, and memory of a thread is not kept apart here. */
#ifndef RETROGRAD_ACLNN_ACLNN_BASE_H
#define RETROGRAD_ACLNN_ACLNN_BASE_H

#include <stdbool.h>

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Judges the file as aclInit does; may be called any number of times. */
RETROGRAD_API aclnnStatus aclnnInit(const char* configPath);
RETROGRAD_API aclnnStatus aclnnFinalize(void);

/* What generated callers of operators ask for around a call. They do nothing; the first answers 0. */
RETROGRAD_API int InitHugeMemThreadLocal(void* arg, bool sync);
RETROGRAD_API void UnInitHugeMemThreadLocal(void* arg, bool sync);
RETROGRAD_API void ReleaseHugeMem(void* arg, bool sync);

#ifdef __cplusplus
}
#endif

#endif
