// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/few_channels/bf16_rows.h"

#include <cstdlib>
#include <type_traits>
#include <utility>

#include "kernels/cpu/bf16_vectors.h"
#include "kernels/cpu/float_at.h"
#include "kernels/cpu/vector_shape.h"

#ifdef RG_BF16

#define RG_BF16_INLINED RG_BF16 __attribute__((always_inline))

namespace retrograd::kernels::cpu {
namespace {

constexpr VectorShape kShape{.floats = 16, .registers = 32, .masked_loads = true};
constexpr int64_t kCells = 16, kNumbers = 32;  // in a vector

// As in unroll-inl.h, which is compiled for Highway's instruction sets and could not be inlined here.
template <int kCount>
using Indices = std::make_integer_sequence<int, kCount>;
template <int... I, class Body>
RG_BF16_INLINED inline void each(std::integer_sequence<int, I...>, const Body& body) {
  (body(std::integral_constant<int, I>()), ...);
}

// sum[a·kB + b] += first(a)·second(b), in pairs. The fewer ones stay in registers, the more numerous pass by.
template <int kA, int kB, class First, class Second>
RG_BF16_INLINED inline void products(const First& first, const Second& second, __m512* sum) {
  if constexpr (kB <= kA) {
    __m512bh held[kB];
    each(Indices<kB>(), [&](auto b) RG_BF16_INLINED { held[b()] = second(b); });
    each(Indices<kA>(), [&](auto a) RG_BF16_INLINED {
      const __m512bh one = first(a);
      each(Indices<kB>(), [&](auto b) RG_BF16_INLINED {
        sum[a() * kB + b()] = _mm512_dpbf16_ps(sum[a() * kB + b()], one, held[b()]);
      });
    });
  } else {
    __m512bh held[kA];
    each(Indices<kA>(), [&](auto a) RG_BF16_INLINED { held[a()] = first(a); });
    each(Indices<kB>(), [&](auto b) RG_BF16_INLINED {
      const __m512bh one = second(b);
      each(Indices<kA>(), [&](auto a) RG_BF16_INLINED {
        sum[a() * kB + b()] = _mm512_dpbf16_ps(sum[a() * kB + b()], held[a()], one);
      });
    });
  }
}

template <int kResults, int kVectors>
RG_BF16_INLINED inline void sums(const RowSums& r, int64_t x) {
  __m512 sum[kResults * kVectors];
  float* out = r.out + x;
  each(Indices<kResults * kVectors>(), [&](auto i) RG_BF16_INLINED {
    constexpr int m = i() / kVectors, v = i() % kVectors;
    sum[i()] = r.accumulate         ? _mm512_loadu_ps(out + m * r.out_stride + v * kCells)
               : r.start != nullptr ? _mm512_set1_ps(float_at(r.start + m * r.start_step))
                                    : _mm512_setzero_ps();
  });
  const float* weights = r.weights;
  const float* source = r.source + x;
  for (int64_t o = r.outer; o > 0; --o) {
    for (int64_t j = 0; j < r.inner; ++j) {
      const float* at = source + r.offsets[j];
      products<kResults, kVectors>(
          [&](auto m) RG_BF16_INLINED { return broadcast_cell(float_at(weights + m())); },
          [&](auto v) RG_BF16_INLINED { return load_cells(at + v() * kCells); }, sum);
      weights += r.weight_step;
    }
    source += r.outer_stride;
  }
  each(Indices<kResults * kVectors>(), [&](auto i) RG_BF16_INLINED {
    constexpr int m = i() / kVectors, v = i() % kVectors;
    _mm512_storeu_ps(out + m * r.out_stride + v * kCells, sum[i()]);
  });
}

// As many blocks of kVectors as are full, the rest with fewer vectors.
template <int kResults, int kVectors>
RG_BF16 void row(const RowSums& r, int64_t x) {
  constexpr int64_t kStep = kVectors * kCells;
  if constexpr (kVectors == 1) {
    for (; x < r.count; x += kStep) sums<kResults, 1>(r, x);
  } else {
    for (; x + kStep <= r.count; x += kStep) sums<kResults, kVectors>(r, x);
    if (x < r.count) row<kResults, kVectors / 2>(r, x);
  }
}

template <int... I>
void with_results(const RowSums& r, std::integer_sequence<int, I...>) {
  using Row = void (*)(const RowSums&, int64_t);
  static constexpr Row kRows[] = {row<I + 1, kShape.row_vectors(I + 1)>...};
  kRows[r.results - 1](r, 0);
}

// One vector of numbers of each channel and term.
template <int kChannels, int kTerms>
RG_BF16 void tile(const RowDots& r, int64_t term) {
  __m512 sum[kChannels * kTerms];
  float* sums = r.sums + term * kCells;
  each(Indices<kChannels * kTerms>(), [&](auto i) RG_BF16_INLINED {
    constexpr int o = i() / kTerms, t = i() % kTerms;
    sum[i()] = r.accumulate ? _mm512_load_ps(sums + (o * r.terms + t) * kCells) : _mm512_setzero_ps();
  });
  const auto* first = reinterpret_cast<const uint16_t*>(r.source);
  const uint16_t* source[kTerms];
  each(Indices<kTerms>(), [&](auto t) RG_BF16_INLINED { source[t()] = first + r.offsets[term + t()]; });
  for (int64_t row = 0; row < r.rows; ++row) {
    const auto* y = reinterpret_cast<const uint16_t*>(r.y) + row * r.y_row;
    const int64_t at = row * r.source_row;
    // Masks cost nothing here: what is loaded is whole but at the end of a row.
    for (int64_t x = 0; x < r.count; x += kNumbers) {
      const int64_t rest = r.count - x;
      const __mmask32 live = rest >= kNumbers ? ~__mmask32{0} : (__mmask32{1} << rest) - 1;
      const auto load = [&](const uint16_t* from) RG_BF16_INLINED {
        return reinterpret_cast<__m512bh>(_mm512_maskz_loadu_epi16(live, from));
      };
      products<kChannels, kTerms>([&](auto o) RG_BF16_INLINED { return load(y + o() * r.y_stride + x); },
                                  [&](auto t) RG_BF16_INLINED { return load(source[t()] + at + x); }, sum);
    }
  }
  each(Indices<kChannels * kTerms>(), [&](auto i) RG_BF16_INLINED {
    constexpr int o = i() / kTerms, t = i() % kTerms;
    _mm512_store_ps(sums + (o * r.terms + t) * kCells, sum[i()]);
  });
}

// Even shares of the terms: a tile of one term is a slow one.
template <int kChannels, int... I>
void with_terms(const RowDots& r, std::integer_sequence<int, I...>) {
  using Tile = void (*)(const RowDots&, int64_t);
  static constexpr Tile kTiles[] = {tile<kChannels, I + 1>...};
  constexpr int64_t kMost = sizeof...(I);
  const int64_t tiles = (r.terms + kMost - 1) / kMost;
  for (int64_t i = 0, term = 0; i < tiles; ++i) {
    const int64_t count = (r.terms - term + tiles - i - 1) / (tiles - i);
    kTiles[count - 1](r, term);
    term += count;
  }
}

template <int... I>
void with_channels(const RowDots& r, std::integer_sequence<int, I...>) {
  using All = void (*)(const RowDots&);
  static constexpr All kAll[] = {
      [](const RowDots& dots) { with_terms<I + 1>(dots, Indices<kShape.dot_terms(I + 1)>()); }...};
  kAll[r.channels - 1](r);
}

// body(i, lanes that are there, whether all are) over vectors of floats; a masked store takes several times
// as long as a plain one.
template <class Body>
RG_BF16_INLINED inline void each_vector(int64_t count, const Body& body) {
  int64_t i = 0;
  for (; i + kCells <= count; i += kCells) body(i, first_cells(kCells), std::true_type());
  if (i < count) body(i, first_cells(count - i), std::false_type());
}
// The upper halves of floats, as the lower halves of numbers.
RG_BF16_INLINED inline __m512i upper_halves(__mmask16 live, const float* at) {
  return _mm512_maskz_srli_epi32(live, _mm512_maskz_loadu_epi32(live, at), 16);
}

// Cells of two rows of floats, or of one.
template <bool kHigh>
RG_BF16 void pair(const float* low, const float* high, int64_t count, float* out, Extremes& seen) {
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xFFFF0000));
  each_vector(count, [&](int64_t i, __mmask16 live, auto whole) RG_BF16_INLINED {
    __m512i cells = upper_halves(live, low + i);
    if (kHigh)
      cells = _mm512_or_si512(cells, _mm512_and_si512(_mm512_maskz_loadu_epi32(live, high + i), upper));
    seen.look(cells);
    whole ? _mm512_storeu_si512(out + i, cells) : _mm512_mask_storeu_epi32(out + i, live, cells);
  });
}

