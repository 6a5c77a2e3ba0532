/* SPDX-License-Identifier: Apache-2.0
 * AvgPoolBackward: the gradient of average pooling in 1, 2 or 3 spatial dimensions. retrograd/infiniop_ext.h
 * adds the choice not to count padding, and a divisor of the caller's.
 *
 * The average counts padding. A window that hangs over the end in ceil mode is clipped at input + pad, and
 * its divisor with it.
 */
#ifndef INFINIOP_OPS_AVERAGEPOOL_BACKWARD_H
#define INFINIOP_OPS_AVERAGEPOOL_BACKWARD_H

#include <stdbool.h>

#include "../handle.h"
#include "../operator_descriptor.h"
#include "../tensor_descriptor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct InfiniopDescriptor* infiniopAvgPoolBackwardDescriptor_t;

/* Tensors (N, C, spatial...) of F16, F32 or BF16, one type for all.
 * kernel_size, strides, pads hold one size_t for each spatial dimension. Null strides mean kernel_size, null
 * pads 0. With two or three spatial dimensions 32-bit numbers are taken too: all three arrays are read so
 * when the second 32-bit word of kernel_size or strides is not zero. With one dimension the 32-bit word is
 * read, which is the low half of a 64-bit number. All arguments are copied. */
RETROGRAD_API infiniStatus_t infiniopCreateAvgPoolBackwardDescriptor(
    infiniopHandle_t handle, infiniopAvgPoolBackwardDescriptor_t* desc_ptr,
    infiniopTensorDescriptor_t grad_input_desc, infiniopTensorDescriptor_t grad_output_desc,
    infiniopTensorDescriptor_t input_desc, void* kernel_size, void* strides, void* pads, bool ceil_mode);

RETROGRAD_API infiniStatus_t infiniopGetAvgPoolBackwardWorkspaceSize(infiniopAvgPoolBackwardDescriptor_t desc,
                                                                     size_t* size);

/* Overwrites grad_input. input is not read and may be null. */
RETROGRAD_API infiniStatus_t infiniopAvgPoolBackward(infiniopAvgPoolBackwardDescriptor_t desc,
                                                     void* workspace, size_t workspace_size, void* grad_input,
                                                     const void* grad_output, const void* input,
                                                     void* stream);

RETROGRAD_API infiniStatus_t
infiniopDestroyAvgPoolBackwardDescriptor(infiniopAvgPoolBackwardDescriptor_t desc);

#ifdef __cplusplus
}
#endif

#endif
