// SPDX-License-Identifier: Apache-2.0
// Tiles of results with planes or channels as lanes, once for every instruction set.
#include "kernels/cpu/depthwise/depthwise_rows.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/depthwise/depthwise_rows.cpp"
#include "kernels/cpu/all_targets.h"
#include "kernels/cpu/elements-inl.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/unroll-inl.h"
#include "kernels/cpu/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = RG_VECTORS;
using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
using U = hn::Rebind<uint32_t, D>;

HWY_INLINE int64_t lanes() { return static_cast<int64_t>(hn::Lanes(D())); }

using F32 = Elements<DType::kF32>;

// A block of lanes in a row of results, in elements from the first ones: of sources, and of weights.
struct Block {
  int64_t number, source, weights;
};

HWY_INLINE V first_sums(const DepthwiseRow& r, int64_t block) {
  return r.start != nullptr ? hn::LoadU(D(), r.start + block * lanes()) : hn::Zero(D());
}

// Of pairs of BF16 in 32 bits.
HWY_INLINE hn::Vec<U> load_pairs(const std::byte* at) { return load_codes(U(), at); }
HWY_INLINE V even_of(hn::Vec<U> pairs) { return hn::BitCast(D(), hn::ShiftLeft<16>(pairs)); }
HWY_INLINE V odd_of(hn::Vec<U> pairs) { return hn::BitCast(D(), hn::And(pairs, hn::Set(U(), 0xffff'0000u))); }
HWY_INLINE void store_pairs(V even, V odd, std::byte* at) {
  const Elements<DType::kBF16> elements;
  const auto low = hn::ShiftRight<16>(elements.rounded(even, D()));
  const auto high = hn::And(elements.rounded(odd, D()), hn::Set(U(), 0xffff'0000u));
  store_codes(hn::Or(low, high), U(), at);
}

// Accumulators are named variables, by macros: g++ 12 leaves some arrays of them in memory, and vectors of
// unknown size have no arrays at all.
#define RG_EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13)
#define RG_EACH_DOWN(DO) \
  DO(13) DO(12) DO(11) DO(10) DO(9) DO(8) DO(7) DO(6) DO(5) DO(4) DO(3) DO(2) DO(1) DO(0)
#define RG_START(i) [[maybe_unused]] V a##i = start, b##i = odd_start;
#define RG_ADD(i)                                                \
  if constexpr (i < kTile && kPair) {                            \
    const auto pairs = held(load_pairs(RG_AT(i)));               \
    a##i = hn::MulAdd(weight, even_of(pairs), a##i);             \
    b##i = hn::MulAdd(odd_weight, odd_of(pairs), b##i);          \
  } else if constexpr (i < kTile) {                              \
    a##i = hn::MulAdd(weight, elements.load(d, RG_AT(i)), a##i); \
  }
// A jump to the first live position, then multiply-adds only.
#define RG_ADD_FROM(i) \
  case i:              \
    RG_ADD(i) [[fallthrough]];
#define RG_ADD_WITHIN(i)       \
  if (i >= begin && i < end) { \
    RG_ADD(i)                  \
  }
#define RG_STORE(i)                               \
  if constexpr (i < kTile && kPair) {             \
    store_pairs(a##i, b##i, out + i * out_pitch); \
  } else if constexpr (i < kTile) {               \
    elements.store(a##i, d, out + i * out_pitch); \
  }

// Places from `source` on; pitches are bytes. Where theirs is not known every third has a pointer: with them
// and one multiple of the pitch a load has its address, where 14 multiples would take all registers.
#define RG_PLACES(address)                                                                        \
  const std::byte* const source = (address);                                                      \
  [[maybe_unused]] const std::byte* const at[] = {source, source + 3 * pitch, source + 6 * pitch, \
                                                  source + 9 * pitch};
#define RG_AT(i) (kDense ? source + i * n * E::kBytes : at[i / 3 % 4] + i % 3 * pitch)

template <int kTile, bool kDense, bool kPair, class E>
HWY_INLINE void tile_row(const DepthwiseRow& r, int64_t first, const Block& block,
                         std::byte* HWY_RESTRICT out) {
  const D d;
  const E elements;
  const int64_t n = lanes(), pitch = (kDense ? n : r.source_step * r.source_place) * E::kBytes,
                out_pitch = r.out_step * r.out_place * E::kBytes;
  const int64_t from = (first * r.source_step - r.source_start) * r.source_place + block.source;
  const V start = first_sums(r, block.number);
  const V odd_start = kPair ? first_sums(r, block.number + 1) : start;
  RG_EACH(RG_START)
  if (first >= r.full_begin && first + kTile <= r.full_end) {
    for (int64_t row = 0; row < r.rows; ++row) {
      const float* HWY_RESTRICT weights = r.weights[row] + r.first_slot * n + block.weights;
      for (int64_t t = 0; t < r.tap_count; ++t, weights += n) {
        RG_PLACES(r.sources[row] + (from + r.taps[t].offset * r.source_place) * E::kBytes)
        const V weight = hn::Load(d, weights);
        [[maybe_unused]] const V odd_weight = kPair ? hn::Load(d, weights + r.block_weights) : weight;
        RG_EACH(RG_ADD)
      }
    }
  } else {
    for (int64_t row = 0; row < r.rows; ++row) {
      const float* HWY_RESTRICT weights = r.weights[row] + r.first_slot * n + block.weights;
      for (int64_t t = 0; t < r.tap_count; ++t, weights += n) {
        const DepthwiseTap& tap = r.taps[t];
        const int64_t begin = tap.begin - first, end = tap.end - first;
        if (begin >= kTile || end <= 0) continue;
        RG_PLACES(r.sources[row] + (from + tap.offset * r.source_place) * E::kBytes)
        const V weight = hn::Load(d, weights);
        [[maybe_unused]] const V odd_weight = kPair ? hn::Load(d, weights + r.block_weights) : weight;
        if (begin <= 0 && end >= kTile) {
          RG_EACH(RG_ADD)
        } else if (begin <= 0) {
          switch (end - 1) {
            RG_EACH_DOWN(RG_ADD_FROM)
            default:
              break;
          }
        } else if (end >= kTile) {
          switch (begin) {
            RG_EACH(RG_ADD_FROM)
            default:
              break;
          }
        } else {
          RG_EACH(RG_ADD_WITHIN)
        }
      }
    }
  }
  RG_EACH(RG_STORE)
}

// Neighbouring sources, each loaded once for the three results that read it. `now` starts with the source.
#define RG_SUM(i, weight)             \
  a##i = hn::MulAdd(weight, x, a##i); \
  if constexpr (kPair) b##i = hn::MulAdd(odd_##weight, odd_x, b##i);
#define RG_LOAD(j)                                                                              \
  [[maybe_unused]] const hn::Vec<U> pairs = kPair ? held(load_pairs(RG_AT(j))) : hn::Zero(U()); \
  const V x = held(kPair ? even_of(pairs) : elements.load(d, RG_AT(j)));                        \
  [[maybe_unused]] const V odd_x = kPair ? held(odd_of(pairs)) : x;
#define RG_SOURCE(j, now, before, last) \
  if constexpr (j <= kTile) {           \
    RG_LOAD(j)                          \
    if constexpr (j < kTile) {          \
      RG_SUM(now, low)                  \
    }                                   \
    RG_SUM(before, middle)              \
    if constexpr (j > 1) {              \
      RG_SUM(last, high)                \
    }                                   \
  }

// Three neighbouring taps; of the sources, at most the first and the last lie outside.
template <int kTile, bool kDense, bool kPair, class E>
HWY_INLINE void row_of_three(const DepthwiseRow& r, int64_t first, const Block& block,
                             std::byte* HWY_RESTRICT out) {
  const D d;
  const E elements;
  const int64_t n = lanes(), pitch = (kDense ? n : r.source_place) * E::kBytes,
                out_pitch = r.out_step * r.out_place * E::kBytes;
  const bool falling = r.taps[0].offset > r.taps[2].offset;
  const int64_t place = first + (falling ? r.taps[2] : r.taps[0]).offset;
  const bool has_first = place >= 0, has_last = place + kTile + 1 < r.source_size;
  const int64_t low_slot = (r.first_slot + (falling ? 2 : 0)) * n, middle_slot = (r.first_slot + 1) * n,
                high_slot = (r.first_slot + (falling ? 0 : 2)) * n;
  const V start = first_sums(r, block.number);
  const V odd_start = kPair ? first_sums(r, block.number + 1) : start;
  RG_EACH(RG_START)
  for (int64_t row = 0; row < r.rows; ++row) {
    RG_PLACES(r.sources[row] + (place - r.source_start) * pitch + block.source * E::kBytes)
    const float* HWY_RESTRICT weights = r.weights[row] + block.weights;
    const float* HWY_RESTRICT odd_weights = kPair ? weights + r.block_weights : weights;
    const V low = hn::Load(d, weights + low_slot), middle = hn::Load(d, weights + middle_slot),
            high = hn::Load(d, weights + high_slot);
    [[maybe_unused]] const V odd_low = hn::Load(d, odd_weights + low_slot),
                             odd_middle = hn::Load(d, odd_weights + middle_slot),
                             odd_high = hn::Load(d, odd_weights + high_slot);
    if (has_first) {
      RG_LOAD(0)
      RG_SUM(0, low)
    }
    RG_SOURCE(1, 1, 0, 0)
    RG_SOURCE(2, 2, 1, 0)
    RG_SOURCE(3, 3, 2, 1)
    RG_SOURCE(4, 4, 3, 2)
    RG_SOURCE(5, 5, 4, 3)
    RG_SOURCE(6, 6, 5, 4)
    RG_SOURCE(7, 7, 6, 5)
    RG_SOURCE(8, 8, 7, 6)
    RG_SOURCE(9, 9, 8, 7)
    RG_SOURCE(10, 10, 9, 8)
    RG_SOURCE(11, 11, 10, 9)
    RG_SOURCE(12, 12, 11, 10)
    RG_SOURCE(13, 13, 12, 11)
    RG_SOURCE(14, 13, 13, 12)
    if (has_last) {
      RG_LOAD((kTile + 1))
#define RG_LAST(i)                \
  if constexpr (i == kTile - 1) { \
    RG_SUM(i, high)               \
  }
      RG_EACH(RG_LAST)
    }
  }
  RG_EACH(RG_STORE)
}

// Whether row_of_three computes these positions.
bool is_three(const DepthwiseRow& r, int64_t first, int64_t width) {
  if (r.source_step != 1 || r.tap_count != 3 || width < 2) return false;
  const int64_t step = r.taps[1].offset - r.taps[0].offset;
  if ((step != 1 && step != -1) || r.taps[2].offset - r.taps[1].offset != step) return false;
  const int64_t middle = first + r.taps[1].offset;
  return middle >= 0 && middle + width <= r.source_size;
}

constexpr int64_t kMostPairs = kFewRegisters ? 5 : 8;

// A tile of `kTile` results from position `first` on, in every block of every row. Places may lie too far
// apart for the machine to foresee the next row: it is fetched meanwhile.
template <int kTile, bool kDense, class E>
HWY_NOINLINE void tile(const DepthwiseRow& r, int64_t first, std::byte* out) {
  constexpr bool kPairs = std::is_same_v<E, Elements<DType::kBF16>> && kTile <= kMostPairs;
  constexpr int64_t kBytes = E::kBytes, kLine = 64 / kBytes;  // elements
  const int64_t n = lanes(), pitch = r.source_step * r.source_place * kBytes,
                out_pitch = r.out_step * r.out_place * kBytes;
  const bool three = is_three(r, first, kTile);
  const std::byte* ahead = nullptr;
  if (r.fetches && r.rows > 0)
    ahead = std::max(r.sources[0], r.sources[r.rows - 1]) +
            (first * r.source_step - r.source_start) * r.source_place * kBytes;
  for (int64_t row = 0; row < r.out_rows; ++row, out += r.out_row * kBytes)
    for (int64_t i = 0, width = 1; i < r.blocks; i += width) {
      width = kPairs && i < 2 * r.pairs ? 2 : 1;
      const int64_t channel = std::min(i * n, r.last_block + (1 - width) * n);
      if (ahead != nullptr && row + 1 < r.out_rows && channel % kLine < width * n) {
        const std::byte* next = ahead + ((row + 1) * r.source_row + channel) * kBytes;
        const std::byte* next_out = out + (r.out_row + channel) * kBytes;
        for (int64_t place = 0; place < kTile; ++place, next += pitch, next_out += out_pitch) {
          __builtin_prefetch(next);
          __builtin_prefetch(next_out, 1);
        }
      }
      const Block block{i, row * r.source_row + channel, i * r.block_weights};
      std::byte* const at = out + channel * kBytes;
      const auto compute = [&](auto pair) RG_INLINED {
        constexpr bool kPair = decltype(pair)::value;
        if (three) return row_of_three<kTile, kDense, kPair, E>(r, first, block, at);
        tile_row<kTile, kDense, kPair, E>(r, first, block, at);
      };
      if constexpr (kPairs) {
        if (width == 2) {
          compute(std::true_type());
          continue;
        }
      }
      compute(std::false_type());
    }
}

// Tiles of up to 8 are hardly slower than those of up to 14, and half as much to compile.
template <bool kDense>
constexpr int64_t kMostPositions = kDense ? kDepthwiseTile : 8;

template <bool kDense, class E, size_t... kI>
void tiles(std::index_sequence<kI...>, const DepthwiseRow& r) {
  using Tile = void (*)(const DepthwiseRow&, int64_t, std::byte*);
  static constexpr Tile kTiles[] = {tile<kI + 1, kDense, E>...};
  // Even tiles: 15 positions are 8 and 7, since 14 and 1 would leave one chain of additions alone.
  const int64_t most = r.pairs > 0 ? kMostPairs : kMostPositions<kDense>;
  int64_t left = (r.count + most - 1) / most;
  for (int64_t i = 0; i < r.count; --left) {
    const int64_t width = (r.count - i + left - 1) / left;
    kTiles[width - 1](r, r.first + i, r.out + i * r.out_step * r.out_place * E::kBytes);
    i += width;
  }
}
template <bool kDense, class E>
void tiles(const DepthwiseRow& r) {
  tiles<kDense, E>(std::make_index_sequence<kMostPositions<kDense>>(), r);
}

void depthwise_row(const DepthwiseRow& r) {
  if (r.type == DType::kBF16) return tiles<false, Elements<DType::kBF16>>(r);
  if (r.type == DType::kF16) return tiles<false, Elements<DType::kF16>>(r);
  r.source_step == 1 && r.source_place == lanes() ? tiles<true, F32>(r) : tiles<false, F32>(r);
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {

RG_EXPORT(RG_CHOSEN, depthwise_row)

void depthwise_row(const DepthwiseRow& row) { chosen_depthwise_row()(row); }

}  // namespace retrograd::kernels::cpu
#endif
