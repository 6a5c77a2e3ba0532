// SPDX-License-Identifier: Apache-2.0
// The tile product, once for every instruction set.
//
// Accumulators are named variables, one list for all tiles: g++ 12 leaves an array of them on the stack in
// some instantiations and not in others. Measured from L1 on a 3.7 GHz Zen 4 core: 116 GFLOP/s of a peak of
// 118.
#include "kernels/cpu/dense/tile_product.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/dense/tile_product.cpp"
#include "hwy/cache_control.h"
#include "kernels/cpu/all_targets.h"
#include "kernels/cpu/dense/tile_rows.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/unroll-inl.h"
#include "kernels/cpu/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = RG_VECTORS;
using Full = hn::ScalableTag<float>;
using Half = hn::Half<Full>;

constexpr int kTall = kShape.tall_tile_rows();
static_assert(has_lanes(2 * hn::MaxLanes(Full()), kShape.tile_widths()[0]));
static_assert(has_lanes(hn::MaxLanes(Half()), kShape.tile_widths()[2]));

// How rows of b are read: one after the other, perhaps with others fetched meanwhile, where b_offsets says,
// or there and stored one after the other.
enum class Reads { kInOrder, kFetching, kListed, kCopied };

// Where a masked store touches nothing beside the mask, and is quick.
constexpr bool kMasks = RG_HAS_AVX512;

// The first columns of a row.
template <int kVectors, class D>
HWY_INLINE void store_columns(D d, hn::Vec<D> c, hn::Vec<D> e, float* out, int64_t columns) {
  const int64_t n = static_cast<int64_t>(hn::Lanes(d));
  if constexpr (kMasks) {
    hn::BlendedStore(c, hn::FirstN(d, static_cast<size_t>(std::min(columns, n))), d, out);
    if (kVectors > 1 && columns > n)
      hn::BlendedStore(e, hn::FirstN(d, static_cast<size_t>(columns - n)), d, out + n);
  } else {
    float row[2 * hn::MaxLanes(D())];
    hn::StoreU(c, d, row);
    if (kVectors > 1) hn::StoreU(e, d, row + n);
    std::memcpy(static_cast<void*>(out), row, static_cast<size_t>(columns) * sizeof(float));
  }
}

