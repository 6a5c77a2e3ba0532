// SPDX-License-Identifier: Apache-2.0
// Channels that lie side by side as the lanes of vectors: chunks of them, and rows of their pixels, read
// where they lie or converted to FP32.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "engines/cpu/rows.h"
#include "engines/engine.h"
#include "problem/pass.h"

namespace retrograd::engines::cpu {

// Why a pass cannot have channels as lanes, or nothing.
std::optional<Reason> unfit_for_channels(const problem::ConvPass& pass, int64_t lanes);

// Channels cut into chunks of whole vectors; the last one takes what does not fill a vector too.
struct ChannelChunks {
  int64_t channels = 0, lanes = 1, blocks_per_chunk = 1;

  int64_t count() const;
  problem::Range at(int64_t chunk) const;
  int64_t most_channels() const;
};
// Chunks of at most about `wanted` channels, even ones; there are as many channels as lanes.
ChannelChunks cut_channels(int64_t channels, int64_t lanes, int64_t wanted);

// Blocks of lanes that cover the channels of a chunk, and where one starts: the last two may overlap, and
// compute the same where they do.
int64_t channel_blocks(const ChannelChunks& chunks, int64_t channels);
int64_t block_start(const ChannelChunks& chunks, int64_t channels, int64_t block);

// Places [begin, end) of a row, [place][channel], from and to a tensor. `at` is place 0 of the row and the
// first channel.
void load_places(const problem::PassTensor& tensor, OperandRounding rounding, const std::byte* at,
                 const problem::Range& places, int64_t channels, float* out);
void store_places(const problem::PassTensor& tensor, std::byte* at, const problem::Range& places,
                  int64_t channels, const float* in);

// Rows (d, h) of one image, where they lie or converted: what is not `in_place` is converted to FP32 when it
// is first asked for, into one of depths × rows places of a buffer, where neighbours in d and h do not
// displace each other.
class ChannelRows {
 public:
  struct Slots {
    int64_t depths = 1, rows = 1;
    int64_t count() const { return depths * rows; }
  };
  // `memory` holds slots.count() rows, `tags` as many numbers.
  ChannelRows(const problem::PassTensor& tensor, OperandRounding rounding, bool in_place, int64_t height,
              const Slots& slots, float* memory, int64_t* tags);

  // Forgets all rows: the next ones are places [begin, end) of `channels` channels from `at` on.
  void begin(const std::byte* at, const problem::Range& places, int64_t channels);
  bool in_place() const { return in_place_; }
  // At the first place; in place, of the tensor's type.
  const float* row(int64_t d, int64_t h);
  int64_t place_floats() const { return in_place_ ? tensor_.strides[4] : channels_; }
  // From one row to the next; only where rows are read in place, or there is a slot for each.
  int64_t row_floats() const { return in_place_ ? tensor_.strides[3] : places_.size() * channels_; }

 private:
  const problem::PassTensor& tensor_;
  OperandRounding rounding_;
  bool in_place_;
  int64_t height_;
  Slots slots_;
  float* memory_;
  int64_t* tags_;
  const std::byte* at_ = nullptr;
  problem::Range places_{};
  int64_t channels_ = 0;
};

}  // namespace retrograd::engines::cpu
