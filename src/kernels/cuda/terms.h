// SPDX-License-Identifier: Apache-2.0
// The live terms of one result, and nothing else: a box of four indices in which both factors lie at fixed
// steps, so that a sum knows no edges. Plain arithmetic, which tests run on the CPU.
//
// forward     Σ over taps and x channels of x · w
// grad_input  Σ over taps and y channels of y · w; with a stride only every n-th tap reads an output
// grad_weight Σ over images and outputs of x · y
#pragma once

#include "base/host_device.h"
#include "kernels/cuda/layout/channel_rows.h"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

struct Index5 {
  int64_t n, c, d, h, w;
};
RG_DEVICE inline int64_t offset_of(const Tensor& t, const Index5& i) {
  return i.n * t.strides[0] + i.c * t.strides[1] + i.d * t.strides[2] + i.h * t.strides[3] +
         i.w * t.strides[4];
}

// Towards zero. The machine has no division of 64 bits.
RG_DEVICE inline int64_t quotient(int64_t a, int64_t b) {
  if (b == 1) return a;
  if (((a | b) >> 32) == 0) return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  return a / b;
}
// Of a that may be negative and b > 0.
RG_DEVICE inline int64_t quotient_up(int64_t a, int64_t b) {
  return a > 0 ? quotient(a - 1, b) + 1 : -quotient(-a, b);
}
RG_DEVICE inline int64_t between(int64_t value, int64_t lowest, int64_t highest) {
  return value < lowest ? lowest : value > highest ? highest : value;
}

// Live terms along one axis: `first` is a tap, of weights an output; `other` what it meets in the source.
struct AxisTerms {
  int64_t count, first, other, first_step, other_step;
};

RG_DEVICE RG_CALLED inline AxisTerms taps_of_output(const Axis& a, int64_t output) {
  const int64_t start = output * a.stride - a.pad;
  const int64_t first = between(quotient_up(-start, a.dilation), 0, a.kernel);
  const int64_t end = between(quotient_up(a.x - start, a.dilation), first, a.kernel);
  return {end - first, first, start + first * a.dilation, 1, a.dilation};
}

// Taps of x[index]: those t with index + pad − t · dilation = output · stride.
RG_DEVICE RG_CALLED inline AxisTerms taps_of_input(const Axis& a, int64_t index) {
  int64_t divisor = a.stride, rest = a.dilation;
  if (divisor == 1 || rest == 1) divisor = 1, rest = 0;
  while (rest != 0) {
    const int64_t next = divisor % rest;
    divisor = rest, rest = next;
  }
  const int64_t by = quotient(a.stride, divisor), back = quotient(a.dilation, divisor);
  int64_t first = 0, scaled = index + a.pad;
  while (first < by && first < a.kernel && scaled >= 0 && quotient(scaled, a.stride) * a.stride != scaled)
    ++first, scaled -= a.dilation;
  if (first >= by || first >= a.kernel || scaled < 0) return {0, 0, 0, by, -back};
  const int64_t output = quotient(scaled, a.stride);
  const int64_t skipped = output < a.y ? 0 : quotient_up(output - (a.y - 1), back);
  const int64_t of_taps = quotient(a.kernel - 1 - first, by), of_outputs = quotient(output, back);
  const int64_t end = (of_taps < of_outputs ? of_taps : of_outputs) + 1;
  return {end > skipped ? end - skipped : 0, first + skipped * by, output - skipped * back, by, -back};
}

RG_DEVICE RG_CALLED inline AxisTerms outputs_of_tap(const Axis& a, int64_t tap) {
  const int64_t shift = tap * a.dilation - a.pad;
  const int64_t first = between(quotient_up(-shift, a.stride), 0, a.y);
  const int64_t end = between(quotient_up(a.x - shift, a.stride), first, a.y);
  return {end - first, first, first * a.stride + shift, 1, a.stride};
}

// Outermost index first. first: of an index, the tap, channel, image or output that it begins with.
struct Terms {
  int64_t count[4], first[4];
  int64_t a, b;  // offsets of the first term
  int64_t a_step[4], b_step[4];

