// SPDX-License-Identifier: Apache-2.0
// Chunks of channels and rows of their pixels.
#include "engines/cpu/depthwise/depthwise_channels.h"

#include <algorithm>

#include "base/checked.h"

namespace retrograd::engines::cpu {

using problem::PassTensor;
using problem::Range;

std::optional<Reason> unfit_for_channels(const problem::ConvPass& pass, int64_t lanes) {
  if (pass.x_channels != pass.groups || pass.y_channels != pass.groups)
    return "a group has more than one channel";
  if (pass.x.strides[1] != 1 || pass.y.strides[1] != 1) return "channels lie apart";
  if (lanes < 4) return "there are no vectors";
  if (pass.groups < lanes) return "there are fewer channels than lanes";
  return std::nullopt;
}

int64_t ChannelChunks::count() const { return ceil_div(channels / lanes, blocks_per_chunk); }

Range ChannelChunks::at(int64_t chunk) const {
  const int64_t size = blocks_per_chunk * lanes;
  return {chunk * size, chunk + 1 == count() ? channels : (chunk + 1) * size};
}

int64_t ChannelChunks::most_channels() const {
  return std::min(channels, blocks_per_chunk * lanes + channels % lanes);
}

ChannelChunks cut_channels(int64_t channels, int64_t lanes, int64_t wanted) {
  ChannelChunks cut{.channels = channels, .lanes = lanes};
  const int64_t full = channels / cut.lanes;
  const int64_t most = std::clamp<int64_t>(wanted / cut.lanes, 1, full);
  cut.blocks_per_chunk = ceil_div(full, ceil_div(full, most));
  return cut;
}

int64_t channel_blocks(const ChannelChunks& chunks, int64_t channels) {
  return ceil_div(channels, chunks.lanes);
}
int64_t block_start(const ChannelChunks& chunks, int64_t channels, int64_t block) {
  return std::min(block * chunks.lanes, channels - chunks.lanes);
}

void load_places(const PassTensor& tensor, OperandRounding rounding, const std::byte* at, const Range& places,
                 int64_t channels, float* out) {
  const int64_t stride = tensor.strides[4], bytes = static_cast<int64_t>(size_of(tensor.dtype));
  load_rows(tensor.dtype, rounding, at + places.begin * stride * bytes, stride, places.size(), channels, out,
            channels);
}

void store_places(const PassTensor& tensor, std::byte* at, const Range& places, int64_t channels,
                  const float* in) {
  const int64_t stride = tensor.strides[4], bytes = static_cast<int64_t>(size_of(tensor.dtype));
  store_rows(tensor.dtype, at + places.begin * stride * bytes, stride, in, channels, places.size(), channels);
}

ChannelRows::ChannelRows(const PassTensor& tensor, OperandRounding rounding, bool in_place, int64_t height,
                         const Slots& slots, float* memory, int64_t* tags)
    : tensor_(tensor),
      rounding_(rounding),
      in_place_(in_place),
      height_(height),
      slots_(slots),
      memory_(memory),
      tags_(tags) {}

void ChannelRows::begin(const std::byte* at, const Range& places, int64_t channels) {
  at_ = at;
  places_ = places;
  channels_ = channels;
  if (!in_place_) std::fill_n(tags_, slots_.count(), int64_t{-1});
}

const float* ChannelRows::row(int64_t d, int64_t h) {
  const auto& s = tensor_.strides;
  const int64_t offset = d * s[2] + h * s[3], bytes = static_cast<int64_t>(size_of(tensor_.dtype));
  if (in_place_) return reinterpret_cast<const float*>(at_ + (offset + places_.begin * s[4]) * bytes);
  const int64_t slot = d % slots_.depths * slots_.rows + h % slots_.rows;
  float* row = memory_ + slot * places_.size() * channels_;
  if (tags_[slot] == d * height_ + h) return row;
  tags_[slot] = d * height_ + h;
  load_places(tensor_, rounding_, at_ + offset * bytes, places_, channels_, row);
  return row;
}

}  // namespace retrograd::engines::cpu
