// SPDX-License-Identifier: Apache-2.0
// Sums of quotients and of windows, channels as lanes, once for every instruction set.
#include "kernels/cpu/pooling/pool_channels.h"

#include <algorithm>
#include <cstring>

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
HWY_INLINE hn::Vec<D> quotient(const E& elements, D d, const PoolQuotientRow& row, int64_t at) {
  const auto v = elements.load(d, row.at + at);
  if constexpr (kMultiplies) {
    return hn::MulAdd(v, hn::Set(d, row.high), hn::Mul(v, hn::Set(d, row.low)));
  } else {
    return hn::Div(v, hn::Set(d, row.divisor));
  }
}

// sums[i] for i < count, `from` bytes behind the beginning of each row.
template <bool kMultiplies, class E>
HWY_INLINE void sum_line(const E& elements, const PoolQuotientRow* HWY_RESTRICT rows, int64_t row_count,
                         int64_t from, int64_t count, float* HWY_RESTRICT sums) {
  const PoolQuotientRow* const end = rows + row_count;
  const Floats<kLanes> d;
  constexpr int64_t kBytes = kLanes * E::kBytes;
  int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    int64_t at = from + i * E::kBytes;
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
    const int64_t at = from + (done + left) * E::kBytes;
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
      const int64_t from = line * q.place * elements.kBytes;
      float* const sums = q.sums + line * count;
      if (kFusesProducts && q.multiplies) {
        sum_line<true>(elements, q.rows, q.row_count, from, count, sums);
      } else {
        sum_line<false>(elements, q.rows, q.row_count, from, count, sums);
      }
    }
  });
}

// Where a result goes: to `places` places of `rows` rows, so many bytes apart.
struct Copies {
  int64_t places = 1, place = 0, rows = 1, row = 0;
};

// out[i] = Σ_{t < terms} sums[i + t·step] for a vector. Functions, and no lambdas in in_vectors(): what those
// capture would be read again after every store.
template <int kTerms, class E, class D>
HWY_INLINE void add_vector(const E& elements, D d, const float* HWY_RESTRICT sums, int64_t step,
                           int64_t terms, std::byte* HWY_RESTRICT out, Copies copies) {
  auto sum = load(d, sums);
  for (int64_t t = 1; t < (kTerms > 0 ? kTerms : terms); ++t) sum = hn::Add(sum, load(d, sums + t * step));
  for (int64_t row = 0; row < copies.rows; ++row)
    for (int64_t place = 0; place < copies.places; ++place)
      elements.store(sum, d, out + row * copies.row + place * copies.place);
}
template <int kTerms, class E, class D>
HWY_INLINE void add_vectors(const E& elements, D d, const float* HWY_RESTRICT sums, int64_t step,
                            int64_t terms, int64_t count, std::byte* HWY_RESTRICT out, Copies copies) {
  constexpr auto kStep = static_cast<int64_t>(hn::MaxLanes(D()));
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep)
    add_vector<kTerms>(elements, d, sums + i, step, terms, out + i * E::kBytes, copies);
  if (i == count) return;
  i = count - kStep;
  add_vector<kTerms>(elements, d, sums + i, step, terms, out + i * E::kBytes, copies);
}
// Not inlined: it has a dozen loops.
template <int kTerms, class E>
HWY_NOINLINE void add_windows(const E& elements, const float* sums, int64_t step, int64_t terms,
                              int64_t count, std::byte* out, Copies copies) {
  if (count >= kLanes && copies.places * copies.rows == 1)
    return add_vectors<kTerms>(elements, Floats<kLanes>(), sums, step, terms, count, out, Copies{});
  if (count >= kLanes)
    return add_vectors<kTerms>(elements, Floats<kLanes>(), sums, step, terms, count, out, copies);
  if (kLanes > 8 && count >= 8)
    return add_vectors<kTerms>(elements, Floats<8>(), sums, step, terms, count, out, copies);
  if (kLanes > 4 && count >= 4)
    return add_vectors<kTerms>(elements, Floats<4>(), sums, step, terms, count, out, copies);
  add_vectors<kTerms>(elements, Floats<1>(), sums, step, terms, count, out, copies);
}

