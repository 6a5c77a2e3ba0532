/* SPDX-License-Identifier: Apache-2.0 */
/* Average pooling over three axes. */
#ifndef RETROGRAD_ACLNNOP_ACLNN_AVGPOOL3D_H
#define RETROGRAD_ACLNNOP_ACLNN_AVGPOOL3D_H

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self is (N, C, D, H, W) or (C, D, H, W). An empty stride is the kernel; divisorOverride 0 counts the
 * window. */
RETROGRAD_API aclnnStatus aclnnAvgPool3dGetWorkspaceSize(const aclTensor* self, const aclIntArray* kernelSize,
                                                         const aclIntArray* stride,
                                                         const aclIntArray* padding, bool ceilMode,
                                                         bool countIncludePad, int64_t divisorOverride,
                                                         aclTensor* out, uint64_t* workspaceSize,
                                                         aclOpExecutor** executor);
RETROGRAD_API aclnnStatus aclnnAvgPool3d(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                         aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
