// SPDX-License-Identifier: Apache-2.0
// One instruction set only, and one that Debian's Highway does not know: intrinsics.
#include "kernels/cpu/dense/bf16_pairs.h"

#include <cstdlib>
#include <string_view>
#include <type_traits>

#include "kernels/cpu/dense/tile_rows.h"
#include "kernels/cpu/targets.h"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <immintrin.h>

#define RG_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

namespace retrograd::kernels::cpu {
namespace {

RG_BF16 inline __m512bh load(const float* at) { return reinterpret_cast<__m512bh>(_mm512_loadu_ps(at)); }
RG_BF16 inline __m512bh broadcast(float cell) { return reinterpret_cast<__m512bh>(_mm512_set1_ps(cell)); }

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
      const __m512bh b0 = load(row);
      [[maybe_unused]] const __m512bh b1 = kVectors > 1 ? load(row + 16) : b0;
      if (!kListed) b += kVectors * 16;
#define RG_MULTIPLY(i)                                                \
  if constexpr (kRows > i) {                                          \
    const __m512bh a = broadcast(at.template get<i>());               \
    c##i = _mm512_dpbf16_ps(c##i, a, b0);                             \
    if constexpr (kVectors > 1) e##i = _mm512_dpbf16_ps(e##i, a, b1); \
  }
      RG_TILE_ROWS(RG_MULTIPLY)
#undef RG_MULTIPLY
    }
    if (kListed) b += t.b_outer_stride;
    rows.advance(t.outer_stride);
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

// Magnitudes from 1 up to that of 2^-50: neither 0 nor large enough.
constexpr int kSmallest = (127 - 50) << 7;

struct Numbers {
  __m512i magnitude, one, below;
};
RG_BF16 inline Numbers numbers() {
  return {_mm512_set1_epi16(0x7FFF), _mm512_set1_epi16(1), _mm512_set1_epi16(kSmallest - 1)};
}
RG_BF16 inline __mmask32 small_ones(const Numbers& n, __m512i cells) {
  const __m512i less =
      _mm512_sub_epi16(_mm512_and_si512(cells, n.magnitude), n.one);  // 0 becomes the largest
  return _mm512_cmplt_epu16_mask(less, n.below);
}
inline __mmask16 first_of(int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xFFFF : (1 << count) - 1);
}

RG_BF16 bool pair(const std::byte* low, const std::byte* high, int64_t count, float* out) {
  const Numbers n = numbers();
  __mmask32 small = 0;
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 live = first_of(count - i);
    const __m512i lower = _mm512_maskz_cvtepu16_epi32(live, _mm256_maskz_loadu_epi16(live, low + 2 * i));
    const __m512i upper = _mm512_maskz_cvtepu16_epi32(live, _mm256_maskz_loadu_epi16(live, high + 2 * i));
    const __m512i cells = _mm512_or_si512(lower, _mm512_maskz_slli_epi32(live, upper, 16));
    small |= small_ones(n, cells);
    _mm512_mask_storeu_epi32(out + i, live, cells);
  }
  return small == 0;
}

RG_BF16 bool are_large(const float* cells, int64_t count) {
  const Numbers n = numbers();
  __mmask32 small = 0;
  for (int64_t i = 0; i < count; i += 16)
    small |= small_ones(n, _mm512_maskz_loadu_epi32(first_of(count - i), cells + i));
  return small == 0;
}

RG_BF16 bool are_finite(const float* cells, int64_t count) {
  const __m512i infinity = _mm512_set1_epi16(0x7F80);
  __mmask32 found = 0;
  for (int64_t i = 0; i < count; i += 16) {
    const __m512i values = _mm512_maskz_loadu_epi32(first_of(count - i), cells + i);
    found |= _mm512_cmpeq_epi16_mask(_mm512_and_si512(values, infinity), infinity);
  }
  return found == 0;
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

bool pair_row(const std::byte* low, const std::byte* high, int64_t count, float* out) {
  return pair(low, high, count, out);
}
bool cells_are_large(const float* cells, int64_t count) { return are_large(cells, count); }
bool cells_are_finite(const float* cells, int64_t count) { return are_finite(cells, count); }

}  // namespace retrograd::kernels::cpu

#else

namespace retrograd::kernels::cpu {

bool has_bf16_products() { return false; }
void bf16_tile_product(const TileProduct&) { std::abort(); }
bool pair_row(const std::byte*, const std::byte*, int64_t, float*) { std::abort(); }
bool cells_are_large(const float*, int64_t) { std::abort(); }
bool cells_are_finite(const float*, int64_t) { std::abort(); }

}  // namespace retrograd::kernels::cpu

#endif
