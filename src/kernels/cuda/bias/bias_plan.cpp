// SPDX-License-Identifier: Apache-2.0
// How many parts: their number is the order of sums, a function of the problem alone.
#include "kernels/cuda/bias/bias.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int64_t kWantedBlocks = 1024;  // some eight a multiprocessor of a large GPU
constexpr int64_t kFewestTerms = 16384;  // of a part

}  // namespace

int64_t bias_parts(const Bias& bias) {
  const int64_t terms = bias.batch * bias.spatial[0] * bias.spatial[1] * bias.spatial[2];
  const bool planes = bias.grad_output.strides[1] != 1 || bias.channels == 1;
  // Channels-last: a block takes up to 2048 channels, and few channels are many rows at once.
  const int64_t blocks = planes ? bias.channels : (bias.channels + 2047) / 2048;
  const int64_t wanted = ((planes ? kWantedBlocks : kWantedBlocks / 2) + blocks - 1) / blocks;
  const int64_t fewest = planes ? kFewestTerms : bias.channels < 1024 ? 16384 / bias.channels : 16;
  const int64_t most = (terms + fewest - 1) / fewest;
  const int64_t parts = wanted < most ? wanted : most;
  return parts < 1 ? 1 : parts > 1024 ? 1024 : parts;
}

}  // namespace retrograd::kernels::cuda
