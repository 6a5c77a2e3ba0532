/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution, plain and transposed, 1-D to 3-D; and conv_tbc. */
#ifndef RETROGRAD_ACLNNOP_ACLNN_CONVOLUTION_H
#define RETROGRAD_ACLNNOP_ACLNN_CONVOLUTION_H

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Phase one judges everything, plans, and writes *workspaceSize and *executor; on failure it writes neither.
 * bias is (C_out), of the type that products are made in or FLOAT, and may be null. It is added in FP32,
 * before the one rounding to output's type. */
RETROGRAD_API aclnnStatus aclnnConvolutionGetWorkspaceSize(
    const aclTensor* input, const aclTensor* weight, const aclTensor* bias, const aclIntArray* stride,
    const aclIntArray* padding, const aclIntArray* dilation, bool transposed,
    const aclIntArray* outputPadding, const int64_t groups, aclTensor* output, int8_t cubeMathType,
    uint64_t* workspaceSize, aclOpExecutor** executor);
/* Phase two enqueues and returns. Buffers and workspace must live until the stream is synchronised. */
RETROGRAD_API aclnnStatus aclnnConvolution(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                           aclrtStream stream);

/* self (T_in, B, C_in), weight (K, C_in, C_out), bias (C_out), which must be there; output (T_out, B, C_out).
 */
RETROGRAD_API aclnnStatus aclnnConvTbcGetWorkspaceSize(const aclTensor* self, const aclTensor* weight,
                                                       const aclTensor* bias, const int64_t pad,
                                                       aclTensor* output, int8_t cubeMathType,
                                                       uint64_t* workspaceSize, aclOpExecutor** executor);
RETROGRAD_API aclnnStatus aclnnConvTbc(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                       aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
