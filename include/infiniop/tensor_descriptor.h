/* SPDX-License-Identifier: Apache-2.0
 * Tensor descriptors: sizes, strides and element type of a tensor, without its data.
 */
#ifndef INFINIOP_TENSOR_DESCRIPTOR_H
#define INFINIOP_TENSOR_DESCRIPTOR_H

#include "../infinicore.h"

#ifdef __cplusplus
extern "C" {
#endif

struct InfiniopTensorDescriptor;
typedef struct InfiniopTensorDescriptor* infiniopTensorDescriptor_t;

/* At most 8 dimensions. Strides count elements; null means dense, row-major. The arrays are copied. Sizes,
 * strides and type are judged by the operator that is given the descriptor. */
RETROGRAD_API infiniStatus_t infiniopCreateTensorDescriptor(infiniopTensorDescriptor_t* desc_ptr, size_t ndim,
                                                            const size_t* shape, const ptrdiff_t* strides,
                                                            infiniDtype_t dtype);
/* Operator descriptors made from it stay usable. */
RETROGRAD_API infiniStatus_t infiniopDestroyTensorDescriptor(infiniopTensorDescriptor_t desc);

#ifdef __cplusplus
}
#endif

#endif
