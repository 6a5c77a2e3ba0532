// SPDX-License-Identifier: Apache-2.0
// Masked sums along rows, once for every instruction set. Tiles are small: these are for what is rare, and
// must only be no cliff.
#include "kernels/cpu/layout/masked_rows.h"

#include <algorithm>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/layout/masked_rows.cpp"
#include "kernels/cpu/all_targets.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/unroll-inl.h"
#include "kernels/cpu/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = RG_VECTORS;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE hn::Mask<D> is_set(V flags) { return hn::Ne(flags, hn::Zero(D())); }

constexpr int kTileResults = 4;
constexpr int vectors_for(int results) { return std::min(8, (kFewRegisters ? 8 : 16) / results); }

// kResults results from m on × kVectors vectors from x on.
template <int kResults, int kVectors, bool kLive>
HWY_INLINE void sums(const RowSums& r, const float* valid, const float* live, int64_t m, int64_t x) {
  const D d;
  constexpr int n = static_cast<int>(hn::MaxLanes(D()));
  V sum[kResults * kVectors];
  float* out = r.out + m * r.out_stride + x;
  each(Indices<kResults * kVectors>(), [&](auto i) RG_INLINED {
    constexpr int o = i() / kVectors, v = i() % kVectors;
    sum[i()] = r.accumulate         ? hn::LoadU(d, out + o * r.out_stride + v * n)
               : r.start != nullptr ? hn::Set(d, r.start[(m + o) * r.start_step])
                                    : hn::Zero(d);
  });
  const float* HWY_RESTRICT weights = r.weights + m;
  const float* HWY_RESTRICT source = r.source + x;
  const int64_t* HWY_RESTRICT offsets = r.offsets;
  valid += x;
  for (int64_t o = r.outer; o > 0; --o, source += r.outer_stride)
    for (int64_t j = 0; j < r.inner; ++j, weights += r.weight_step) {
      const float* at = source + offsets[j];
      const float* valid_at = valid + offsets[j];
      V w[kResults];
      [[maybe_unused]] bool used[kResults];
      each(Indices<kResults>(), [&](auto i) RG_INLINED {
        w[i()] = hn::Set(d, weights[i()]);
        if constexpr (kLive) used[i()] = live[j * r.results + m + i()] != 0;
      });
      each(Indices<kVectors>(), [&](auto v) RG_INLINED {
        const auto there = is_set(hn::LoadU(d, valid_at + v() * n));
        const V s = held(hn::IfThenElseZero(there, hn::LoadU(d, at + v() * n)));
        each(Indices<kResults>(), [&](auto i) RG_INLINED {
          if constexpr (kLive)
            if (!used[i()]) return;
          V& own = sum[i() * kVectors + v()];
          own = masked_mul_add(there, w[i()], s, own);
        });
      });
    }
  each(Indices<kResults * kVectors>(), [&](auto i) RG_INLINED {
    constexpr int o = i() / kVectors, v = i() % kVectors;
    hn::StoreU(sum[i()], d, out + o * r.out_stride + v * n);
  });
}

// As many blocks of kVectors as are full, the rest with fewer vectors.
template <int kResults, int kVectors, bool kLive>
HWY_NOINLINE void row(const RowSums& r, const float* valid, const float* live, int64_t m, int64_t x) {
  constexpr int64_t step = kVectors * static_cast<int64_t>(hn::MaxLanes(D()));
  if constexpr (kVectors == 1) {
    for (; x < r.count; x += step) sums<kResults, 1, kLive>(r, valid, live, m, x);
  } else {
    for (; x + step <= r.count; x += step) sums<kResults, kVectors, kLive>(r, valid, live, m, x);
    if (x < r.count) row<kResults, kVectors / 2, kLive>(r, valid, live, m, x);
  }
}

template <bool kLive, int... I>
void sums_of(const RowSums& r, const float* valid, const float* live, std::integer_sequence<int, I...>) {
  using Row = void (*)(const RowSums&, const float*, const float*, int64_t, int64_t);
  static constexpr Row kRows[] = {row<I + 1, vectors_for(I + 1), kLive>...};
  for (int64_t m = 0; m < r.results; m += kTileResults)
    kRows[std::min<int64_t>(r.results - m, kTileResults) - 1](r, valid, live, m, 0);
}
void masked_row_sums(const RowSums& r, const float* valid, const float* live) {
  if (live != nullptr) return sums_of<true>(r, valid, live, Indices<kTileResults>());
  sums_of<false>(r, valid, nullptr, Indices<kTileResults>());
}

constexpr int kTileChannels = 4, kTileTerms = 3;

