/* SPDX-License-Identifier: Apache-2.0
 * AvgPool: average pooling in 1, 2 or 3 spatial dimensions. The average counts padding. A window that hangs
 * over the end in ceil mode is clipped at input + pad, and its divisor with it.
 */
#ifndef INFINIOP_OPS_AVERAGEPOOL_H
#define INFINIOP_OPS_AVERAGEPOOL_H

#include <stdbool.h>

#include "../handle.h"
#include "../operator_descriptor.h"
#include "../tensor_descriptor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct InfiniopDescriptor* infiniopAvgPoolDescriptor_t;

/* Tensors (N, C, spatial...) of F16, F32 or BF16, one type for both. kernel_size, strides, pads are those of
 * infiniopCreateAvgPoolBackwardDescriptor. All arguments are copied. */
RETROGRAD_API infiniStatus_t infiniopCreateAvgPoolDescriptor(
    infiniopHandle_t handle, infiniopAvgPoolDescriptor_t* desc_ptr, infiniopTensorDescriptor_t output_desc,
    infiniopTensorDescriptor_t input_desc, void* kernel_size, void* strides, void* pads, bool ceil_mode);

RETROGRAD_API infiniStatus_t infiniopGetAvgPoolWorkspaceSize(infiniopAvgPoolDescriptor_t desc, size_t* size);

/* Overwrites output. */
RETROGRAD_API infiniStatus_t infiniopAvgPool(infiniopAvgPoolDescriptor_t desc, void* workspace,
                                             size_t workspace_size, void* output, const void* input,
                                             void* stream);

RETROGRAD_API infiniStatus_t infiniopDestroyAvgPoolDescriptor(infiniopAvgPoolDescriptor_t desc);

#ifdef __cplusplus
}
#endif

#endif
