// SPDX-License-Identifier: Apache-2.0
// Where the scalars of a tile's rows lie, for tile_product.cpp and cell_pairs.cpp. Plain code, always
// inlined: it becomes part of whatever instruction set it is used in.
#pragma once

#include <cstdint>

#include "kernels/cpu/dense/tile_product.h"
#include "kernels/cpu/float_at.h"

// DO(i) for every row that a tile can have; those that may lie anywhere first.
#define RG_LISTED_ROWS(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define RG_TILE_ROWS(DO) RG_LISTED_ROWS(DO) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13)

#if defined(__GNUC__)
#define RG_RESTRICT __restrict__
#else
#define RG_RESTRICT
#endif

namespace retrograd::kernels::cpu {

// Makes the compiler read what a tile says about itself again, for each step of the outer loop. Kept in
// registers it is too much: g++ 12 then puts some of it into vector registers, and what comes back from there
// waits behind all multiplications that are under way (a seventh of the time of 8 rows with a list, a
// fifteenth of that of 11).
RG_INLINE void forget_fields() {
#if defined(__GNUC__)
  asm volatile("" ::: "memory");
#endif
}

static_assert(kTallTileRows == 14 && kMostTileRows == 8);  // what the lists of rows above say

// Scalars of a tile's rows, from pointers: any places, as many as there are registers for pointers.
template <int kRows>
class ListedRows {
 public:
  RG_INLINE explicit ListedRows(const TileProduct& t) {
#define RG_TAKE(i) a##i##_ = t.a[kRows > i ? i : 0];
    RG_LISTED_ROWS(RG_TAKE)
#undef RG_TAKE
  }
  RG_INLINE void advance(int64_t step) {
#define RG_ADVANCE(i) a##i##_ += step;
    RG_LISTED_ROWS(RG_ADVANCE)
#undef RG_ADVANCE
  }
  struct At {
    const ListedRows& rows;
    int64_t offset;
    template <int kRow>
    RG_INLINE float get() const {
#define RG_GET(k) \
  if constexpr (kRow == k) return float_at(rows.a##k##_ + offset);
      RG_LISTED_ROWS(RG_GET)
#undef RG_GET
      return 0;
    }
  };
  RG_INLINE At at(int64_t offset) const { return {*this, offset}; }

 private:
#define RG_NAME(i) const float* RG_RESTRICT a##i##_;
  RG_LISTED_ROWS(RG_NAME)
#undef RG_NAME
};

// Scalars of a tile's rows at equal distances: two pointers and multiples of the distance serve 14 rows. The
// compiler must not see that these are multiples, or it keeps 14 pointers on the stack.
template <int kRows>
class SpacedRows {
 public:
  RG_INLINE explicit SpacedRows(const TileProduct& t)
      : a_(t.a[0]), s1_(t.a_stride), s3_(3 * s1_), s5_(5 * s1_), s7_(7 * s1_) {
#if defined(__GNUC__)
    asm("" : "+r"(s1_), "+r"(s3_), "+r"(s5_), "+r"(s7_));
#endif
  }
  RG_INLINE void advance(int64_t step) { a_ += step; }
  struct At {
    const SpacedRows& rows;
    const float *RG_RESTRICT p, *RG_RESTRICT q;
    template <int kRow>
    RG_INLINE float get() const {
      const float* base = kRow < 7 ? p : q;
      constexpr int k = kRow % 7;
      if constexpr (k == 3) return float_at(base + rows.s3_);
      if constexpr (k == 5) return float_at(base + rows.s5_);
      if constexpr (k == 6) return float_at(base + 2 * rows.s3_);
      return float_at(base + k * rows.s1_);
    }
  };
  RG_INLINE At at(int64_t offset) const {
    const float* p = a_ + offset;
    const float* q = p + s7_;
#if defined(__GNUC__)
    asm("" : "+r"(q));
#endif
    return {*this, p, q};
  }

 private:
  const float* RG_RESTRICT a_;
  int64_t s1_, s3_, s5_, s7_;
};

}  // namespace retrograd::kernels::cpu
