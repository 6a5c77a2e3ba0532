// SPDX-License-Identifier: Apache-2.0
// The list for GPUs. Order breaks ties of cost; adding an engine is a line here and one in tuning/gpu.txt.
#include "engines/cuda/implementations.h"

namespace retrograd::engines::cuda {

std::span<const Candidate* const> candidates() {
  static const Candidate* const all[] = {
      &depthwise_small(),     // grad_input, grad_weight: one channel a group, 3x3 to 7x7 on 14x14, 16 bits
      &depthwise_bands(),     // 5x5 and 7x7, 16-bit types
      &depthwise_rows(),      // 3x3 to 7x7
      &depthwise_last(),      // the same, channels last
      &depthwise_tiles(),     // one channel a group, stride 1, larger kernels
      &depthwise_segments(),  // one channel a group, one axis, lines of any length and alignment
      &depthwise_staged(),    // one channel a group of one side, any window, planes
      &depthwise_windows(),   // one channel a group of one side, any window, any strides
      &small_images(),        // grad_input, grad_weight of small images
      &narrow_blocks(),       // grad_input, grad_weight: groups of up to 16 channels, 16-bit types
      &narrow_tiles(),        // grad_input, grad_weight: few x channels a group, common windows, f32
      &stem_gather(),         // grad_input: at most eight x channels a group, any window
      &few_terms(),           // forward, grad_input: at most 64 taps and channels to add up
      &box_products(),        // forward: at most 16 x channels a group, any window
      &group_rows(),          // forward, grad_input: few channels a group, NHWC, 16-bit types
      &group_weights(),       // grad_weight: the same
      &tf32_products(),       // convolutions in f32 whose operands may be rounded
      &in_place_tf32(),       // forward, grad_input: the same of operands where they lie
      &wgmma_products(),      // forward, grad_input in 16-bit types on Hopper GPUs
      &pointwise_planes(),    // 1x1 of planes in 16-bit types on Hopper GPUs, in place
      &weight_products(),     // grad_weight in 16-bit types on Hopper GPUs
      &tap_products(),        // the same, a tap at a time
      &few_places(),          // grad_weight of a handful of places
      &in_place_products(),   // forward, grad_input of operands where they lie
      &row_products(),        // convolutions
      &col2im(),              // grad_input with few x channels
      &mirrored(),            // convolutions with few y channels, stride 1
      &live_taps(),           // kernels whose first or last taps never meet x
      &bias(),                // grad_bias
      &pool_disjoint(),       // average pooling: windows side by side
      &pool_columns(),        // any windows, tiles in shared memory
      &pool_vectors(),        // any windows, channels last
      &pool_any(),            // any windows
      &pool_windows(),        // average pooling forward
      &dense_copies(),        // operands of other layouts, and depthwise ones that are channels last
      &direct(),              // everything
  };
  return all;
}

}  // namespace retrograd::engines::cuda