RG_BF16 CellFacts pair_all(const float* in, int64_t pitch, int64_t channels, int64_t count, float* out,
                           int64_t out_pitch) {
  Extremes seen;
  for (int64_t k = 0; k < channels; k += 2, in += 2 * pitch, out += out_pitch)
    k + 1 < channels ? pair<true>(in, in + pitch, count, out, seen)
                     : pair<false>(in, nullptr, count, out, seen);
  return seen.facts(CellType::kBf16);
}

RG_BF16 CellFacts halve_all(float* values, int64_t count) {
  Extremes seen;
  auto* out = reinterpret_cast<uint16_t*>(values);
  each_vector(count, [&](int64_t i, __mmask16 live, auto whole) RG_BF16_INLINED {
    const __m512i numbers = upper_halves(live, values + i);
    seen.look(numbers);
    if (whole)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm512_maskz_cvtepi32_epi16(live, numbers));
    else
      _mm512_mask_cvtepi32_storeu_epi16(out + i, live, numbers);
  });
  return seen.facts(CellType::kBf16);
}

}  // namespace

void bf16_row_sums(const RowSums& rows) { with_results(rows, Indices<kShape.row_results()>()); }
void bf16_row_dots(const RowDots& dots) { with_channels(dots, Indices<kShape.dot_channels()>()); }
CellFacts cells_of_rows(const float* in, int64_t pitch, int64_t channels, int64_t count, float* out,
                        int64_t out_pitch) {
  return pair_all(in, pitch, channels, count, out, out_pitch);
}
CellFacts halve(float* values, int64_t count) { return halve_all(values, count); }

}  // namespace retrograd::kernels::cpu

#else

namespace retrograd::kernels::cpu {

void bf16_row_sums(const RowSums&) { std::abort(); }
void bf16_row_dots(const RowDots&) { std::abort(); }
CellFacts cells_of_rows(const float*, int64_t, int64_t, int64_t, float*, int64_t) { std::abort(); }
CellFacts halve(float*, int64_t) { std::abort(); }

}  // namespace retrograd::kernels::cpu

#endif
