// SPDX-License-Identifier: Apache-2.0
// Sums of quotients and of windows, channels as lanes, once for every instruction set.
#include "kernels/cpu/pooling/pool_channels.h"

#include <algorithm>
#include <cstring>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pooling/pool_channels.cpp"
#include "hwy/cache_control.h"
#include "kernels/cpu/all_targets.h"
#include "kernels/cpu/elements-inl.h"
#include "kernels/cpu/pooling/pool_divide-inl.h"
#include "kernels/cpu/pooling/pool_vectors-inl.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {

template <bool kMultiplies, class E, class D>
HWY_INLINE hn::Vec<D> quotient(const E& elements, D d, const PoolQuotientRow& row, const std::byte* at) {
  const auto v = elements.load(d, at + row.at);
  if constexpr (kMultiplies) {
    return hn::MulAdd(v, hn::Set(d, row.high), hn::Mul(v, hn::Set(d, row.low)));
  } else {
    return hn::Div(v, hn::Set(d, row.divisor));
  }
}

// sums[i] for i < count.
template <bool kMultiplies, class E>
HWY_INLINE void sum_line(const E& elements, const PoolQuotientRow* HWY_RESTRICT rows, int64_t row_count,
                         const std::byte* HWY_RESTRICT from, int64_t count, float* HWY_RESTRICT sums) {
  const PoolQuotientRow* const end = rows + row_count;
  const Floats<kLanes> d;
  constexpr int64_t kBytes = kLanes * E::kBytes;
  int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    const std::byte* const at = from + i * E::kBytes;
    auto s0 = quotient<kMultiplies>(elements, d, *rows, at),
         s1 = quotient<kMultiplies>(elements, d, *rows, at + kBytes),
         s2 = quotient<kMultiplies>(elements, d, *rows, at + 2 * kBytes),
         s3 = quotient<kMultiplies>(elements, d, *rows, at + 3 * kBytes);
    for (const PoolQuotientRow* row = rows + 1; row != end; ++row) {
      s0 = hn::Add(s0, quotient<kMultiplies>(elements, d, *row, at));
      s1 = hn::Add(s1, quotient<kMultiplies>(elements, d, *row, at + kBytes));
      s2 = hn::Add(s2, quotient<kMultiplies>(elements, d, *row, at + 2 * kBytes));
      s3 = hn::Add(s3, quotient<kMultiplies>(elements, d, *row, at + 3 * kBytes));
    }
    store(s0, d, sums + i);
    store(s1, d, sums + i + kLanes);
    store(s2, d, sums + i + 2 * kLanes);
    store(s3, d, sums + i + 3 * kLanes);
  }
  // What is left may begin before its first place: the whole line is made of nothing but the rows.
  const int64_t done = count >= kLanes ? std::min(i, count - kLanes) : 0;
  in_vectors(count - done, [=](auto tag, int64_t left) HWY_ATTR {
    const std::byte* const at = from + (done + left) * E::kBytes;
    auto sum = quotient<kMultiplies>(elements, tag, *rows, at);
    for (const PoolQuotientRow* row = rows + 1; row != end; ++row)
      sum = hn::Add(sum, quotient<kMultiplies>(elements, tag, *row, at));
    store(sum, tag, sums + done + left);
  });
}

void sum_quotients(const PoolQuotients& q) {
  with_pool_elements(q.type, [&](auto elements) HWY_ATTR {
    const bool flat = q.place == q.channels;
    const int64_t lines = flat ? 1 : q.windows, count = flat ? q.windows * q.channels : q.channels;
    for (int64_t line = 0; line < lines; ++line) {
      const std::byte* const from = q.from + line * q.place * elements.kBytes;
      float* const sums = q.sums + line * count;
      if (kFusesProducts && q.multiplies) {
        sum_line<true>(elements, q.rows, q.row_count, from, count, sums);
      } else {
        sum_line<false>(elements, q.rows, q.row_count, from, count, sums);
      }
    }
  });
}

// Places of a row, window after window: `more` places lie in terms + 1 windows, `count` then in all of those
// but the first. The same comes `repeats` times, a window further on each time; all of it in `rows` rows.
struct Places {
  int64_t more = 0, count = 1, terms = 1, repeats = 1;
  int64_t channels = 0, step = 0;        // of sums: from window to window
  int64_t rows = 1, row = 0, place = 0;  // bytes
};

