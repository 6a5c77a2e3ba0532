/* SPDX-License-Identifier: Apache-2.0 */
/* Average pooling backward over two axes. */
#ifndef RETROGRAD_ACLNNOP_ACLNN_AVGPOOL2D_BACKWARD_H
#define RETROGRAD_ACLNNOP_ACLNN_AVGPOOL2D_BACKWARD_H

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self is (N, C, H, W) or (C, H, W). An empty stride is the kernel; divisorOverride 0 counts the window. */
RETROGRAD_API aclnnStatus aclnnAvgPool2dBackwardGetWorkspaceSize(
    const aclTensor* gradOutput, const aclTensor* self, const aclIntArray* kernelSize,
    const aclIntArray* stride, const aclIntArray* padding, bool ceilMode, bool countIncludePad,
    int64_t divisorOverride, int8_t cubeMathType, aclTensor* gradInput, uint64_t* workspaceSize,
    aclOpExecutor** executor);
RETROGRAD_API aclnnStatus aclnnAvgPool2dBackward(void* workspace, uint64_t workspaceSize,
                                                 aclOpExecutor* executor, const aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
