// SPDX-License-Identifier: Apache-2.0
// Every implementation for the CPU, by family; registry.cpp puts them in order.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cpu {

// dense/: products of tiles in registers.
const Candidate& dense_gather();  // channels as the vector side: packed weights, strips, tiles
const Candidate& bf16_gather();   // the same over pairs of BF16 numbers (cells.h)
const Candidate& amx_gather();    // and with tile registers
const Candidate&
dense_grad_weight();  // channels of one operand as the vector side, those of the other as rows
const Candidate& bf16_grad_weight();
const Candidate& amx_grad_weight();
const Candidate& amx_places_grad_weight();  // tile registers that add over places, not over pairs of images
const Candidate& pointwise_gather();        // kernels with one tap: positions as the vector side
const Candidate& few_places_gather();       // few places of y: rows of weights as they lie
const Candidate& few_places_forward();
const Candidate& few_places_grad_weight();
const Candidate& live_taps();  // kernels that are longer than x: the rest of them, and one of the others
const Candidate& im2col();     // patches, strided kernels of one tap: a copy of x, and one of the others

// few_channels/: groups, and stems, whose channels do not fill a vector.
const Candidate& narrow_gather();       // positions as the vector side
const Candidate& narrow_grad_weight();  // dot products along rows
const Candidate& stem_grad_weight();    // output channels as the vector side, rows of (x channel, tap)

// depthwise/: one channel a group on one side at least.
const Candidate& depthwise_gather();           // planes as the vector side; channel multipliers
const Candidate& depthwise_wide_gather();      // in place, vectors along W
const Candidate& depthwise_line_gather();      // one dimension, vectors along the rows
const Candidate& depthwise_channels_gather();  // NHWC
const Candidate& depthwise_grad_weight();
const Candidate& depthwise_wide_grad_weight();
const Candidate& depthwise_line_grad_weight();
const Candidate& depthwise_channels_grad_weight();

// winograd/: 3 x 3 kernels, where reduced precision is allowed.
const Candidate& winograd_gather();
const Candidate& winograd_grad_weight();

const Candidate& chunked_bias();      // bias/: at the speed of memory, whatever the sizes, strides and types
const Candidate& avgpool_windows();   // pooling/, forward: sums of rows, then of windows along the row
const Candidate& avgpool_channels();  // pooling/, backward: NHWC
const Candidate& avgpool_rows();  // pooling/, backward: quotients once, sums of rows, then sums along the row

}  // namespace retrograd::engines::cpu