// kRows, kCount: 0 for any number.
template <int kRows, int kCount, class E, class D>
HWY_INLINE void put_copies(const E& elements, D d, hn::Vec<D> v, int64_t count, int64_t rows, int64_t row,
                           int64_t place, std::byte* HWY_RESTRICT out) {
  for (int64_t r = 0; r < (kRows > 0 ? kRows : rows); ++r, out += row)
    for (int64_t i = 0; i < (kCount > 0 ? kCount : count); ++i) elements.store(v, d, out + i * place);
}

// What a window gives to its places: a sum, or a quotient made on the spot.
struct Sums {
  static constexpr bool kOverlap = true;
  const float* at;
  template <class D>
  HWY_INLINE hn::Vec<D> load_at(D d, int64_t i) const {
    return load(d, at + i);
  }
  HWY_INLINE void advance(int64_t elements) { at += elements; }
};
template <class E>
struct Quotients {
  static constexpr bool kOverlap = false;
  E elements;
  PoolQuotientRow row;
  const std::byte* at;
  template <class D>
  HWY_INLINE hn::Vec<D> load_at(D d, int64_t i) const {
    return quotient<kFusesProducts>(elements, d, row, at + i * E::kBytes);
  }
  HWY_INLINE void advance(int64_t count) { at += count * E::kBytes; }
};

// `sums` is of the first window that `count` places lie in. Not inlined: the loops need all registers, and
// what is behind a reference would be read again after every store.
template <int kTerms, int kRows, int kCount, class E, class D, class From>
HWY_NOINLINE void put_places(const E& codec, D d, const Places& all, From sums, std::byte* HWY_RESTRICT out) {
  const E elements = codec;
  const Places p = all;
  constexpr auto kStep = static_cast<int64_t>(hn::MaxLanes(D()));
  const int64_t terms = kTerms >= 0 ? kTerms : p.terms, last = p.channels - kStep;
  const int64_t behind = p.more * p.place, next = behind + p.count * p.place;
  for (int64_t k = 0; k < p.repeats; ++k, sums.advance(p.step), out += next)
    for (int64_t c = 0;; c = HWY_MIN(c + kStep, last)) {
      auto sum = terms == 0 ? hn::Zero(d) : sums.load_at(d, c);
      for (int64_t t = 1; t < terms; ++t) sum = hn::Add(sum, sums.load_at(d, c + t * p.step));
      std::byte* const at = out + c * E::kBytes;
      if (p.more > 0) {
        const auto before = sums.load_at(d, c - p.step), both = terms == 0 ? before : hn::Add(before, sum);
        put_copies<kRows, kCount>(elements, d, both, p.more, p.rows, p.row, p.place, at);
      }
      put_copies<kRows, kCount>(elements, d, sum, p.count, p.rows, p.row, p.place, at + behind);
      if (c == last) break;
    }
}
template <int kTerms, class E, class From>
HWY_INLINE void put_places_of(const E& elements, const Places& p, const From& sums, std::byte* out) {
  const Floats<kLanes> d;
  if (p.channels >= kLanes) {
    if (p.rows == 1 && p.more <= 1 && p.count == 1)
      return put_places<kTerms, 1, 1>(elements, d, p, sums, out);
    if (p.rows == 2 && p.more == 0 && p.count == 2)
      return put_places<kTerms, 2, 2>(elements, d, p, sums, out);
    return put_places<kTerms, 0, 0>(elements, d, p, sums, out);
  }
  if (kLanes > 8 && p.channels >= 8) return put_places<kTerms, 0, 0>(elements, Floats<8>(), p, sums, out);
  if (kLanes > 4 && p.channels >= 4) return put_places<kTerms, 0, 0>(elements, Floats<4>(), p, sums, out);
  put_places<kTerms, 0, 0>(elements, Floats<1>(), p, sums, out);
}
template <class E, class From>
HWY_INLINE void put_windows(const E& elements, const Places& p, From sums, int64_t window, std::byte* out) {
  sums.advance(window * p.step);
  if (p.terms == 0) return put_places_of<0>(elements, p, sums, out);
  if (p.terms == 1 || !From::kOverlap) return put_places_of<1>(elements, p, sums, out);
  if constexpr (From::kOverlap) {
    if (p.terms == 2) return put_places_of<2>(elements, p, sums, out);
    put_places_of<-1>(elements, p, sums, out);
  }
}

