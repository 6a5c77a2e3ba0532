// SPDX-License-Identifier: Apache-2.0
// Every implementation for NVIDIA GPUs, by family; candidates.cpp puts them in order.
#pragma once

#include <span>

#include "engines/engine.h"

namespace retrograd::engines::cuda {

// All of them, in order. They plan in every build; only one with CUDA can run the plans.
std::span<const Candidate* const> candidates();

// dense/: products on tensor cores.
// Any strides and types, over rows of channels, into which operands are brought in the workspace. FP32 is
// made of three TF32 products, or of one where the caller allows it (tf32_products).
const Candidate& row_products();
const Candidate& tf32_products();
// forward, grad_input without copies: planes, or rows of whole chunks with weights that fit them.
// in_place_tf32: FP32 operands that may be rounded, as they are read.
const Candidate& in_place_products();
const Candidate& in_place_tf32();
const Candidate& wgmma_products();    // forward, grad_input in FP16 and BF16 by Hopper's warpgroup products
const Candidate& pointwise_planes();  // 1x1 of planes, the same types and GPUs
const Candidate& weight_products();   // grad_weight, the same
const Candidate& few_places();        // grad_weight of up to 16 places, any type
const Candidate& tap_products();      // grad_weight, a tap a tile: few places, any strides and kernels
const Candidate& col2im();            // grad_input with few x channels: taps are columns, then added up
const Candidate& mirrored();          // few y channels: x and y exchanged, then one of these
const Candidate& live_taps();         // kernels longer than the image: a shorter one, then one of these

// few_channels/: groups of up to 16 channels, and stems.
const Candidate& narrow_tiles();   // FP32, tiles in shared memory
const Candidate& narrow_blocks();  // 16-bit types on tensor cores
const Candidate& stem_gather();    // grad_input with at most eight, any window without dilation
const Candidate& few_terms();      // forward and grad_input of at most 64 terms, any window and strides
const Candidate& box_products();   // forward with at most 16 x channels a group, any window and strides
const Candidate& group_rows();  // forward, grad_input of few channels a group, any window, NHWC, 16-bit types
const Candidate& group_weights();  // grad_weight, the same

// depthwise/: one channel a group.
// 3x3 to 7x7, a row a kernel: planes of 14x14 on tensor cores and without, 5x5 and 7x7 on tensor cores, rest.
const Candidate& depthwise_small();
const Candidate& depthwise_bands();
const Candidate& depthwise_rows();
const Candidate& depthwise_last();      // up to 7x7, channels last
const Candidate& depthwise_tiles();     // stride 1, kernels up to 64 x 64
const Candidate& depthwise_segments();  // one axis, lines of any length and alignment
const Candidate& depthwise_staged();    // any window, up to four channels of one side, planes
const Candidate& depthwise_windows();   // any window, any strides, up to four channels of one side

const Candidate& bias();  // bias/: dense tensors

// pooling/: dense tensors, a row a kernel (kernels/cuda/pooling/pool.h).
const Candidate& pool_disjoint();
const Candidate& pool_columns();
const Candidate& pool_vectors();
const Candidate& pool_any();
const Candidate& pool_windows();  // forward

// layout/: copies in one dense layout, and the cheapest of the others for those.
const Candidate& dense_copies();

const Candidate& small_images();  // so small that launches count more than products
const Candidate& direct();        // every pass, straight from its formula; needs no workspace

}  // namespace retrograd::engines::cuda
