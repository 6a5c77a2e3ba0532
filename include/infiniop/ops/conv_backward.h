/* SPDX-License-Identifier: Apache-2.0
 * ConvBackward: the gradients of a convolution in 1, 2 or 3 spatial dimensions, with respect to its input,
 * weight and bias. retrograd/infiniop_ext.h adds transposed convolutions and asymmetric padding.
 *
 *   input (N, C_in, spatial...)   weight (C_out, C_in / n, kernel...)   grad_output (N, C_out, spatial...)
 */
#ifndef INFINIOP_OPS_CONV_BACKWARD_H
#define INFINIOP_OPS_CONV_BACKWARD_H

#include "../handle.h"
#include "../operator_descriptor.h"
#include "../tensor_descriptor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct InfiniopDescriptor* infiniopConvBackwardDescriptor_t;

/* Tensors of F16, F32 or BF16, one type for all. bias_desc may be null.
 * pads, strides, dilations hold one number for each spatial dimension; null means 0, 1, 1. All three have the
 * same width, 32 or 64 bits, and signed numbers: with two or three spatial dimensions, a zero in the second
 * 32-bit word of strides and dilations shows 64 bits; with one, or with both null, the 32-bit word is read
 * (the low half of a 64-bit number, so small ones come out right either way). n is the number of groups and
 * must equal C_in / weight.shape[1]. grad_input will have the shape and strides of input_desc, grad_weight
 * those of weight_desc, grad_bias is dense. All arguments are copied. */
RETROGRAD_API infiniStatus_t infiniopCreateConvBackwardDescriptor(
    infiniopHandle_t handle, infiniopConvBackwardDescriptor_t* desc_ptr,
    infiniopTensorDescriptor_t grad_output_desc, infiniopTensorDescriptor_t input_desc,
    infiniopTensorDescriptor_t weight_desc, infiniopTensorDescriptor_t bias_desc, void* pads, void* strides,
    void* dilations, size_t n);

RETROGRAD_API infiniStatus_t infiniopGetConvBackwardWorkspaceSize(infiniopConvBackwardDescriptor_t desc,
                                                                  size_t* size);

/* Overwrites the gradients that are not null and skips the others. input is needed for grad_weight, weight
 * for grad_input, grad_output always. */
RETROGRAD_API infiniStatus_t infiniopConvBackward(infiniopConvBackwardDescriptor_t desc, void* workspace,
                                                  size_t workspace_size, void* grad_input, void* grad_weight,
                                                  void* grad_bias, const void* grad_output, const void* input,
                                                  const void* weight, void* stream);

RETROGRAD_API infiniStatus_t infiniopDestroyConvBackwardDescriptor(infiniopConvBackwardDescriptor_t desc);

#ifdef __cplusplus
}
#endif

#endif
