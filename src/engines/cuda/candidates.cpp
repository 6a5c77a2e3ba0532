// SPDX-License-Identifier: Apache-2.0
// The list for GPUs. Order breaks ties of cost; adding an engine is a line here and one in tuning/gpu.txt.
#include "engines/cuda/candidates.h"

#include <array>

#include "engines/cuda/implementations.h"

namespace retrograd::engines::cuda {

std::span<const Candidate* const> candidates() {
  static const std::array<const Candidate*, 25> all = {
      &depthwise_small(),     // grad_input, grad_weight: one channel a group, 3x3 to 7x7 on 14x14, 16 bits
      &depthwise_whole(),     // the same of every type
      &depthwise_bands(),     // 5x5 and 7x7, 16-bit types
      &depthwise_rows(),      // 3x3 to 7x7
      &depthwise_last(),      // the same, channels last
      &depthwise_tiles(),     // one channel a group, stride 1, larger kernels
      &depthwise_segments(),  // one channel a group, one axis, lines of any length and alignment
      &depthwise_windows(),   // one channel a group of one side, any window, any strides
      &small_images(),        // grad_input, grad_weight, grad_bias of small images
      &narrow_blocks(),       // grad_input, grad_weight: groups of up to 16 channels, 16-bit types
      &narrow_tiles(),        // grad_input, grad_weight: few x channels a group, common windows
      &narrow_gather(),       // grad_input: at most four x channels a group
      &tf32_products(),       // convolutions in f32 whose operands may be rounded
      &wgmma_products(),      // forward, grad_input in 16-bit types on Hopper GPUs
      &weight_products(),     // grad_weight in 16-bit types on Hopper GPUs
      &cudnn_products(),      // convolutions, where cuDNN is there
      &row_products(),        // convolutions
      &bias(),                // grad_bias
      &pool_disjoint(),       // average pooling: windows side by side
      &pool_columns(),        // any windows, tiles in shared memory
      &pool_vectors(),        // channels last, 16 bytes of channels a thread
      &pool_any(),            // any windows
      &pool_windows(),        // average pooling forward
      &dense_copies(),        // operands of other layouts, and depthwise ones that are channels last
      &direct(),              // everything
  };
  return all;
}

}  // namespace retrograd::engines::cuda
