/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution backward, plain and transposed, 1-D to 3-D; and conv_tbc backward. */
#ifndef RETROGRAD_ACLNNOP_ACLNN_CONVOLUTION_BACKWARD_H
#define RETROGRAD_ACLNNOP_ACLNN_CONVOLUTION_BACKWARD_H

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Phase one judges everything, plans, and writes *workspaceSize and *executor; on failure it writes neither.
 * outputMask names the gradients that are wanted: input, weight, bias. */
RETROGRAD_API aclnnStatus aclnnConvolutionBackwardGetWorkspaceSize(
    const aclTensor* gradOutput, const aclTensor* input, const aclTensor* weight,
    const aclIntArray* biasSizes, const aclIntArray* stride, const aclIntArray* padding,
    const aclIntArray* dilation, bool transposed, const aclIntArray* outputPadding, int groups,
    const aclBoolArray* outputMask, int8_t cubeMathType, aclTensor* gradInput, aclTensor* gradWeight,
    aclTensor* gradBias, uint64_t* workspaceSize, aclOpExecutor** executor);
/* Phase two enqueues and returns. Buffers and workspace must live until the stream is synchronised. */
RETROGRAD_API aclnnStatus aclnnConvolutionBackward(void* workspace, uint64_t workspaceSize,
                                                   aclOpExecutor* executor, const aclrtStream stream);

/* self is the gradient of the output, (T_out, B, C_out); input (T_in, B, C_in), weight (K, C_in, C_out), bias
 * (C_out). */
RETROGRAD_API aclnnStatus aclnnConvTbcBackwardGetWorkspaceSize(const aclTensor* self, const aclTensor* input,
                                                               const aclTensor* weight, const aclTensor* bias,
                                                               int64_t pad, int8_t cubeMathType,
                                                               aclTensor* gradInput, aclTensor* gradWeight,
                                                               aclTensor* gradBias, uint64_t* workspaceSize,
                                                               aclOpExecutor** executor);
RETROGRAD_API aclnnStatus aclnnConvTbcBackward(void* workspace, uint64_t workspaceSize,
                                               aclOpExecutor* executor, const aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
