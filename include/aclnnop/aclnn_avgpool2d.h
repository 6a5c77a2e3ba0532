/* SPDX-License-Identifier: Apache-2.0 */
/* Average pooling over two axes. */
#ifndef RETROGRAD_ACLNNOP_ACLNN_AVGPOOL2D_H
#define RETROGRAD_ACLNNOP_ACLNN_AVGPOOL2D_H

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self is (N, C, H, W) or (C, H, W). Empty strides are the kernel; divisorOverride 0 counts the window. */
RETROGRAD_API aclnnStatus aclnnAvgPool2dGetWorkspaceSize(const aclTensor* self, const aclIntArray* kernelSize,
                                                         const aclIntArray* strides,
                                                         const aclIntArray* paddings, const bool ceilMode,
                                                         const bool countIncludePad,
                                                         const int64_t divisorOverride,
                                                         const int8_t cubeMathType, aclTensor* out,
                                                         uint64_t* workspaceSize, aclOpExecutor** executor);
RETROGRAD_API aclnnStatus aclnnAvgPool2d(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                         aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
