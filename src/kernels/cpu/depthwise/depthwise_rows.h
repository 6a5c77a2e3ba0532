// SPDX-License-Identifier: Apache-2.0
// Rows of results of depthwise convolutions, planes as lanes (depthwise_lanes.h), or neighbouring channels
// where they lie:
//
//   out[j][l] = start[l] + Σ_r Σ_t weights[r][t][l] · sources[r][j·source_step + taps[t].offset][l]
//
// r runs over the source rows a row of results reads, t over the taps along W of which j is a live position.
// Only live products are made: nothing is padded, so what is not finite stays where it belongs. A tile is up
// to 14 positions in 14 accumulators; a tap costs one load of weights and, for each position, one
// multiply-add with a load in it. Taps, steps and dilation are only addresses.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace retrograd::kernels::cpu {

inline constexpr int64_t kDepthwiseTile = 14;

struct DepthwiseTap {
  int64_t offset = 0;  // in the source, at position 0
  int64_t begin = 0;   // live positions
  int64_t end = 0;
};

struct DepthwiseRow {
  // Of sources and results: FP32, or BF16 or FP16, which are read and written where they lie.
  DType type = DType::kF32;
  const std::byte* const* sources = nullptr;  // [rows], at the place `source_start`
  const float* const* weights = nullptr;      // [rows], [slot][lane]
  const float* start = nullptr;               // [block][lane]; null: zeros
  int64_t rows = 0;
  int64_t source_place = 0;  // elements from a place to the next
  int64_t source_start = 0;
  int64_t source_step = 1;
  int64_t source_size = 0;  // places beyond are dead
  const DepthwiseTap* taps = nullptr;
  int64_t tap_count = 0;
  int64_t first_slot = 0;  // of the taps in the weights of a row
  int64_t full_begin = 0;  // positions of which every tap is live
  int64_t full_end = 0;
  int64_t first = 0;  // positions to compute
  int64_t count = 0;
  std::byte* out = nullptr;  // position first + i lies i·out_step·out_place elements further on
  int64_t out_step = 1;
  int64_t out_place = 0;
  // Blocks of lanes beside each other, where those are channels: tile by tile all of them are computed, so
  // that what lies together in memory is read together. Block b is b·lanes elements further on in sources
  // and out, the last one last_block, and b·block_weights in the weights.
  int64_t blocks = 1;
  int64_t last_block = 0;
  int64_t block_weights = 0;
  // Of BF16 the first 2·pairs blocks can be pairs: the even and the odd ones of 2·lanes channels, so that one
  // load has both as the halves of 32 bits. The last pair ends where the last block does.
  int64_t pairs = 0;
  bool fetches = false;  // the next row of sources and results, where memory is far away
  // Further rows of results that read the same rows of weights; elements from one to the next.
  int64_t out_rows = 1;
  int64_t source_row = 0;
  int64_t out_row = 0;
};
void depthwise_row(const DepthwiseRow& row);

}  // namespace retrograd::kernels::cpu
