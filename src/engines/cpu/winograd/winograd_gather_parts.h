// SPDX-License-Identifier: Apache-2.0
// The parts of which a gathering pass by Winograd is made, in whatever order.
#pragma once

#include <vector>

#include "engines/cpu/machine_vectors.h"
#include "engines/cpu/winograd/winograd_gather.h"

namespace retrograd::engines::cpu {

// A block of tiles: all that a task makes results for.
struct WinogradBlock {
  int64_t group = 0;
  int64_t first_plane = 0, planes = 0;
  int64_t first_row = 0, rows = 0;  // of tiles
  int64_t first_column = 0, columns = 0;
  int64_t first_tap = 0, taps = 0;  // along D: those that read inside the source, all of them for more planes
  int64_t tiles() const { return planes * rows * columns; }
};

// Terms of the sum: source channels of some taps along D, counted from the block's first.
struct WinogradTerms {
  int64_t first_tap = 0, taps = 0;
  int64_t first_channel = 0, channels = 0;
};

class WinogradGatherParts {
 public:
  WinogradGatherParts(const problem::ConvPass& pass, const VectorShape& vectors);

  const WinogradGatherCut& cut() const { return cut_; }
  int64_t lanes() const { return lanes_; }
  int64_t width() const { return width_; }
  int64_t m_blocks() const { return m_blocks_; }  // of `width` result channels of a group
  WinogradBlock block(int64_t index) const;       // groups outermost

  // Floats of a block's transformed data and products, of `terms` transformed kernels, and of a strip.
  int64_t data_floats() const;
  int64_t product_floats() const;
  int64_t kernel_floats(int64_t terms) const;
  int64_t strip_floats() const;

  // data[36][tile][depth tap, channel] of the vector of channels that begins with `channel`.
  void transform_data(const Bindings& bindings, const WinogradBlock& block, int64_t channel, float* strip,
                      float* data) const;
  // kernels[36][term][width] of channels of one tap along D; `terms` says how many terms a point has,
  // `first_term` which is the first of these.
  void transform_weights(const Bindings& bindings, int64_t group, int64_t m_block, int64_t depth_tap,
                         int64_t channel, int64_t count, float* strip, float* kernels, int64_t terms,
                         int64_t first_term) const;
  // products[36][tile][width] (+)= data · kernels
  void multiply(const WinogradBlock& block, const WinogradTerms& terms, const float* data,
                const float* kernels, int64_t kernel_terms, bool accumulate, float* products) const;
  void store_result(const Bindings& bindings, const WinogradBlock& block, int64_t m_block,
                    const float* products, float* strip) const;

 private:
  void load_taps(const float* weight, int64_t m_stride, int64_t channels, float* taps) const;

  problem::ConvPass pass_;
  int64_t width_, lanes_;
  WinogradGatherCut cut_;
  std::vector<int64_t> iota_;
  int64_t m_blocks_ = 0;
  int64_t k_padded_ = 0;
  // Floats from one point to the next, and from one tile to the next.
  int64_t data_point_ = 0, product_point_ = 0, data_tile_ = 0;
};

}  // namespace retrograd::engines::cpu
