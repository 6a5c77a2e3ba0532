// SPDX-License-Identifier: Apache-2.0
// The tile product, once for every instruction set.
//
// Accumulators are named variables, one list for all tiles: g++ 12 leaves an array of them on the stack in
// some instantiations and not in others. Measured from L1 on a 3.7 GHz Zen 4 core: 116 GFLOP/s of a peak of
// 118.
#include "kernels/cpu/tile_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/tile_product.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/targets.h"

// DO(i) for every row a tile can have.
#ifndef RG_TILE_ROWS
#define RG_TILE_ROWS(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#endif

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Full = hn::ScalableTag<float>;
using Half = hn::Half<Full>;

// kVectors (1 or 2) vectors of D a row. kListed: rows of b lie where b_offsets says.
template <class D, int kRows, int kVectors, bool kListed>
HWY_NOINLINE void product(const TileProduct& t) {
  using V = hn::Vec<D>;
  const D d;
  const int64_t n = static_cast<int64_t>(hn::Lanes(d));
#define RG_DECLARE(i)                                                \
  const float* HWY_RESTRICT a##i = t.a[kRows > i ? i : 0];           \
  [[maybe_unused]] V c##i = hn::Zero(d), e##i = c##i;                \
  if (kRows > i && t.accumulate) {                                   \
    c##i = hn::LoadU(d, t.c + i * t.c_stride);                       \
    if (kVectors > 1) e##i = hn::LoadU(d, t.c + i * t.c_stride + n); \
  }
  RG_TILE_ROWS(RG_DECLARE)
#undef RG_DECLARE
  const float* HWY_RESTRICT b = t.b;
  const int64_t* HWY_RESTRICT offsets = t.offsets;
  const int64_t* HWY_RESTRICT b_offsets = t.b_offsets;
  const int64_t inner = t.inner, step = t.outer_stride;
  for (int64_t o = t.outer; o > 0; --o) {
    for (int64_t j = 0; j < inner; ++j) {
      const int64_t at = offsets[j];
      const float* row = kListed ? b + b_offsets[j] : b;
      const V b0 = hn::LoadU(d, row);
      [[maybe_unused]] const V b1 = kVectors > 1 ? hn::LoadU(d, row + n) : b0;
      if (!kListed) b += kVectors * n;
#define RG_MULTIPLY(i)                                          \
  if constexpr (kRows > i) {                                    \
    const V a = hn::Set(d, a##i[at]);                           \
    c##i = hn::MulAdd(a, b0, c##i);                             \
    if constexpr (kVectors > 1) e##i = hn::MulAdd(a, b1, e##i); \
  }
      RG_TILE_ROWS(RG_MULTIPLY)
#undef RG_MULTIPLY
    }
    if (kListed) b += t.b_outer_stride;
#define RG_ADVANCE(i) a##i += step;
    RG_TILE_ROWS(RG_ADVANCE)
#undef RG_ADVANCE
  }
#define RG_STORE(i)                                                            \
  if constexpr (kRows > i) {                                                   \
    hn::StoreU(c##i, d, t.c + i * t.c_stride);                                 \
    if constexpr (kVectors > 1) hn::StoreU(e##i, d, t.c + i * t.c_stride + n); \
  }
  RG_TILE_ROWS(RG_STORE)
#undef RG_STORE
}

template <class D, int kVectors, bool kListed>
void with_rows(const TileProduct& t) {
  switch (t.rows) {
    case 1:
      return product<D, 1, kVectors, kListed>(t);
    case 2:
      return product<D, 2, kVectors, kListed>(t);
    case 3:
      return product<D, 3, kVectors, kListed>(t);
    case 4:
      return product<D, 4, kVectors, kListed>(t);
    case 5:
      return product<D, 5, kVectors, kListed>(t);
    case 6:
      return product<D, 6, kVectors, kListed>(t);
    case 7:
      if constexpr (kVectors == 1) return product<D, 7, kVectors, kListed>(t);
      return;
    default:
      if constexpr (kVectors == 1) return product<D, 8, kVectors, kListed>(t);
      return;
  }
}

template <bool kListed>
void with_width(const TileProduct& t) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(Full()));
  if (t.width == 0 || t.width == 2 * lanes) return with_rows<Full, 2, kListed>(t);
  if (t.width == lanes) return with_rows<Full, 1, kListed>(t);
  return with_rows<Half, 1, kListed>(t);
}

void tile_product(const TileProduct& t) {
  return t.b_offsets == nullptr ? with_width<false>(t) : with_width<true>(t);
}
int64_t vector_lanes() { return static_cast<int64_t>(hn::Lanes(Full())); }
int64_t half_lanes() { return static_cast<int64_t>(hn::Lanes(Half())); }
}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {
namespace {

HWY_EXPORT(tile_product);
HWY_EXPORT(vector_lanes);
HWY_EXPORT(half_lanes);

struct Chosen {
  void (*product)(const TileProduct&);
  std::array<int64_t, 3> widths;
};
const Chosen& chosen() {
  static const Chosen instance = [] {
    const int64_t lanes = RG_CHOSEN(vector_lanes)();
    return Chosen{RG_CHOSEN(tile_product), {2 * lanes, lanes, RG_CHOSEN(half_lanes)()}};
  }();
  return instance;
}

}  // namespace

int64_t tile_width() { return chosen().widths[0]; }
std::array<int64_t, 3> tile_widths() { return chosen().widths; }
int64_t fitting_tile_width(int64_t channels) {
  const auto& widths = chosen().widths;
  return channels <= widths[2] ? widths[2] : channels <= widths[1] ? widths[1] : widths[0];
}
int tile_rows(int64_t width) { return width == chosen().widths[0] ? kTileRows : kMostTileRows; }
void tile_product(const TileProduct& tile) { chosen().product(tile); }

}  // namespace retrograd::kernels::cpu
#endif