  RG_DEVICE int64_t all() const { return count[0] * count[1] * count[2] * count[3]; }
};

RG_DEVICE inline Terms terms_of_weight(const Conv& p, const Index5& at) {
  const AxisTerms d = outputs_of_tap(p.axes[0], at.d), h = outputs_of_tap(p.axes[1], at.h),
                  w = outputs_of_tap(p.axes[2], at.w);
  const int64_t *x = p.x.strides, *y = p.y.strides;
  const int64_t channel = quotient(at.n, p.y_channels) * p.x_channels + at.c;
  return {{p.batch, d.count, h.count, w.count},
          {0, d.first, h.first, w.first},
          offset_of(p.x, {0, channel, d.other, h.other, w.other}),
          offset_of(p.y, {0, at.n, d.first, h.first, w.first}),
          {x[0], x[2] * d.other_step, x[3] * h.other_step, x[4] * w.other_step},
          {y[0], y[2], y[3], y[4]}};
}

RG_DEVICE inline Terms terms_of_place(const Conv& p, bool forward, const Index5& at) {
  const auto along = [&](int axis, int64_t index) {
    return forward ? taps_of_output(p.axes[axis], index) : taps_of_input(p.axes[axis], index);
  };
  const AxisTerms d = along(0, at.d), h = along(1, at.h), k = along(2, at.w);
  const Tensor& source = forward ? p.x : p.y;
  const int64_t *s = source.strides, *w = p.w.strides;
  const int64_t channels = forward ? p.x_channels : p.y_channels;
  const int64_t results = forward ? p.y_channels : p.x_channels;
  const int64_t group = quotient(at.c, results), first = group * channels, of_w = forward ? w[1] : w[0];
  const int64_t a = offset_of(source, {at.n, first, d.other, h.other, k.other});
  const int64_t b = forward ? offset_of(p.w, {at.c, 0, d.first, h.first, k.first})
                            : offset_of(p.w, {first, at.c - group * results, d.first, h.first, k.first});
  const int64_t a_step[3] = {d.other_step * s[2], h.other_step * s[3], k.other_step * s[4]};
  const int64_t b_step[3] = {d.first_step * w[2], h.first_step * w[3], k.first_step * w[4]};
  if (channels < 8)  // the longer index inside
    return {{channels, d.count, h.count, k.count},   {0, d.first, h.first, k.first},         a, b,
            {s[1], a_step[0], a_step[1], a_step[2]}, {of_w, b_step[0], b_step[1], b_step[2]}};
  return {{d.count, h.count, k.count, channels},   {d.first, h.first, k.first, 0},         a, b,
          {a_step[0], a_step[1], a_step[2], s[1]}, {b_step[0], b_step[1], b_step[2], of_w}};
}

RG_DEVICE inline Terms terms_of(const Conv& p, Result result, const Index5& at) {
  return result == Result::kGradWeight ? terms_of_weight(p, at)
                                       : terms_of_place(p, result == Result::kForward, at);
}

// The same terms in the same order, in as few indices as their steps allow: runs of the innermost one are
// long. `first` says nothing then.
RG_DEVICE inline Terms joined(Terms t) {
  RG_UNROLL
  for (int joins = 0; joins < 3; ++joins) {
    const bool follows = t.a_step[2] == t.count[3] * t.a_step[3] && t.b_step[2] == t.count[3] * t.b_step[3];
    if (t.count[2] != 1 && !follows) break;
    t.count[3] *= t.count[2];
    RG_UNROLL
    for (int i = 2; i > 0; --i)
      t.count[i] = t.count[i - 1], t.a_step[i] = t.a_step[i - 1], t.b_step[i] = t.b_step[i - 1];
    t.count[0] = 1;
  }
  return t;
}

// Some terms of a box, which has any, in order: `number`, number + step, …
struct TermWalk {
  const Terms& terms;
  int64_t at[4], by[4];
  int64_t a, b, a_by = 0, b_by = 0;

