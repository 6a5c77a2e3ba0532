// SPDX-License-Identifier: Apache-2.0
// The last step of a grad_weight of few channels a group whose pixels were cut into parts (split K): adds the
// parts of each weight in order. dense/weight_parts.h does the same for rows of many channels.
#pragma once

#include <cstdint>

#include "kernels/cuda/part_rows.h"
#include "kernels/cuda/shapes.h"
#include "kernels/cuda/terms.h"

namespace retrograd::kernels::cuda {

// How the sums of a part lie. kTapsOfChannel: [y channel][x channel of the group][tap]. kChannelsOfTap:
// [tap][y channel][x channel of the group]. kSixteens, of 3x3 kernels and groups of up to 16 channels: [16 y
// channels][tap][y channel][x channel], where pairs of different groups are left out.
enum class PartOrder : unsigned char { kTapsOfChannel, kChannelsOfTap, kSixteens };

// The sums of a part: `count` of them, those of no weight included.
struct PartSums {
  PartOrder order;
  int64_t count, x_channels, taps, kh, kw;  // x_channels of a group

  // Whether sum i is one of a weight, and of which.
  RG_DEVICE bool has(int64_t i) const {
    if (i >= count || order != PartOrder::kSixteens) return i < count;
    return i % 16 / x_channels == i / 16 % 16 / x_channels;
  }
  RG_DEVICE Index5 at(int64_t i) const {
    if (order == PartOrder::kSixteens)
      return index(i / 2304 * 16 + i / 16 % 16, i % 16 % x_channels, i / 256 % 9);
    const bool by_channel = order == PartOrder::kTapsOfChannel;
    const int64_t channels = count / taps, channel = by_channel ? i / taps : i % channels;
    return index(channel / x_channels, channel % x_channels, by_channel ? i % taps : i / channels);
  }
  // Which sum is a weight's.
  RG_DEVICE int64_t number(const Index5& at) const {
    const int64_t tap = (at.d * kh + at.h) * kw + at.w, channel = at.n * x_channels + at.c;
    if (order == PartOrder::kTapsOfChannel) return channel * taps + tap;
    if (order == PartOrder::kChannelsOfTap) return tap * (count / taps) + channel;
    const int64_t o = at.n % 16, c = o / x_channels * x_channels + at.c;
    return ((at.n / 16 * 9 + tap) * 16 + o) * 16 + c;
  }

 private:
  RG_DEVICE Index5 index(int64_t y_channel, int64_t x_channel, int64_t tap) const {
    return {y_channel, x_channel, tap / (kw * kh), tap / kw % kh, tap % kw};
  }
};
inline PartSums part_sums(const Conv& conv, PartOrder order) {
  const Axis(&a)[3] = conv.axes;
  const int64_t taps = a[0].kernel * a[1].kernel * a[2].kernel;
  const int64_t x_channels = order == PartOrder::kSixteens ? 16 : conv.x_channels;
  return {order,      conv.groups * conv.y_channels * x_channels * taps, conv.x_channels, taps, a[1].kernel,
          a[2].kernel};
}

// A sum that is NaN, where a zero beyond the edge may have met an infinity, is taken from the formula; with
// `rows`, only its parts that are NaN.
void add_parts(const Conv& conv, int64_t parts, PartOrder order, const PartRows& rows, const float* sums,
               Stream stream);

}  // namespace retrograd::kernels::cuda