// Past the caches, but for the ends that share a line with others.
HWY_NOINLINE void stream_bytes(const std::byte* HWY_RESTRICT from, std::byte* HWY_RESTRICT to,
                               int64_t bytes) {
  constexpr int64_t kLine = 64;
  const auto move = [&](int64_t count) {
    std::memcpy(to, from, static_cast<size_t>(count));
    from += count;
    to += count;
    bytes -= count;
  };
  move(std::min(bytes, -static_cast<int64_t>(reinterpret_cast<uintptr_t>(to)) & (kLine - 1)));
  const hn::CappedTag<uint8_t, kLine> d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  for (; bytes >= kLine; bytes -= kLine)
    for (int64_t i = 0; i < kLine; i += step, from += step, to += step)
      hn::Stream(hn::LoadU(d, reinterpret_cast<const uint8_t*>(from)), d, reinterpret_cast<uint8_t*>(to));
  move(bytes);
}

template <class E, class From>
HWY_NOINLINE void spread_row(const E& elements, const PoolSpread& p, const From& sums, int64_t step,
                             std::byte* out, int64_t rows) {
  const int64_t terms = p.terms, rest = p.rest, stride = p.stride;
  const int64_t pitch = p.place * E::kBytes;
  const Places like{
      .channels = p.channels, .step = step, .rows = rows, .row = p.row * E::kBytes, .place = pitch};
  const bool at_once = stride <= p.places_at_once;
  int64_t j = p.last, r = p.residue;
  for (int64_t x = 0, some; x < p.places; x += some, out += some * pitch) {
    // Of the windows that hold a place, the first is `from`, and j is the last; those that are none have no
    // sums.
    const int64_t left = p.places - x;
    int64_t from = j - terms + (r < rest ? 0 : 1);
    Places now = like;
    if (r == 0 && at_once && from >= p.first && j < p.end && left >= stride) {
      now.repeats = std::min(p.end - j, stride == 1 ? left : left / stride);
      now.more = rest;
      now.count = stride - rest;
      now.terms = terms;
      from = j - terms + 1;
      some = now.repeats * stride;
      j += now.repeats;
      if (stride == 1 && p.place == p.channels && step == p.channels)
        now.channels *= std::exchange(now.repeats, 1);
      put_windows(elements, now, sums, from - p.first, out);
      continue;
    }
    some = std::min((r < rest ? rest : stride) - r, left);
    from = std::max(from, p.first);
    now.terms = std::max<int64_t>(std::min(j + 1, p.end) - from, 0);
    for (int64_t i = 0; i < some; i += now.count) {
      now.count = std::min(p.places_at_once, some - i);
      put_windows(elements, now, sums, from - p.first, out + i * pitch);
    }
    r += some;
    if (r == stride) {
      r = 0;
      ++j;
    }
  }
}

template <class E>
HWY_INLINE void spread_rows(const E& elements, const PoolSpread& p, std::byte* out, int64_t rows) {
  if (p.row_of_windows == nullptr) return spread_row(elements, p, Sums{p.sums}, p.channels, out, rows);
  spread_row(elements, p, Quotients<E>{elements, p.quotient, p.row_of_windows}, p.window, out, rows);
}

void spread_windows(const PoolSpread& p) {
  with_pool_elements(p.type, [&](auto elements) HWY_ATTR {
    if (p.stage != nullptr) {
      spread_rows(elements, p, p.stage, 1);
      for (int64_t row = 0; row < p.rows; ++row)
        stream_bytes(p.stage, p.out + row * p.row * elements.kBytes, p.places * p.channels * elements.kBytes);
      return hwy::FlushStream();
    }
    for (int64_t row = 0; row < p.rows; row += p.rows_at_once)
      spread_rows(elements, p, p.out + row * p.row * elements.kBytes, std::min(p.rows_at_once, p.rows - row));
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {

RG_EXPORT(RG_CHOSEN, sum_quotients)
RG_EXPORT(RG_CHOSEN, spread_windows)

// A vector goes to four places at once even where they are long: two places of two rows. To many only where
// they are short, for places that follow each other are written fastest.
void PoolSpread::derive() {
  constexpr int64_t kCopiedBytes = 8192, kFewCopies = 4;
  const int64_t bytes = place * static_cast<int64_t>(size_of(type));
  const int64_t copies = std::max<int64_t>(kCopiedBytes / std::max<int64_t>(bytes, 1), kFewCopies);
  terms = kernel / stride;
  rest = kernel % stride;
  last = (x + pad) / stride;
  residue = (x + pad) % stride;
  rows_at_once = std::clamp<int64_t>(copies / std::min(stride, places), 1, rows);
  places_at_once = std::max<int64_t>(copies / rows_at_once, 1);
}

void sum_quotients(const PoolQuotients& quotients) { chosen_sum_quotients()(quotients); }
void spread_windows(const PoolSpread& spread) { chosen_spread_windows()(spread); }

}  // namespace retrograd::kernels::cpu
#endif