// kChannels channels from o on × kTerms terms from `term` on.
template <int kChannels, int kTerms>
HWY_NOINLINE void dots(const RowDots& r, const RowDotsMask& mask, int64_t o, int64_t term) {
  const D d;
  constexpr int n = static_cast<int>(hn::MaxLanes(D()));
  V sum[kChannels * kTerms];
  float* sums = r.sums + (o * r.terms + term) * n;
  each(Indices<kChannels * kTerms>(), [&](auto i) RG_INLINED {
    constexpr int c = i() / kTerms, t = i() % kTerms;
    sum[i()] = r.accumulate ? hn::Load(d, sums + (c * r.terms + t) * n) : hn::Zero(d);
  });
  const float *source[kTerms], *valid[kTerms];
  each(Indices<kTerms>(), [&](auto t) RG_INLINED {
    source[t()] = r.source + r.offsets[term + t()];
    valid[t()] = mask.valid + r.offsets[(term + t()) % mask.valid_terms];
  });
  for (int64_t row = 0; row < r.rows; ++row) {
    const float* y = r.y + o * r.y_stride + row * r.y_row;
    const float* y_valid = mask.y_valid == nullptr ? nullptr : mask.y_valid + row * r.y_row;
    for (int64_t x = 0; x < r.count; x += n) {
      const int64_t at = row * r.source_row + x, left = r.count - x;
      // Nothing of y behind its row may be read.
      HWY_ALIGN float ends[(kChannels + 1) * n];
      const float* from = y + x;
      const float* there_from = y_valid == nullptr ? nullptr : y_valid + x;
      int64_t step = r.y_stride;
      if (left < n) {
        std::fill_n(ends, (kChannels + 1) * n, 0.0F);
        for (int c = 0; c < kChannels; ++c) std::copy_n(from + c * r.y_stride, left, ends + c * n);
        if (there_from != nullptr) std::copy_n(there_from, left, ends + kChannels * n);
        from = ends;
        step = n;
        if (there_from != nullptr) there_from = ends + kChannels * n;
      }
      auto y_there = hn::FirstN(d, static_cast<size_t>(std::min<int64_t>(left, n)));
      if (there_from != nullptr) y_there = hn::And(y_there, is_set(hn::LoadU(d, there_from)));
      V values[kChannels];
      each(Indices<kChannels>(), [&](auto c) RG_INLINED { values[c()] = hn::LoadU(d, from + c() * step); });
      each(Indices<kTerms>(), [&](auto t) RG_INLINED {
        const auto there = hn::And(y_there, is_set(hn::LoadU(d, valid[t()] + at)));
        const V s = held(hn::IfThenElseZero(there, hn::LoadU(d, source[t()] + at)));
        each(Indices<kChannels>(), [&](auto c) RG_INLINED {
          V& own = sum[c() * kTerms + t()];
          own = masked_mul_add(there, values[c()], s, own);
        });
      });
    }
  }
  each(Indices<kChannels * kTerms>(), [&](auto i) RG_INLINED {
    constexpr int c = i() / kTerms, t = i() % kTerms;
    hn::Store(sum[i()], d, sums + (c * r.terms + t) * n);
  });
}

template <int... I>
void dots_of(const RowDots& r, const RowDotsMask& mask, std::integer_sequence<int, I...>) {
  using Tile = void (*)(const RowDots&, const RowDotsMask&, int64_t, int64_t);
  static constexpr Tile kTiles[] = {dots<I / kTileTerms + 1, I % kTileTerms + 1>...};
  for (int64_t o = 0; o < r.channels; o += kTileChannels)
    for (int64_t term = 0; term < r.terms; term += kTileTerms) {
      const int64_t channels = std::min<int64_t>(r.channels - o, kTileChannels);
      const int64_t terms = std::min<int64_t>(r.terms - term, kTileTerms);
      kTiles[(channels - 1) * kTileTerms + terms - 1](r, mask, o, term);
    }
}
void masked_row_dots(const RowDots& r, const RowDotsMask& mask) {
  dots_of(r, mask, Indices<kTileChannels * kTileTerms>());
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {

RG_EXPORT(RG_CHOSEN, masked_row_sums)
RG_EXPORT(RG_CHOSEN, masked_row_dots)

void masked_row_sums(const RowSums& rows, const float* valid, const float* live) {
  chosen_masked_row_sums()(rows, valid, live);
}
void masked_row_dots(const RowDots& dots, const RowDotsMask& mask) { chosen_masked_row_dots()(dots, mask); }

}  // namespace retrograd::kernels::cpu
#endif
