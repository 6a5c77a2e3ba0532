// SPDX-License-Identifier: Apache-2.0
// The transforms, once for every instruction set: each is a transform of lines, applied to the columns of a
// tile and then to the rows of what comes out.
//
// With the points p = 0, ±a, ±b and M(x) = x(x² − a²)(x² − b²):
//   data     multiplies by the coefficients of M(x)/(x − p), and of M(x) for infinity
//   kernel   evaluates a polynomial at the points and divides by M'(p)
//   window   evaluates only: `gradient` divides
//   result   the transpose of evaluating a polynomial of 4 coefficients
//   gradient the transpose of `kernel`
// Pairs ±p share their even and odd parts. What lies between the two halves of a transform goes through a
// buffer in L1: 36 vectors are more than there are registers.
#include "kernels/cpu/winograd/winograd.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/winograd/winograd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/vector_shape-inl.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
static_assert(has_lanes(hn::MaxLanes(D()), kShape.winograd_lanes()));

constexpr double kA = 0.75, kB = 1.5;
constexpr double kA2 = kA * kA, kB2 = kB * kB;
// 1 / M'(p)
constexpr double kScale0 = 1 / (kA2 * kB2);
constexpr double kScaleA = 1 / (2 * kA2 * (kA2 - kB2));
constexpr double kScaleB = 1 / (2 * kB2 * (kB2 - kA2));

HWY_INLINE V constant(double value) { return hn::Set(D(), static_cast<float>(value)); }

// A line's places are `in_step` floats apart, what it becomes `out_step`.
struct DataLine {
  static constexpr int kIn = 6, kOut = 6;
  static HWY_INLINE void turn(const float* HWY_RESTRICT in, int64_t in_step, float* HWY_RESTRICT out,
                              int64_t out_step) {
    const D d;
    const V d0 = hn::Load(d, in), d1 = hn::Load(d, in + in_step), d2 = hn::Load(d, in + 2 * in_step),
            d3 = hn::Load(d, in + 3 * in_step), d4 = hn::Load(d, in + 4 * in_step),
            d5 = hn::Load(d, in + 5 * in_step);
    const V a = constant(kA), b = constant(kB), a2 = constant(kA2), b2 = constant(kB2);
    const V even_a = hn::NegMulAdd(b2, d2, d4), odd_a = hn::NegMulAdd(b2, d1, d3);
    const V even_b = hn::NegMulAdd(a2, d2, d4), odd_b = hn::NegMulAdd(a2, d1, d3);
    hn::Store(hn::NegMulAdd(a2, hn::NegMulAdd(b2, d0, d2), even_a), d, out);
    hn::Store(hn::MulAdd(a, odd_a, even_a), d, out + out_step);
    hn::Store(hn::NegMulAdd(a, odd_a, even_a), d, out + 2 * out_step);
    hn::Store(hn::MulAdd(b, odd_b, even_b), d, out + 3 * out_step);
    hn::Store(hn::NegMulAdd(b, odd_b, even_b), d, out + 4 * out_step);
    hn::Store(hn::NegMulAdd(a2, odd_a, hn::NegMulAdd(b2, d3, d5)), d, out + 5 * out_step);
  }
};

struct KernelLine {
  static constexpr int kIn = 3, kOut = 6;
  static HWY_INLINE void turn(const float* HWY_RESTRICT in, int64_t in_step, float* HWY_RESTRICT out,
                              int64_t out_step) {
    const D d;
    const V g0 = hn::Load(d, in), g1 = hn::Load(d, in + in_step), g2 = hn::Load(d, in + 2 * in_step);
    const V a = constant(kA), b = constant(kB), scale_a = constant(kScaleA), scale_b = constant(kScaleB);
    const V even_a = hn::MulAdd(constant(kA2), g2, g0), even_b = hn::MulAdd(constant(kB2), g2, g0);
    hn::Store(hn::Mul(constant(kScale0), g0), d, out);
    hn::Store(hn::Mul(scale_a, hn::MulAdd(a, g1, even_a)), d, out + out_step);
    hn::Store(hn::Mul(scale_a, hn::NegMulAdd(a, g1, even_a)), d, out + 2 * out_step);
    hn::Store(hn::Mul(scale_b, hn::MulAdd(b, g1, even_b)), d, out + 3 * out_step);
    hn::Store(hn::Mul(scale_b, hn::NegMulAdd(b, g1, even_b)), d, out + 4 * out_step);
    hn::Store(g2, d, out + 5 * out_step);
  }
};

