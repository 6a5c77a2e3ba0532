// SPDX-License-Identifier: Apache-2.0
// One instruction set only, and one that Debian's Highway does not know: intrinsics.
#include "kernels/cpu/dense/cell_pairs.h"

#include <cstdlib>
#include <string_view>
#include <type_traits>

#include "kernels/cpu/bf16_vectors.h"
#include "kernels/cpu/dense/tile_rows.h"
#include "kernels/cpu/targets.h"

#ifdef RG_BF16

namespace retrograd::kernels::cpu {
namespace {

// Where sums go that are rounded to BF16: to nearest, ties to even.
template <int kVectors>
class Rounded {
 public:
  RG_BF16 explicit Rounded(const TileProduct& t)
      : out_(t.rounded), stride_(t.rounded_stride), last_(t.columns - (kVectors - 1) * 16) {}
  // A masked store takes several times as long as a plain one.
  RG_BF16 inline void store(int64_t row, __m512 c, __m512 e) const {
    uint16_t* out = out_ + row * stride_;
    if (kVectors > 1) {
      store(out, c, 16);
      out += 16;
    }
    store(out, kVectors > 1 ? e : c, last_);
  }

 private:
  RG_BF16 static inline void store(uint16_t* out, __m512 sums, int64_t count) {
    const auto numbers = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(sums));
    if (count == 16)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), numbers);
    else if (count == 8)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_castsi256_si128(numbers));
    else
      _mm256_mask_storeu_epi16(out, static_cast<__mmask16>((1 << count) - 1), numbers);
  }
  uint16_t* out_;
  int64_t stride_, last_;
};

// As in tile_product.cpp, which says why accumulators have names.
template <class Rows, int kRows, int kVectors, bool kListed>
RG_BF16 void product(const TileProduct& t) {
  const float* const start = t.first_sums();
  const int64_t start_stride = t.first_sums_stride();
#define RG_DECLARE(i)                                                        \
  [[maybe_unused]] __m512 c##i = _mm512_setzero_ps(), e##i = c##i;           \
  if (kRows > i && start != nullptr) {                                       \
    c##i = _mm512_loadu_ps(start + i * start_stride);                        \
    if (kVectors > 1) e##i = _mm512_loadu_ps(start + i * start_stride + 16); \
  }
  RG_TILE_ROWS(RG_DECLARE)
#undef RG_DECLARE
  Rows rows(t);
  const float* b = t.b;
  for (int64_t o = t.outer; o > 0; --o) {
    forget_fields();
    const int64_t* offset = t.offsets;
    const int64_t* const end = offset + t.inner;
    // One register fewer than a second pointer: that one would be the one too many.
    [[maybe_unused]] const int64_t to_b = kListed ? t.b_offsets - offset : 0;
    for (; offset != end; ++offset) {
      const auto at = rows.at(*offset);
      const float* row = kListed ? b + offset[to_b] : b;
      const __m512bh b0 = load_cells(row);
      [[maybe_unused]] const __m512bh b1 = kVectors > 1 ? load_cells(row + 16) : b0;
      if (!kListed) b += kVectors * 16;
#define RG_MULTIPLY(i)                                                \
  if constexpr (kRows > i) {                                          \
    const __m512bh a = broadcast_cell(at.template get<i>());          \
    c##i = _mm512_dpbf16_ps(c##i, a, b0);                             \
    if constexpr (kVectors > 1) e##i = _mm512_dpbf16_ps(e##i, a, b1); \
  }
      RG_TILE_ROWS(RG_MULTIPLY)
#undef RG_MULTIPLY
    }
    if (kListed) b += t.b_outer_stride;
    rows.advance(t.outer_stride);
  }
  if (t.rounded != nullptr) {
    const Rounded<kVectors> rounded(t);
#define RG_ROUND(i) \
  if constexpr (kRows > i) rounded.store(i, c##i, e##i);
    RG_TILE_ROWS(RG_ROUND)
#undef RG_ROUND
    return;
  }
#define RG_STORE(i)                                                                \
  if constexpr (kRows > i) {                                                       \
    _mm512_storeu_ps(t.c + i * t.c_stride, c##i);                                  \
    if constexpr (kVectors > 1) _mm512_storeu_ps(t.c + i * t.c_stride + 16, e##i); \
  }
  RG_TILE_ROWS(RG_STORE)
#undef RG_STORE
}

// The tile of as many rows as t has, of those from kRows down.
template <int kRows, int kVectors, bool kListed>
void with_rows(const TileProduct& t) {
  if constexpr (kRows > 1)
    if (t.rows < kRows) return with_rows<kRows - 1, kVectors, kListed>(t);
  constexpr int kInList = kVectors == 1 ? kMostTileRows : kTileRows;
  using Rows = std::conditional_t<(kRows > kInList), SpacedRows<kRows>, ListedRows<kRows>>;
  product<Rows, kRows, kVectors, kListed>(t);
}

// Halves of 32 cells woven: 0, 32, 1, 33, … and 16, 48, 17, …
struct Weave {
  __m512i lower, upper;
  RG_BF16 Weave() {
    const __m512i even = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    lower = _mm512_or_si512(even, _mm512_slli_epi32(_mm512_add_epi32(even, _mm512_set1_epi32(32)), 16));
    upper = _mm512_add_epi16(lower, _mm512_set1_epi16(16));
  }
};

constexpr int64_t kRowsAhead = 8;  // fetched meanwhile

template <bool kLow, bool kHigh>
RG_BF16 CellFacts pair(const PairedRows& p) {
  const Weave weave;
  Extremes seen;
  // Rows that follow each other are one.
  const bool joined = p.step == p.count && p.pitch == p.count;
  const int64_t rows = joined ? 1 : p.rows, count = joined ? p.rows * p.count : p.count;
  for (int64_t r = 0; r < rows; ++r) {
    const std::byte* const low = kLow ? p.low + 2 * r * p.step : nullptr;
    const std::byte* const high = kHigh ? p.high + 2 * r * p.step : nullptr;
    float* const out = p.out + r * p.pitch;
    // Rows far apart begin in lines that the machine does not foresee. There need not be one.
    if (kLow) _mm_prefetch(low + 2 * kRowsAhead * p.step, _MM_HINT_T0);
    if (kHigh) _mm_prefetch(high + 2 * kRowsAhead * p.step, _MM_HINT_T0);
    int64_t i = 0;
    for (; i + 32 <= count; i += 32) {
      const __m512i l = kLow ? _mm512_loadu_si512(low + 2 * i) : _mm512_setzero_si512();
      const __m512i h = kHigh ? _mm512_loadu_si512(high + 2 * i) : _mm512_setzero_si512();
      if (kLow) seen.look(l);
      if (kHigh) seen.look(h);
      _mm512_storeu_si512(out + i, _mm512_permutex2var_epi16(l, weave.lower, h));
      _mm512_storeu_si512(out + i + 16, _mm512_permutex2var_epi16(l, weave.upper, h));
    }
    // A masked store takes several times as long as a plain one.
    for (; i + 8 <= count; i += 8) {
      const __m128i l =
          kLow ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(low + 2 * i)) : _mm_setzero_si128();
      const __m128i h =
          kHigh ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(high + 2 * i)) : _mm_setzero_si128();
      const __m256i cells =
          _mm256_or_si256(_mm256_cvtepu16_epi32(l), _mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
      seen.look(_mm512_maskz_broadcast_i64x4(0xFF, cells));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), cells);
    }
    if (const int64_t rest = count - i; rest > 0) {
      const __mmask32 live = first_cells(rest);
      const __m512i l = kLow ? _mm512_maskz_loadu_epi16(live, low + 2 * i) : _mm512_setzero_si512();
      const __m512i h = kHigh ? _mm512_maskz_loadu_epi16(live, high + 2 * i) : _mm512_setzero_si512();
      seen.look(l);
      seen.look(h);
      _mm512_mask_storeu_epi32(out + i, first_cells(rest), _mm512_permutex2var_epi16(l, weave.lower, h));
    }
  }
  return seen.facts(p.type);
}