  RG_DEVICE TermWalk(const Terms& t, int64_t number, int64_t step) : terms(t), a(t.a), b(t.b) {
    RG_UNROLL
    for (int i = 3; i >= 0; --i) {
      const int64_t numbers = i == 0 || number < t.count[i] ? 0 : quotient(number, t.count[i]);
      const int64_t steps = i == 0 || step < t.count[i] ? 0 : quotient(step, t.count[i]);
      at[i] = number - numbers * t.count[i], by[i] = step - steps * t.count[i];
      number = numbers, step = steps;
      a += at[i] * t.a_step[i], b += at[i] * t.b_step[i];
      a_by += by[i] * t.a_step[i], b_by += by[i] * t.b_step[i];
    }
    is_short_ = (by[0] | by[1] | by[2]) == 0;
  }
  RG_DEVICE void next() {
    a += a_by, b += b_by;
    at[3] += by[3];
    if (is_short_ && at[3] < terms.count[3]) return;
    carry();
  }
  // How many terms from this one on, in order, lie at the steps of the innermost index.
  RG_DEVICE int64_t run() const { return terms.count[3] - at[3]; }
  // From this term on, all of them.
  RG_DEVICE TermWalk each() const {
    TermWalk walk = *this;
    RG_UNROLL
    for (int i = 0; i < 4; ++i) walk.by[i] = i == 3 ? 1 : 0;
    walk.a_by = terms.a_step[3], walk.b_by = terms.b_step[3];
    walk.is_short_ = true;
    return walk;
  }

 private:
  RG_DEVICE void carry() {
    RG_UNROLL
    for (int i = 3; i > 0; --i) {
      at[i - 1] += by[i - 1];
      if (at[i] < terms.count[i]) continue;
      at[i] -= terms.count[i];
      ++at[i - 1];
      a += terms.a_step[i - 1] - terms.count[i] * terms.a_step[i];
      b += terms.b_step[i - 1] - terms.count[i] * terms.b_step[i];
    }
  }
  bool is_short_;  // a step is one of the innermost index
};

// An order of places of y, images outside: `count` of them along an axis from `first` on. Holds every live
// place, and perhaps others.
struct PlaceGrid {
  int64_t first[3], count[3];
};
// How many terms of a weight stand before a place of the grid.
RG_DEVICE inline int64_t terms_before(const Terms& t, const PlaceGrid& grid, int64_t place) {
  int64_t at[3], terms = 0, volume = t.count[1] * t.count[2] * t.count[3];
  for (int i = 2; i >= 0; --i) {
    const int64_t rest = quotient(place, grid.count[i]);
    at[i] = grid.first[i] + place - rest * grid.count[i];
    place = rest;
  }
  terms = place * volume;
  for (int i = 0; i < 3 && volume != 0; ++i) {
    volume = quotient(volume, t.count[i + 1]);
    const int64_t inside = at[i] - t.first[i + 1];
    terms += between(inside, 0, t.count[i + 1]) * volume;
    if (inside < 0 || inside >= t.count[i + 1]) break;
  }
  return terms;
}

// How many lanes of a warp, a power of two, share each of `open` sums of so many terms, or parts, for all to
// be done soonest: a lane waits for its loads, kTermsAhead terms or kPartsAhead parts at a time, and as long
// as three times more to find where they lie. A function of the data alone.
inline constexpr int kTermsAhead = 8, kPartsAhead = 4;
RG_DEVICE RG_CALLED inline int lanes_of_sum(int open, int64_t terms, int64_t parts = 0) {
  int best = 1;
  int64_t least = INT64_MAX;
  for (int lanes = 1; lanes <= 32; lanes *= 2) {
    const int64_t turns = (open * lanes + 31) / 32;
    const int64_t waits = 3 + quotient(terms, kTermsAhead * lanes) + quotient(parts, kPartsAhead * lanes);
    if (turns * waits < least) best = lanes, least = turns * waits;
  }
  return best;
}

}  // namespace retrograd::kernels::cuda