struct WindowLine {
  static constexpr int kIn = 4, kOut = 6;
  static HWY_INLINE void turn(const float* HWY_RESTRICT in, int64_t in_step, float* HWY_RESTRICT out,
                              int64_t out_step) {
    const D d;
    const V r0 = hn::Load(d, in), r1 = hn::Load(d, in + in_step), r2 = hn::Load(d, in + 2 * in_step),
            r3 = hn::Load(d, in + 3 * in_step);
    const V a = constant(kA), b = constant(kB), a2 = constant(kA2), b2 = constant(kB2);
    const V even_a = hn::MulAdd(a2, r2, r0), odd_a = hn::MulAdd(a2, r3, r1);
    const V even_b = hn::MulAdd(b2, r2, r0), odd_b = hn::MulAdd(b2, r3, r1);
    hn::Store(r0, d, out);
    hn::Store(hn::MulAdd(a, odd_a, even_a), d, out + out_step);
    hn::Store(hn::NegMulAdd(a, odd_a, even_a), d, out + 2 * out_step);
    hn::Store(hn::MulAdd(b, odd_b, even_b), d, out + 3 * out_step);
    hn::Store(hn::NegMulAdd(b, odd_b, even_b), d, out + 4 * out_step);
    hn::Store(r3, d, out + 5 * out_step);
  }
};

struct ResultLine {
  static constexpr int kIn = 6, kOut = 4;
  static HWY_INLINE void turn(const float* HWY_RESTRICT in, int64_t in_step, float* HWY_RESTRICT out,
                              int64_t out_step) {
    const D d;
    const V m1 = hn::Load(d, in + in_step), m2 = hn::Load(d, in + 2 * in_step),
            m3 = hn::Load(d, in + 3 * in_step), m4 = hn::Load(d, in + 4 * in_step);
    const V even_a = hn::Add(m1, m2), odd_a = hn::Sub(m1, m2);
    const V even_b = hn::Add(m3, m4), odd_b = hn::Sub(m3, m4);
    const V a = constant(kA), b = constant(kB), a2 = constant(kA2), b2 = constant(kB2);
    hn::Store(hn::Add(hn::Load(d, in), hn::Add(even_a, even_b)), d, out);
    hn::Store(hn::MulAdd(a, odd_a, hn::Mul(b, odd_b)), d, out + out_step);
    hn::Store(hn::MulAdd(a2, even_a, hn::Mul(b2, even_b)), d, out + 2 * out_step);
    const V last = hn::MulAdd(constant(kB2 * kB), odd_b, hn::Load(d, in + 5 * in_step));
    hn::Store(hn::MulAdd(constant(kA2 * kA), odd_a, last), d, out + 3 * out_step);
  }
};

struct GradientLine {
  static constexpr int kIn = 6, kOut = 3;
  static HWY_INLINE void turn(const float* HWY_RESTRICT in, int64_t in_step, float* HWY_RESTRICT out,
                              int64_t out_step) {
    const D d;
    const V m1 = hn::Load(d, in + in_step), m2 = hn::Load(d, in + 2 * in_step),
            m3 = hn::Load(d, in + 3 * in_step), m4 = hn::Load(d, in + 4 * in_step);
    const V scale_a = constant(kScaleA), scale_b = constant(kScaleB);
    const V even_a = hn::Mul(scale_a, hn::Add(m1, m2)), odd_a = hn::Mul(scale_a, hn::Sub(m1, m2));
    const V even_b = hn::Mul(scale_b, hn::Add(m3, m4)), odd_b = hn::Mul(scale_b, hn::Sub(m3, m4));
    hn::Store(hn::MulAdd(constant(kScale0), hn::Load(d, in), hn::Add(even_a, even_b)), d, out);
    hn::Store(hn::MulAdd(constant(kA), odd_a, hn::Mul(constant(kB), odd_b)), d, out + out_step);
    const V last = hn::MulAdd(constant(kB2), even_b, hn::Load(d, in + 5 * in_step));
    hn::Store(hn::MulAdd(constant(kA2), even_a, last), d, out + 2 * out_step);
  }
};

