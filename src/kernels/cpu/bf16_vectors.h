// SPDX-License-Identifier: Apache-2.0
// Vectors of BF16 numbers, in pairs: one instruction set only, and one that Debian's Highway does not know,
// so intrinsics. RG_BF16 goes before each function and behind the parameters of each lambda that uses them;
// it is not defined where they cannot be compiled.
#pragma once

#include "kernels/cpu/dense/cell_pairs.h"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <immintrin.h>

#define RG_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

namespace retrograd::kernels::cpu {

RG_BF16 inline __m512bh load_cells(const float* at) {
  return reinterpret_cast<__m512bh>(_mm512_loadu_ps(at));
}
RG_BF16 inline __m512bh broadcast_cell(float cell) {
  return reinterpret_cast<__m512bh>(_mm512_set1_ps(cell));
}

// Keeps the extremes of all magnitudes: below the smallest that is large enough, but for 0, or not finite.
struct Extremes {
  __m512i magnitude, one, lowest, highest;
  RG_BF16 Extremes() {
    magnitude = _mm512_set1_epi16(0x7FFF);
    one = _mm512_set1_epi16(1);
    lowest = _mm512_set1_epi16(-1);
    highest = _mm512_setzero_si512();
  }
  RG_BF16 inline void look(__m512i numbers) {
    const __m512i values = _mm512_and_si512(numbers, magnitude);
    lowest = _mm512_min_epu16(lowest, _mm512_sub_epi16(values, one));  // 0 becomes the largest
    highest = _mm512_max_epu16(highest, values);
  }
  RG_BF16 inline CellFacts facts(CellType type) const {
    const __m512i smallest = _mm512_set1_epi16(static_cast<int16_t>(smallest_of(type) - 1));
    const __m512i infinite = _mm512_set1_epi16(static_cast<int16_t>(infinity_of(type)));
    return {_mm512_cmplt_epu16_mask(lowest, smallest) == 0, _mm512_cmpge_epu16_mask(highest, infinite) == 0};
  }
};
RG_BF16 inline __mmask16 first_cells(int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xFFFF : (1 << count) - 1);
}

}  // namespace retrograd::kernels::cpu

#endif
