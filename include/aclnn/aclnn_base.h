/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnInit and aclnnFinalize: legal, and needed by nobody; aclInit does the work. */
#ifndef RETROGRAD_ACLNN_ACLNN_BASE_H
#define RETROGRAD_ACLNN_ACLNN_BASE_H

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Judges the file as aclInit does; may be called any number of times. */
RETROGRAD_API aclnnStatus aclnnInit(const char* configPath);
RETROGRAD_API aclnnStatus aclnnFinalize(void);

#ifdef __cplusplus
}
#endif

#endif