// kVectors (1 or 2) vectors of D a row.
template <class D, class Rows, int kRows, int kVectors, Reads kReads>
HWY_NOINLINE void product(const TileProduct& t) {
  using V = hn::Vec<D>;
  const D d;
  const int64_t n = static_cast<int64_t>(hn::Lanes(d));
  const float* const start = t.first_sums();
  const int64_t start_stride = t.first_sums_stride();
  const bool column = t.start_column && !t.accumulate;
#define RG_DECLARE(i)                                                                         \
  [[maybe_unused]] V c##i = hn::Zero(d), e##i = c##i;                                         \
  if (kRows > i && start != nullptr) {                                                        \
    c##i = column ? hn::Set(d, float_at(start + i)) : hn::LoadU(d, start + i * start_stride); \
    if (kVectors > 1) e##i = column ? c##i : hn::LoadU(d, start + i * start_stride + n);      \
  }
  RG_TILE_ROWS(RG_DECLARE)
#undef RG_DECLARE
  constexpr bool kListed = kReads == Reads::kListed || kReads == Reads::kCopied;
  Rows rows(t);
  const float* HWY_RESTRICT b = t.b;
  [[maybe_unused]] float* HWY_RESTRICT copy = t.b_copy;
  [[maybe_unused]] const int64_t ahead = t.b_ahead;
  [[maybe_unused]] const float* next = t.next;
  for (int64_t o = t.outer; o > 0; --o) {
    forget_fields();
    const int64_t* HWY_RESTRICT offset = t.offsets;
    const int64_t* const end = offset + t.inner;
    // One register fewer than a second pointer: that one would be the one too many.
    [[maybe_unused]] const int64_t to_b = kListed ? t.b_offsets - offset : 0;
    for (; offset != end; ++offset) {
      const auto at = rows.at(*offset);
      const float* row = kListed ? b + offset[to_b] : b;
      const V b0 = hn::LoadU(d, row);
      [[maybe_unused]] const V b1 = kVectors > 1 ? hn::LoadU(d, row + n) : b0;
      if (!kListed) b += kVectors * n;
      if constexpr (kReads == Reads::kFetching) {
        hwy::Prefetch(next);
        hwy::Prefetch(next + n);
        next += t.next_stride;
      }
      if constexpr (kReads == Reads::kCopied) {
        hwy::Prefetch(row + ahead);
        hwy::Prefetch(row + ahead + n);
        hn::StoreU(b0, d, copy);
        if constexpr (kVectors > 1) hn::StoreU(b1, d, copy + n);
        copy += kVectors * n;
      }
#define RG_MULTIPLY(i)                                          \
  if constexpr (kRows > i) {                                    \
    const V a = hn::Set(d, at.template get<i>());               \
    c##i = hn::MulAdd(a, b0, c##i);                             \
    if constexpr (kVectors > 1) e##i = hn::MulAdd(a, b1, e##i); \
  }
      RG_TILE_ROWS(RG_MULTIPLY)
#undef RG_MULTIPLY
    }
    if (kListed) b += t.b_outer_stride;
    rows.advance(t.outer_stride);
  }
  if (kVectors > 1 && t.stream) {
#define RG_STREAM(i)                               \
  if constexpr (kRows > i) {                       \
    hn::Stream(c##i, d, t.c + i * t.c_stride);     \
    hn::Stream(e##i, d, t.c + i * t.c_stride + n); \
  }
    RG_TILE_ROWS(RG_STREAM)
#undef RG_STREAM
    return;
  }
  if (t.columns > 0) {
#define RG_STORE_COLUMNS(i) \
  if constexpr (kRows > i) store_columns<kVectors>(d, c##i, e##i, t.c + i * t.c_stride, t.columns);
    RG_TILE_ROWS(RG_STORE_COLUMNS)
#undef RG_STORE_COLUMNS
    return;
  }
#define RG_STORE(i)                                                            \
  if constexpr (kRows > i) {                                                   \
    hn::StoreU(c##i, d, t.c + i * t.c_stride);                                 \
    if constexpr (kVectors > 1) hn::StoreU(e##i, d, t.c + i * t.c_stride + n); \
  }
  RG_TILE_ROWS(RG_STORE)
#undef RG_STORE
}

// The tile of as many rows as t has, of those from kRows down.
template <class D, int kRows, int kVectors, Reads kReads>
void with_rows(const TileProduct& t) {
  if constexpr (kRows > 1)
    if (t.rows < kRows) return with_rows<D, kRows - 1, kVectors, kReads>(t);
  constexpr int kInList = kVectors == 1 ? kMostTileRows : kTileRows;
  using Rows = std::conditional_t<(kRows > kInList), SpacedRows<kRows>, ListedRows<kRows>>;
  product<D, Rows, kRows, kVectors, kReads>(t);
}

template <Reads kReads>
void with_width(const TileProduct& t) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(Full()));
  if (t.width == 0 || t.width == 2 * lanes) return with_rows<Full, kTall, 2, kReads>(t);
  constexpr int kMost = kShape.tile_rows(kShape.floats);
  if (t.width == lanes) return with_rows<Full, kMost, 1, kReads>(t);
  return with_rows<Half, kMost, 1, kReads>(t);
}

void tile_product(const TileProduct& t) {
  if (t.b_offsets == nullptr && t.next != nullptr) return with_rows<Full, kTall, 2, Reads::kFetching>(t);
  if (t.b_offsets == nullptr) return with_width<Reads::kInOrder>(t);
  if (t.b_copy == nullptr) return with_width<Reads::kListed>(t);
  return with_rows<Full, kTall, 2, Reads::kCopied>(t);
}
void end_stream() { hwy::FlushStream(); }
}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {

RG_EXPORT(RG_WIDEST, tile_product)
RG_EXPORT(RG_WIDEST, end_stream)

void tile_product(const TileProduct& tile) { chosen_tile_product()(tile); }
void end_stream() { chosen_end_stream()(); }

}  // namespace retrograd::kernels::cpu
#endif
