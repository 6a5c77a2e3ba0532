/* SPDX-License-Identifier: Apache-2.0
 * Conv: a convolution in 1, 2 or 3 spatial dimensions, with or without a bias.
 *
 *   x (N, C_in, spatial...)   w (C_out, C_in / groups, kernel...)   b (C_out)   y (N, C_out, spatial...)
 */
#ifndef INFINIOP_OPS_CONV_H
#define INFINIOP_OPS_CONV_H

#include "../handle.h"
#include "../operator_descriptor.h"
#include "../tensor_descriptor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct InfiniopDescriptor* infiniopConvDescriptor_t;

/* Tensors of F16, F32 or BF16, one type for all. b_desc may be null: no bias.
 * pads, strides, dilations hold one number for each spatial dimension; null means 0, 1, 1. Their width, 32 or
 * 64 bits, is found as infiniopCreateConvBackwardDescriptor finds it. n is the number of spatial dimensions;
 * the number of groups, which ConvBackward takes there, passes too. Groups are C_in / w.shape[1] in any case.
 * All arguments are copied. */
RETROGRAD_API infiniStatus_t infiniopCreateConvDescriptor(
    infiniopHandle_t handle, infiniopConvDescriptor_t* desc_ptr, infiniopTensorDescriptor_t y_desc,
    infiniopTensorDescriptor_t x_desc, infiniopTensorDescriptor_t w_desc, infiniopTensorDescriptor_t b_desc,
    void* pads, void* strides, void* dilations, size_t n);

RETROGRAD_API infiniStatus_t infiniopGetConvWorkspaceSize(infiniopConvDescriptor_t desc, size_t* size);

/* Overwrites y. bias is read where the descriptor has one, added in FP32 before the one rounding. */
RETROGRAD_API infiniStatus_t infiniopConv(infiniopConvDescriptor_t desc, void* workspace,
                                          size_t workspace_size, void* y, const void* x, const void* w,
                                          const void* bias, void* stream);

RETROGRAD_API infiniStatus_t infiniopDestroyConvDescriptor(infiniopConvDescriptor_t desc);

#ifdef __cplusplus
}
#endif

#endif