RG_BF16 CellFacts judge(const float* cells, int64_t step, int64_t rows, int64_t count, CellType type) {
  Extremes seen;
  for (int64_t r = 0; r < rows; ++r, cells += step) {
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) seen.look(_mm512_loadu_si512(cells + i));
    if (i < count) seen.look(_mm512_maskz_loadu_epi32(first_cells(count - i), cells + i));
  }
  return seen.facts(type);
}

}  // namespace

// AMD's processors start as many of these products a cycle as FP32 ones; Intel's half as many, and there FP32
// on converted numbers measured 1.5 times as fast.
bool has_bf16_products() {
  static const bool has = [] {
    if (bf16_use() == Bf16Use::kNever || !std::string_view(target_name()).starts_with("AVX3")) return false;
    return __builtin_cpu_supports("avx512bf16") != 0 &&
           (bf16_use() == Bf16Use::kAlways || __builtin_cpu_is("amd") != 0);
  }();
  return has;
}

void bf16_tile_product(const TileProduct& t) {
  const bool wide = t.width != 16;
  constexpr int kTall = kTallTileRows;
  if (t.b_offsets == nullptr) return wide ? with_rows<kTall, 2, false>(t) : with_rows<kTall, 1, false>(t);
  return wide ? with_rows<kTall, 2, true>(t) : with_rows<kTall, 1, true>(t);
}

CellFacts pair_rows(const PairedRows& rows) {
  if (rows.low == nullptr) return pair<false, true>(rows);
  return rows.high == nullptr ? pair<true, false>(rows) : pair<true, true>(rows);
}
CellFacts judge_cells(const float* cells, int64_t step, int64_t rows, int64_t count, CellType type) {
  return step == count ? judge(cells, 0, 1, rows * count, type) : judge(cells, step, rows, count, type);
}

}  // namespace retrograd::kernels::cpu

#else

namespace retrograd::kernels::cpu {

bool has_bf16_products() { return false; }
void bf16_tile_product(const TileProduct&) { std::abort(); }
CellFacts pair_rows(const PairedRows&) { std::abort(); }
CellFacts judge_cells(const float*, int64_t, int64_t, int64_t, CellType) { std::abort(); }

}  // namespace retrograd::kernels::cpu

#endif