// Columns first, then rows.
template <class Line>
HWY_INLINE void turn_tile(const float* in, int64_t in_row, int64_t in_column, float* out, int64_t out_row,
                          int64_t out_column) {
  const D d;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN float between[Line::kIn * Line::kOut * hn::MaxLanes(d)];
  for (int64_t column = 0; column < Line::kIn; ++column)
    Line::turn(in + column * in_column, in_row, between + column * n, Line::kIn * n);
  for (int64_t row = 0; row < Line::kOut; ++row)
    Line::turn(between + row * Line::kIn * n, n, out + row * out_row, out_column);
}

template <class Line>
HWY_INLINE void turn_tiles(const WinogradTiles& t) {
  for (int64_t i = 0; i < t.tiles; ++i)
    turn_tile<Line>(t.in + i * t.in_tile, t.in_row, t.in_column, t.out + i * t.out_tile, t.out_row,
                    t.out_column);
}

void kernel(const WinogradTiles& t) { turn_tiles<KernelLine>(t); }
void window(const WinogradTiles& t) { turn_tiles<WindowLine>(t); }
void gradient(const WinogradTiles& t) { turn_tiles<GradientLine>(t); }

// Neighbours share two columns, which are transformed once.
void data(const WinogradTiles& t) {
  const D d;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  constexpr int64_t kTilesAtOnce = 8, kColumns = 4 * kTilesAtOnce + 2;
  HWY_ALIGN float between[kColumns * 6 * hn::MaxLanes(d)];
  for (int64_t first = 0; first < t.tiles; first += kTilesAtOnce) {
    const int64_t count = std::min(kTilesAtOnce, t.tiles - first);
    const float* in = t.in + first * t.in_tile;
    for (int64_t column = 0; column < 4 * count + 2; ++column)
      DataLine::turn(in + column * t.in_column, t.in_row, between + column * 6 * n, n);
    float* out = t.out + first * t.out_tile;
    for (int64_t i = 0; i < count; ++i, out += t.out_tile)
      for (int64_t row = 0; row < 6; ++row)
        DataLine::turn(between + (4 * i * 6 + row) * n, 6 * n, out + row * t.out_row, t.out_column);
  }
}

void result(const WinogradTiles& t, int64_t last_columns) {
  const D d;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  WinogradTiles whole = t;
  if (last_columns < 4) --whole.tiles;
  turn_tiles<ResultLine>(whole);
  if (whole.tiles == t.tiles) return;
  HWY_ALIGN float last[16 * hn::MaxLanes(d)];
  turn_tile<ResultLine>(t.in + whole.tiles * t.in_tile, t.in_row, t.in_column, last, 4 * n, n);
  for (int64_t row = 0; row < 4; ++row)
    for (int64_t column = 0; column < last_columns; ++column)
      hn::Store(hn::Load(d, last + (row * 4 + column) * n), d,
                t.out + whole.tiles * t.out_tile + row * t.out_row + column * t.out_column);
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {

RG_EXPORT(RG_CHOSEN_TARGET, data)
RG_EXPORT(RG_CHOSEN_TARGET, kernel)
RG_EXPORT(RG_CHOSEN_TARGET, window)
RG_EXPORT(RG_CHOSEN_TARGET, result)
RG_EXPORT(RG_CHOSEN_TARGET, gradient)

void winograd_data(const WinogradTiles& tiles) { chosen_data()(tiles); }
void winograd_kernel(const WinogradTiles& tiles) { chosen_kernel()(tiles); }
void winograd_window(const WinogradTiles& tiles) { chosen_window()(tiles); }
void winograd_result(const WinogradTiles& tiles, int64_t last_columns) {
  chosen_result()(tiles, last_columns);
}
void winograd_gradient(const WinogradTiles& tiles) { chosen_gradient()(tiles); }

}  // namespace retrograd::kernels::cpu
#endif