// `places` places from `out` on: all of the same windows, or, where those slide, each of the ones after
// those of the place before.
template <int kTerms, class E>
HWY_INLINE void put_places(const E& elements, const PoolSpread& p, const float* sums, int64_t terms,
                           int64_t places, int64_t rows, std::byte* out) {
  const int64_t pitch = p.place * E::kBytes;
  Copies copies{.place = pitch, .rows = rows, .row = p.row * E::kBytes};
  if (p.stride > 1) {
    for (int64_t i = 0; i < places; i += p.places_at_once) {
      copies.places = std::min(p.places_at_once, places - i);
      add_windows<kTerms>(elements, sums, p.channels, terms, p.channels, out + i * pitch, copies);
    }
  } else if (p.place == p.channels) {
    add_windows<kTerms>(elements, sums, p.channels, terms, places * p.channels, out, copies);
  } else {
    for (int64_t i = 0; i < places; ++i, out += pitch, sums += p.channels)
      add_windows<kTerms>(elements, sums, p.channels, terms, p.channels, out, copies);
  }
}

// Places in the windows [begin, end).
template <class E>
HWY_INLINE void put_run(const E& elements, const PoolSpread& p, int64_t begin, int64_t end, int64_t places,
                        int64_t rows, std::byte* out) {
  const float* sums = p.sums + (begin - p.first) * p.channels;
  const int64_t terms = end - begin;
  if (terms == 1) return put_places<1>(elements, p, sums, terms, places, rows, out);
  if (terms == 2) return put_places<2>(elements, p, sums, terms, places, rows, out);
  if (terms == 3) return put_places<3>(elements, p, sums, terms, places, rows, out);
  if (terms > 3) return put_places<0>(elements, p, sums, terms, places, rows, out);
  // The code 0 is zero in every type.
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < places; ++i)
      std::memset(out + (row * p.row + i * p.place) * E::kBytes, 0,
                  static_cast<size_t>(p.channels * E::kBytes));
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

// Every stride-th place of a row, `terms` windows each, from the sums at `sums` on.
template <int kTerms, class E>
HWY_INLINE void put_residue(const E& elements, const PoolSpread& p, const float* sums, int64_t terms,
                            int64_t places, int64_t rows, std::byte* out) {
  const Copies copies{.rows = rows, .row = p.row * E::kBytes};
  const int64_t pitch = p.stride * p.place * E::kBytes;
  const int64_t channels = p.channels;
  if (channels >= kLanes && rows == 1) {
    for (int64_t i = 0; i < places; ++i, sums += channels, out += pitch)
      add_vectors<kTerms>(elements, Floats<kLanes>(), sums, channels, terms, channels, out, Copies{});
    return;
  }
  for (int64_t i = 0; i < places; ++i, sums += channels, out += pitch)
    add_windows<kTerms>(elements, sums, channels, terms, channels, out, copies);
}

// Of few channels, and windows a few places apart: places in the same place of their stride take as many
// windows and need no counting. A block of places at a time, which stays in L1.
template <class E>
HWY_NOINLINE void spread_residues(const E& codec, const PoolSpread& p, std::byte* to, int64_t rows) {
  const E elements = codec;
  const int64_t block = std::max<int64_t>(4096 / (p.channels * p.stride), 1) * p.stride;
  for (int64_t begin = 0; begin < p.places; begin += block) {
    const int64_t end = std::min(begin + block, p.places);
    for (int64_t first = begin; first < std::min(begin + p.stride, end); ++first) {
      int64_t j = (p.x + first + p.pad) / p.stride;
      const int64_t count = p.terms + ((p.x + first + p.pad) % p.stride < p.rest ? 1 : 0);
      for (int64_t x = first, some; x < end; x += some * p.stride, j += some) {
        std::byte* out = to + x * p.place * E::kBytes;
        const int64_t from = j - count + 1;
        some = 1;
        if (from < p.first || j >= p.end || count == 0) {
          put_run(elements, p, std::max(from, p.first), std::min(j + 1, p.end), 1, rows, out);
          continue;
        }
        some = std::min((end - x + p.stride - 1) / p.stride, p.end - j);
        const float* sums = p.sums + (from - p.first) * p.channels;
        if (count == 1)
          put_residue<1>(elements, p, sums, count, some, rows, out);
        else if (count == 2)
          put_residue<2>(elements, p, sums, count, some, rows, out);
        else
          put_residue<0>(elements, p, sums, count, some, rows, out);
      }
    }
  }
}

