/* SPDX-License-Identifier: Apache-2.0
 * Create calls beyond infiniop's own. They give ordinary descriptors: run, ask for the workspace and destroy
 * them with infiniop's calls.
 */
#ifndef RETROGRAD_INFINIOP_EXT_H
#define RETROGRAD_INFINIOP_EXT_H

#include <stdbool.h>

#include "../infiniop/ops/averagepool_backward.h"
#include "../infiniop/ops/conv_backward.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As infiniopCreateConvBackwardDescriptor, with 64-bit arrays, and
 * - pads: pads_count numbers, either one for each spatial dimension, or two (before and after it). Null, with
 * a count of 0: no padding.
 * - transposed: the convolution was a transposed one, its weight (C_in, C_out / groups, kernel...);
 * grad_output is then the wide side.
 * - output_padding: one number for each spatial dimension, in [0, stride) when transposed, 0 otherwise; null
 * means 0.
 * - strides, dilations: one number for each spatial dimension; null means 1. */
RETROGRAD_API infiniStatus_t retrogradInfiniopCreateConvBackwardDescriptor(
    infiniopHandle_t handle, infiniopConvBackwardDescriptor_t* desc_ptr,
    infiniopTensorDescriptor_t grad_output_desc, infiniopTensorDescriptor_t input_desc,
    infiniopTensorDescriptor_t weight_desc, infiniopTensorDescriptor_t bias_desc, const int64_t* pads,
    size_t pads_count, const int64_t* strides, const int64_t* dilations, bool transposed,
    const int64_t* output_padding, int64_t groups);

/* As infiniopCreateAvgPoolBackwardDescriptor, with 64-bit arrays whatever the rank, and
 * - count_include_pad: whether the average counts padding (infiniop's own call: true).
 * - divisor_override: what every window's sum is divided by, or 0 for the count of the window. */
RETROGRAD_API infiniStatus_t retrogradInfiniopCreateAvgPoolBackwardDescriptor(
    infiniopHandle_t handle, infiniopAvgPoolBackwardDescriptor_t* desc_ptr,
    infiniopTensorDescriptor_t grad_input_desc, infiniopTensorDescriptor_t grad_output_desc,
    infiniopTensorDescriptor_t input_desc, const int64_t* kernel_size, const int64_t* strides,
    const int64_t* pads, bool ceil_mode, bool count_include_pad, int64_t divisor_override);

#ifdef __cplusplus
}
#endif

#endif
