// SPDX-License-Identifier: Apache-2.0
// grad_bias of FP32, FP16 or BF16, of planes anywhere or of a dense channels-last grad_output.
#pragma once

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// How each channel's sum is cut: a function of the problem alone. The workspace holds a float for each part
// of each row of each channel.
struct BiasCut {
  int64_t rows;   // channels-last rows that are read as one, so that together they are whole vectors
  int64_t parts;  // of the places, or of such rows
  int64_t sums() const { return rows * parts; }
};
inline BiasCut bias_cut(const Bias& bias) {
  constexpr int64_t kWantedBlocks = 1024;  // some eight a multiprocessor of a large GPU
  constexpr int64_t kFewestTerms = 16384;  // of a part
  constexpr int64_t kFewElements = 32768;  // one launch is faster than whole vectors
  const bool planes = bias.grad_output.strides[1] != 1 || bias.channels == 1;
  const auto vector = static_cast<int64_t>(16 / size_of(bias.grad_output.dtype));
  const int64_t places = bias.batch * bias.spatial[0] * bias.spatial[1] * bias.spatial[2];
  const bool few = places * bias.channels < kFewElements;
  const int64_t rows = planes || few ? 1 : vector / std::gcd(bias.channels, vector),
                channels = rows * bias.channels, terms = ceil_div(places, rows);
  // Channels-last: a block takes up to 2048 channels, and few channels are many rows at once.
  const int64_t blocks = planes ? channels : ceil_div(channels, int64_t{2048});
  const int64_t wanted = ceil_div(planes ? kWantedBlocks : kWantedBlocks / 2, blocks);
  const int64_t fewest = planes ? kFewestTerms : channels < 1024 ? 16384 / channels : 16;
  return {rows, std::clamp<int64_t>(std::min(wanted, ceil_div(terms, fewest)), 1, 1024)};
}
// The places of a plane side by side; strides from plane to plane are not negative.
void bias_planes(const Bias& bias, float* workspace, Stream stream);
// Channels innermost.
void bias_channels_last(const Bias& bias, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
