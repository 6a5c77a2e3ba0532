// SPDX-License-Identifier: Apache-2.0
// As cell_tiles.cpp: one instruction set only, intrinsics.
#include "kernels/cpu/dense/cell_layout.h"

#include <cstdlib>
#include <cstring>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <immintrin.h>

#define RG_WORDS __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

namespace retrograd::kernels::cpu {
namespace {

constexpr int64_t kBytes = 2;

inline __mmask32 first_words(int64_t count) {
  return count >= 32 ? ~__mmask32{0} : (__mmask32{1} << count) - 1;
}
inline __mmask16 first_cells(int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xFFFF : (1 << count) - 1);
}

// Remembers whether it has seen a number that tiles would not multiply exactly.
struct Seen {
  __m512i magnitude, lowest, span;
  __mmask32 found = 0;
  RG_WORDS explicit Seen(CellType type) {
    magnitude = _mm512_set1_epi16(0x7FFF);
    lowest = _mm512_set1_epi16(static_cast<int16_t>(smallest_of(type)));
    span = _mm512_set1_epi16(static_cast<int16_t>(infinity_of(type) - smallest_of(type)));
  }
  RG_WORDS inline void look(__m512i words) {
    const __m512i values = _mm512_and_si512(words, magnitude);
    // Those below the smallest wrap around to large ones.
    const __mmask32 odd = _mm512_cmpge_epu16_mask(_mm512_sub_epi16(values, lowest), span);
    found |= _mm512_mask_test_epi16_mask(odd, values, values);
  }
};

RG_WORDS bool copy_side_by_side(const std::byte* source, int64_t count, uint16_t* out, CellType type) {
  Seen seen(type);
  for (int64_t i = 0; i < count; i += 32) {
    const __mmask32 live = first_words(count - i);
    const __m512i words = _mm512_maskz_loadu_epi16(live, source + i * kBytes);
    seen.look(words);
    _mm512_mask_storeu_epi16(out + i, live, words);
  }
  return seen.found == 0;
}

// Cells whose low halves are wanted. The last one is half outside.
RG_WORDS bool copy_every_other(const std::byte* source, int64_t count, uint16_t* out, CellType type) {
  Seen seen(type);
  const __m512i low = _mm512_set1_epi32(0xFFFF);
  for (int64_t i = 0; i < count; i += 16) {
    const int64_t rest = count - i;
    const __m512i cells =
        _mm512_and_si512(_mm512_maskz_loadu_epi16(first_words(2 * rest - 1), source + 2 * i * kBytes), low);
    seen.look(cells);
    _mm256_mask_storeu_epi16(out + i, first_cells(rest),
                             _mm512_maskz_cvtepi32_epi16(first_cells(rest), cells));
  }
  return seen.found == 0;
}

bool copy_apart(const std::byte* source, int64_t step, int64_t count, uint16_t* out, CellType type) {
  bool sound = true;
  for (int64_t i = 0; i < count; i += 32) {
    uint16_t words[32];
    const int64_t part = count - i < 32 ? count - i : 32;
    for (int64_t j = 0; j < part; ++j) std::memcpy(words + j, source + (i + j) * step * kBytes, kBytes);
    sound &= copy_side_by_side(reinterpret_cast<const std::byte*>(words), part, out + i, type);
  }
  return sound;
}

template <bool kLow, bool kHigh>
RG_WORDS inline void pair_two(const std::byte* low, const std::byte* high, int64_t channels, float* out,
                              Seen& seen) {
  for (int64_t c = 0; c < channels; c += 16) {
    const __mmask16 live = first_cells(channels - c);
    __m512i cells = _mm512_setzero_si512();
    if constexpr (kLow)
      cells = _mm512_maskz_cvtepu16_epi32(live, _mm256_maskz_loadu_epi16(live, low + c * kBytes));
    if constexpr (kHigh)
      cells = _mm512_or_si512(
          cells,
          _mm512_maskz_slli_epi32(
              live, _mm512_maskz_cvtepu16_epi32(live, _mm256_maskz_loadu_epi16(live, high + c * kBytes)),
              16));
    seen.look(cells);
    _mm512_mask_storeu_epi32(out + c, live, cells);
  }
}

RG_WORDS bool pair_all(const PairedPlaces& p) {
  Seen seen(p.type);
  const int64_t step = p.step * kBytes;
  const std::byte* from = p.source;
  int64_t place = p.begin;
  if (place < p.end && place % 2 != 0) {
    pair_two<false, true>(nullptr, from, p.channels, p.out + place / 2 * p.pitch, seen);
    from += step;
    ++place;
  }
  float* out = p.out + place / 2 * p.pitch;
  for (; place + 1 < p.end; place += 2, from += 2 * step, out += p.pitch)
    pair_two<true, true>(from, from + step, p.channels, out, seen);
  if (place < p.end) pair_two<true, false>(from, nullptr, p.channels, out, seen);
  return seen.found == 0;
}

}  // namespace

bool copy_places(const std::byte* source, int64_t step, int64_t count, uint16_t* out, CellType type) {
  if (step == 1) return copy_side_by_side(source, count, out, type);
  if (step == 2) return copy_every_other(source, count, out, type);
  return copy_apart(source, step, count, out, type);
}
bool pair_places(const PairedPlaces& places) { return pair_all(places); }

}  // namespace retrograd::kernels::cpu

#else

namespace retrograd::kernels::cpu {

bool copy_places(const std::byte*, int64_t, int64_t, uint16_t*, CellType) { std::abort(); }
bool pair_places(const PairedPlaces&) { std::abort(); }

}  // namespace retrograd::kernels::cpu

#endif
