// SPDX-License-Identifier: Apache-2.0
// The pixels of y that a tap multiplies, in order, images outside, and the pixels of x that they meet. Every
// one of them is live, so that no product stands for padding.
#pragma once

#include "base/host_device.h"
#include "kernels/cuda/dense_weight/tap_weight.h"

namespace retrograd::kernels::cuda {

inline constexpr int kTapTerms = 32;  // places of a step

struct LiveOutputs {
  int begin, count;
};
RG_DEVICE inline LiveOutputs live_outputs(const TapAxis& a, int tap) {
  const int shift = tap * a.dilation - a.pad;
  const auto outputs = [&](int positions) {
    return static_cast<int>(a.by_stride.quotient(static_cast<uint32_t>(positions + a.stride - 1)));
  };
  const int begin = shift < 0 ? outputs(-shift) : 0;
  const int reach = shift < a.x ? outputs(a.x - shift) : 0, end = reach < a.y ? reach : a.y;
  return {begin, end > begin ? end - begin : 0};
}

struct TapPlaces {
  int count[3], y_first[3], x_first[3];
  int all;  // of all images
};
RG_DEVICE inline TapPlaces places_of_tap(const TapWalk& walk, int tap) {
  auto kw = static_cast<uint32_t>(tap);
  uint32_t kh = walk.axes[2].by_kernel.split(kw);
  const uint32_t kd = walk.axes[1].by_kernel.split(kh);
  const int of_axis[3] = {static_cast<int>(kd), static_cast<int>(kh), static_cast<int>(kw)};
  TapPlaces places;
  places.all = walk.batch;
  for (int i = 0; i < 3; ++i) {
    const TapAxis& a = walk.axes[i];
    const LiveOutputs live = live_outputs(a, of_axis[i]);
    places.count[i] = live.count;
    places.y_first[i] = live.begin;
    places.x_first[i] = live.begin * a.stride - a.pad + of_axis[i] * a.dilation;
    places.all *= live.count;
  }
  return places;
}

// The steps of a part of them.
struct TapPart {
  int first, end, steps;  // first, end: places
};
RG_DEVICE inline TapPart part_of(const TapPlaces& places, int part, uint32_t parts) {
  const int steps = (places.all + kTapTerms - 1) / kTapTerms;
  const auto of_part = static_cast<int>((static_cast<uint32_t>(steps) + parts - 1) / parts);
  const int begin = part * of_part < steps ? part * of_part : steps,
            end = steps - begin < of_part ? steps : begin + of_part;
  const int last = end * kTapTerms;
  return {begin * kTapTerms, last < places.all ? last : places.all, end - begin};
}

// Every kTapTerms-th place of a part, as digits: n, d, h, w. A step adds digits and carries, which is cheaper
// than dividing again.
class TapPlaceWalk {
 public:
  RG_DEVICE TapPlaceWalk(const TapPlaces& places, const TapPart& part, int term)
      : number_(part.first + term), end_(part.end) {
    split(places, number_, digits_);
    split(places, kTapTerms, steps_);
  }
  RG_DEVICE bool is_there() const { return number_ < end_; }
  RG_DEVICE int y(const TapWalk& walk, const TapPlaces& places) const {
    int at = digits_[0];
    for (int i = 0; i < 3; ++i) at = at * walk.axes[i].y + places.y_first[i] + digits_[i + 1];
    return at;
  }
  RG_DEVICE int x(const TapWalk& walk, const TapPlaces& places) const {
    int at = digits_[0];
    for (int i = 0; i < 3; ++i)
      at = at * walk.axes[i].x + places.x_first[i] + digits_[i + 1] * walk.axes[i].stride;
    return at;
  }
  RG_DEVICE void next(const TapPlaces& places) {
    number_ += kTapTerms;
    int carry = 0;
    for (int i = 2; i >= 0; --i) {
      const int digit = digits_[i + 1] + steps_[i + 1] + carry;
      carry = digit >= places.count[i] ? 1 : 0;
      digits_[i + 1] = digit - (carry != 0 ? places.count[i] : 0);
    }
    digits_[0] += steps_[0] + carry;
  }

 private:
  RG_DEVICE static void split(const TapPlaces& places, int number, int (&digits)[4]) {
    auto rest = static_cast<uint32_t>(number);
    for (int i = 2; i >= 0; --i) {
      const auto count = static_cast<uint32_t>(places.count[i] > 0 ? places.count[i] : 1);
      digits[i + 1] = static_cast<int>(rest % count);
      rest /= count;
    }
    digits[0] = static_cast<int>(rest);
  }

  int number_, end_, digits_[4], steps_[4];
};

}  // namespace retrograd::kernels::cuda