template <class E>
HWY_NOINLINE void spread_row(const E& codec, const PoolSpread& p, std::byte* out, int64_t rows) {
  constexpr int64_t kFewChannels = 64, kShortStride = 4, kManyStrides = 3;
  if (p.stride > 1 && p.stride <= kShortStride && p.channels <= kFewChannels &&
      p.places >= kManyStrides * p.stride)
    return spread_residues(codec, p, out, rows);
  const E elements = codec;
  const int64_t terms = p.terms, rest = p.rest;
  int64_t j = p.last, r = p.residue;
  for (int64_t x = 0, some; x < p.places; x += some, out += some * p.place * E::kBytes) {
    // Of the windows that hold a place, the first is `from`, and j is the last; those that are none have no
    // sums.
    const int64_t from = j - terms + (r < rest ? 0 : 1), left = p.places - x;
    if (p.stride == 1) {
      some = from >= p.first && j < p.end ? std::min(p.end - j, left) : 1;
      put_run(elements, p, std::max(from, p.first), std::min(j + 1, p.end), some, rows, out);
      j += some;
    } else {
      some = std::min((r < rest ? rest : p.stride) - r, left);
      put_run(elements, p, std::max(from, p.first), std::min(j + 1, p.end), some, rows, out);
      r += some;
      if (r == p.stride) {
        r = 0;
        ++j;
      }
    }
  }
}

void spread_windows(const PoolSpread& p) {
  with_pool_elements(p.type, [&](auto elements) HWY_ATTR {
    if (p.stage != nullptr) {
      spread_row(elements, p, p.stage, 1);
      for (int64_t row = 0; row < p.rows; ++row)
        stream_bytes(p.stage, p.out + row * p.row * elements.kBytes, p.places * p.channels * elements.kBytes);
      return hwy::FlushStream();
    }
    for (int64_t row = 0; row < p.rows; row += p.rows_at_once)
      spread_row(elements, p, p.out + row * p.row * elements.kBytes, std::min(p.rows_at_once, p.rows - row));
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {
namespace {

HWY_EXPORT(sum_quotients);
HWY_EXPORT(spread_windows);

struct Chosen {
  void (*sum)(const PoolQuotients&);
  void (*spread)(const PoolSpread&);
};
const Chosen& chosen() {
  static const Chosen instance{RG_CHOSEN(sum_quotients), RG_CHOSEN(spread_windows)};
  return instance;
}

}  // namespace

// Of many channels, place by place is faster; of few, copying what was just written would take longer, for it
// is not there yet.
void PoolSpread::derive() {
  constexpr int64_t kMostPlaceBytes = 512, kCopiedBytes = 8192;
  const int64_t bytes = place * static_cast<int64_t>(size_of(type));
  const int64_t copies =
      bytes > kMostPlaceBytes ? 1 : std::max<int64_t>(kCopiedBytes / std::max<int64_t>(bytes, 1), 1);
  terms = kernel / stride;
  rest = kernel % stride;
  last = (x + pad) / stride;
  residue = (x + pad) % stride;
  rows_at_once = std::clamp<int64_t>(copies / std::min(stride, places), 1, rows);
  places_at_once = std::max<int64_t>(copies / rows_at_once, 1);
}

void sum_quotients(const PoolQuotients& quotients) { chosen().sum(quotients); }
void spread_windows(const PoolSpread& spread) { chosen().spread(spread); }

}  // namespace retrograd::kernels::cpu
#endif
