// SPDX-License-Identifier: Apache-2.0
// Vectors of eight floats in plain C++, with the names and the results of Highway's AVX2 operations: what
// RETROGRAD_BITS=portable computes with where a processor has no AVX2 (docs/numerics.md). Blocks are 16
// bytes, as there. A product is fused to an addition whether or not the processor can.
//
// Only operations that kernels use; all_targets.h compiles the kernels with them.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "hwy/base.h"

// Inlined they would be as fast as can be, and take the compiler as long as all instruction sets together: on
// x86 they are for processors that nobody buys any more.
#if defined(__x86_64__) || defined(RETROGRAD_CALLED_LANES)
#define RG_LANE_OP [[gnu::noinline]] inline
#else
#define RG_LANE_OP HWY_INLINE
#endif

namespace retrograd::kernels::cpu::eight_lanes {

inline constexpr size_t kVectorBytes = 32, kBlockBytes = 16;

template <class T, size_t kN>
struct Tag {
  using Element = T;
  static constexpr size_t kLanes = kN;
};
template <class D>
using TFromD = typename D::Element;
template <class D>
constexpr size_t MaxLanes(D) {
  return D::kLanes;
}
template <class D>
constexpr size_t Lanes(D) {
  return D::kLanes;
}
template <class T, size_t kN>
using FixedTag = Tag<T, kN>;
template <class T>
using ScalableTag = Tag<T, kVectorBytes / sizeof(T)>;
template <class T, size_t kMost>
using CappedTag = Tag<T, HWY_MIN(kMost, kVectorBytes / sizeof(T))>;
template <class D>
using Half = Tag<TFromD<D>, HWY_MAX(D::kLanes / 2, 1)>;
template <class T, class D>
using Rebind = Tag<T, D::kLanes>;
template <class T, class D>
using Repartition = Tag<T, D::kLanes * sizeof(TFromD<D>) / sizeof(T)>;
template <size_t kBytes>
struct IntegersOf;
template <>
struct IntegersOf<4> {
  using Signed = int32_t;
  using Unsigned = uint32_t;
};
template <class D>
using RebindToSigned = Rebind<typename IntegersOf<sizeof(TFromD<D>)>::Signed, D>;
template <class D>
using RebindToUnsigned = Rebind<typename IntegersOf<sizeof(TFromD<D>)>::Unsigned, D>;

// A vector of the compiler's own; one lane is none: of those, g++ 12 at -O1 does not find NaN when it encodes
// HIFLOAT8.
template <class T, size_t kBytes>
struct BlockOf {
  typedef T Type __attribute__((vector_size(kBytes)));
};
template <class T>
struct BlockOf<T, sizeof(T)> {
  using Type = T;
};
// In blocks that fit into registers where there are any.
template <class T, size_t kN>
struct Vector {
  static constexpr size_t kBytes = HWY_MIN(sizeof(T) * kN, kBlockBytes), kBlocks = sizeof(T) * kN / kBytes;
  using Block = typename BlockOf<T, kBytes>::Type;
  using Array = std::array<T, kN>;
  Block blocks[kBlocks];
};
template <class D>
using Vec = Vector<TFromD<D>, D::kLanes>;
template <class V>
struct TagOf;
template <class T, size_t kN>
struct TagOf<Vector<T, kN>> {
  using Type = Tag<T, kN>;
};
template <class V>
using DFromV = typename TagOf<V>::Type;
template <class V>
using ArrayOf = typename V::Array;

template <class T, size_t kN>
RG_LANE_OP std::array<T, kN> lanes_of(Vector<T, kN> v) {
  return std::bit_cast<std::array<T, kN>>(v);
}
template <class T, size_t kN>
RG_LANE_OP Vector<T, kN> vector_of(const std::array<T, kN>& lanes) {
  return std::bit_cast<Vector<T, kN>>(lanes);
}
// lane i = of(i)
template <class D, class Of>
RG_LANE_OP Vec<D> each_lane(D, const Of& of) {
  std::array<TFromD<D>, D::kLanes> out;
  for (size_t i = 0; i < D::kLanes; ++i) out[i] = static_cast<TFromD<D>>(of(i));
  return vector_of(out);
}
template <class V, class Of>
RG_LANE_OP V each_block(const Of& of) {
  V out;
  for (size_t i = 0; i < V::kBlocks; ++i) out.blocks[i] = static_cast<typename V::Block>(of(i));
  return out;
}

// One bit a lane, in words as wide as the element: all set or none.
template <class T, size_t kN>
struct MaskOf {
  std::array<bool, kN> set;
};
template <class D>
using Mask = MaskOf<TFromD<D>, D::kLanes>;

// Memory; addresses need no alignment.
template <class D>
RG_LANE_OP Vec<D> LoadU(D, const TFromD<D>* at) {
  Vec<D> v;
  std::memcpy(&v, at, sizeof v);
  return v;
}
template <class D>
RG_LANE_OP Vec<D> Load(D d, const TFromD<D>* at) {
  return LoadU(d, at);
}
template <class D>
RG_LANE_OP void StoreU(Vec<D> v, D, TFromD<D>* at) {
  std::memcpy(at, &v, sizeof v);
}
template <class D>
RG_LANE_OP void Store(Vec<D> v, D d, TFromD<D>* at) {
  StoreU(v, d, at);
}
template <class D>
RG_LANE_OP void Stream(Vec<D> v, D d, TFromD<D>* at) {
  StoreU(v, d, at);
}
// Lanes that are not set are neither read nor written.
template <class D>
RG_LANE_OP Vec<D> MaskedLoad(Mask<D> mask, D, const TFromD<D>* at) {
  std::array<TFromD<D>, D::kLanes> out{};
  for (size_t i = 0; i < D::kLanes; ++i)
    if (mask.set[i]) std::memcpy(&out[i], at + i, sizeof(TFromD<D>));
  return vector_of(out);
}
template <class D>
RG_LANE_OP void BlendedStore(Vec<D> v, Mask<D> mask, D, TFromD<D>* at) {
  const auto lanes = lanes_of(v);
  for (size_t i = 0; i < D::kLanes; ++i)
    if (mask.set[i]) std::memcpy(at + i, &lanes[i], sizeof(TFromD<D>));
}
template <class D, class... V>
RG_LANE_OP void store_interleaved(D, TFromD<D>* at, const V&... v) {
  const std::array<std::array<TFromD<D>, D::kLanes>, sizeof...(V)> ways{lanes_of(v)...};
  for (size_t i = 0; i < D::kLanes; ++i)
    for (size_t way = 0; way < sizeof...(V); ++way)
      std::memcpy(at + i * sizeof...(V) + way, &ways[way][i], sizeof(TFromD<D>));
}
template <class D>
RG_LANE_OP void StoreInterleaved3(Vec<D> a, Vec<D> b, Vec<D> c, D d, TFromD<D>* at) {
  store_interleaved(d, at, a, b, c);
}
template <class D>
RG_LANE_OP void StoreInterleaved4(Vec<D> a, Vec<D> b, Vec<D> c, Vec<D> e, D d, TFromD<D>* at) {
  store_interleaved(d, at, a, b, c, e);
}

template <class D>
RG_LANE_OP Vec<D> Zero(D) {
  return Vec<D>{};
}
template <class D>
RG_LANE_OP Vec<D> Set(D, TFromD<D> value) {
  // -0 - 0 is -0, and -0 + 0 is not.
  return each_block<Vec<D>>([&](size_t) { return value - typename Vec<D>::Block{}; });
}
template <class D>
RG_LANE_OP Vec<D> Iota(D d, TFromD<D> first) {
  return each_lane(d, [&](size_t i) { return first + static_cast<TFromD<D>>(i); });
}
template <class T, size_t kN>
RG_LANE_OP T GetLane(Vector<T, kN> v) {
  return lanes_of(v)[0];
}
template <class D, class From>
RG_LANE_OP Vec<D> BitCast(D, From v) {
  return std::bit_cast<Vec<D>>(v);
}

// Arithmetic.
template <class V>
RG_LANE_OP V Add(V a, V b) {
  return each_block<V>([&](size_t i) { return a.blocks[i] + b.blocks[i]; });
}
template <class V>
RG_LANE_OP V Sub(V a, V b) {
  return each_block<V>([&](size_t i) { return a.blocks[i] - b.blocks[i]; });
}
template <class V>
RG_LANE_OP V Mul(V a, V b) {
  return each_block<V>([&](size_t i) { return a.blocks[i] * b.blocks[i]; });
}
template <class V>
RG_LANE_OP V Div(V a, V b) {
  return each_block<V>([&](size_t i) { return a.blocks[i] / b.blocks[i]; });
}

// a · b + c, rounded once.
#if defined(__aarch64__) || defined(__FMA__)
template <size_t kN>
RG_LANE_OP void add_products(const float* a, const float* b, float* sums) {
  for (size_t i = 0; i < kN; ++i) sums[i] = __builtin_fmaf(a[i], b[i], sums[i]);
}
#else
// In double the product is exact; the sum is rounded to odd there (its last bit says whether anything was
// lost), so that rounding it to FP32 afterwards is as rounding the exact sum.
template <size_t kN>
RG_LANE_OP void add_products(const float* a, const float* b, float* sums) {
  for (size_t i = 0; i < kN; ++i) {
    const double product = static_cast<double>(a[i]) * static_cast<double>(b[i]), addend = sums[i];
    const double sum = product + addend;
    const double part = sum - product;
    const double lost = (product - (sum - part)) + (addend - part);  // NaN where sum is not finite
    const auto bits = std::bit_cast<uint64_t>(sum);
    const uint64_t even = lost > 0 || lost < 0 ? ~bits & 1 : 0;
    const bool outwards = (lost > 0) == (sum > 0);
    sums[i] = static_cast<float>(std::bit_cast<double>(outwards ? bits + even : bits - even));
  }
}
#endif
template <size_t kN>
RG_LANE_OP Vector<float, kN> MulAdd(Vector<float, kN> a, Vector<float, kN> b, Vector<float, kN> c) {
  const auto x = lanes_of(a), y = lanes_of(b);
  auto sums = lanes_of(c);
  add_products<kN>(x.data(), y.data(), sums.data());
  return vector_of(sums);
}
template <class V>
RG_LANE_OP V NegMulAdd(V a, V b, V c) {
  return MulAdd(each_block<V>([&](size_t i) { return -a.blocks[i]; }), b, c);
}

template <class V>
RG_LANE_OP V Min(V a, V b) {
  const auto x = lanes_of(a), y = lanes_of(b);
  return each_lane(DFromV<V>(), [&](size_t i) { return x[i] < y[i] ? x[i] : y[i]; });
}
template <class V>
RG_LANE_OP V Max(V a, V b) {
  const auto x = lanes_of(a), y = lanes_of(b);
  return each_lane(DFromV<V>(), [&](size_t i) { return x[i] < y[i] ? y[i] : x[i]; });
}
template <class V>
RG_LANE_OP V Abs(V v) {
  const auto x = lanes_of(v);
  return each_lane(DFromV<V>(), [&](size_t i) { return x[i] < 0 ? -x[i] : x[i]; });
}
// Halves are added until one is left, so that the order is that of AVX2's additions.
template <class D>
RG_LANE_OP Vec<D> SumOfLanes(D d, Vec<D> v) {
  auto lanes = lanes_of(v);
  for (size_t half = D::kLanes / 2; half > 0; half /= 2)
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return Set(d, lanes[0]);
}

// Bits, of floats too.
template <class V, class Of>
RG_LANE_OP V each_word(V a, V b, const Of& of) {
  using Words = std::array<uint8_t, sizeof(V)>;
  const auto x = std::bit_cast<Words>(a), y = std::bit_cast<Words>(b);
  Words out;
  for (size_t i = 0; i < sizeof(V); ++i) out[i] = static_cast<uint8_t>(of(x[i], y[i]));
  return std::bit_cast<V>(out);
}
template <class T, size_t kN>
RG_LANE_OP Vector<T, kN> And(Vector<T, kN> a, Vector<T, kN> b) {
  return each_word(a, b, [](int x, int y) { return x & y; });
}
template <class V>
RG_LANE_OP V Or(V a, V b) {
  return each_word(a, b, [](int x, int y) { return x | y; });
}
template <class V>
RG_LANE_OP V Xor(V a, V b) {
  return each_word(a, b, [](int x, int y) { return x ^ y; });
}
template <int kBits, class V>
RG_LANE_OP V ShiftLeft(V v) {
  return each_block<V>([&](size_t i) { return v.blocks[i] << kBits; });
}
template <int kBits, class V>
RG_LANE_OP V ShiftRight(V v) {
  return each_block<V>([&](size_t i) { return v.blocks[i] >> kBits; });
}

// Masks.
template <class V, class Of>
RG_LANE_OP Mask<DFromV<V>> compared(V a, V b, const Of& of) {
  const auto x = lanes_of(a), y = lanes_of(b);
  Mask<DFromV<V>> out;
  for (size_t i = 0; i < x.size(); ++i) out.set[i] = of(x[i], y[i]);
  return out;
}
template <class V>
RG_LANE_OP auto Eq(V a, V b) {
  return compared(a, b, [](auto x, auto y) { return x == y; });
}
template <class V>
RG_LANE_OP auto Ne(V a, V b) {
  return compared(a, b, [](auto x, auto y) { return x != y; });
}
template <class V>
RG_LANE_OP auto Lt(V a, V b) {
  return compared(a, b, [](auto x, auto y) { return x < y; });
}
template <class V>
RG_LANE_OP auto IsNaN(V v) {
  return Ne(v, v);
}
template <class D>
RG_LANE_OP Mask<D> FirstN(D, size_t count) {
  Mask<D> out;
  for (size_t i = 0; i < D::kLanes; ++i) out.set[i] = i < count;
  return out;
}
template <class D, class From>
RG_LANE_OP Mask<D> RebindMask(D, From mask) {
  return {mask.set};
}
template <class T, size_t kN>
RG_LANE_OP MaskOf<T, kN> And(MaskOf<T, kN> a, MaskOf<T, kN> b) {
  for (size_t i = 0; i < kN; ++i) a.set[i] = a.set[i] && b.set[i];
  return a;
}
template <class T, size_t kN>
RG_LANE_OP MaskOf<T, kN> AndNot(MaskOf<T, kN> without, MaskOf<T, kN> mask) {
  for (size_t i = 0; i < kN; ++i) mask.set[i] = mask.set[i] && !without.set[i];
  return mask;
}
template <class D>
RG_LANE_OP bool AllTrue(D, Mask<D> mask) {
  bool all = true;
  for (const bool set : mask.set) all = all && set;
  return all;
}
template <class V>
RG_LANE_OP V IfThenElse(Mask<DFromV<V>> mask, V yes, V no) {
  const auto x = lanes_of(yes), y = lanes_of(no);
  return each_lane(DFromV<V>(), [&](size_t i) { return mask.set[i] ? x[i] : y[i]; });
}
template <class V>
RG_LANE_OP V IfThenElseZero(Mask<DFromV<V>> mask, V yes) {
  return IfThenElse(mask, yes, V{});
}

// Other types with as many lanes. Narrower integers have room for what they get.
template <class D, class From>
RG_LANE_OP Vec<D> PromoteTo(D d, From v) {
  const auto x = lanes_of(v);
  return each_lane(d, [&](size_t i) { return x[i]; });
}
template <class D, class From>
RG_LANE_OP Vec<D> DemoteTo(D d, From v) {
  const auto x = lanes_of(v);
  return each_lane(d, [&](size_t i) { return x[i]; });
}
template <class D, class From>
RG_LANE_OP Vec<D> ConvertTo(D d, From v) {
  const auto x = lanes_of(v);
  return each_lane(d, [&](size_t i) { return x[i]; });
}

// Lanes in another order.
template <size_t kN>
struct TableIndices {
  std::array<int32_t, kN> lane;
};
template <class D>
RG_LANE_OP TableIndices<D::kLanes> SetTableIndices(D, const int32_t* lanes) {
  TableIndices<D::kLanes> out;
  std::memcpy(out.lane.data(), lanes, sizeof out.lane);
  return out;
}
template <class D>
RG_LANE_OP TableIndices<D::kLanes> IndicesFromVec(D, Vector<int32_t, D::kLanes> lanes) {
  return {lanes_of(lanes)};
}
template <class T, size_t kN>
RG_LANE_OP Vector<T, kN> TableLookupLanes(Vector<T, kN> v, TableIndices<kN> from) {
  const auto x = lanes_of(v);
  return each_lane(Tag<T, kN>(), [&](size_t i) { return x[static_cast<size_t>(from.lane[i]) % kN]; });
}
template <class V>
RG_LANE_OP V OddEven(V odd, V even) {
  const auto x = lanes_of(odd), y = lanes_of(even);
  return each_lane(DFromV<V>(), [&](size_t i) { return i % 2 != 0 ? x[i] : y[i]; });
}
template <class D>
RG_LANE_OP Vec<D> concat_every_other(D d, Vec<D> high, Vec<D> low, size_t first) {
  constexpr size_t kHalf = D::kLanes / 2;
  const auto x = lanes_of(low), y = lanes_of(high);
  return each_lane(d, [&](size_t i) { return i < kHalf ? x[2 * i + first] : y[2 * (i - kHalf) + first]; });
}
template <class D>
RG_LANE_OP Vec<D> ConcatEven(D d, Vec<D> high, Vec<D> low) {
  return concat_every_other(d, high, low, 0);
}
template <class D>
RG_LANE_OP Vec<D> ConcatOdd(D d, Vec<D> high, Vec<D> low) {
  return concat_every_other(d, high, low, 1);
}
// `D` is the half's.
template <class D, class V>
RG_LANE_OP Vec<D> LowerHalf(D d, V v) {
  const auto x = lanes_of(v);
  return each_lane(d, [&](size_t i) { return x[i]; });
}
template <class V>
RG_LANE_OP auto LowerHalf(V v) {
  return LowerHalf(Half<DFromV<V>>(), v);
}
template <class D, class V>
RG_LANE_OP Vec<D> UpperHalf(D d, V v) {
  const auto x = lanes_of(v);
  return each_lane(d, [&](size_t i) { return x[D::kLanes + i]; });
}
template <class D>
RG_LANE_OP Vec<D> Combine(D d, Vec<Half<D>> high, Vec<Half<D>> low) {
  constexpr size_t kHalf = D::kLanes / 2;
  const auto x = lanes_of(low), y = lanes_of(high);
  return each_lane(d, [&](size_t i) { return i < kHalf ? x[i] : y[i - kHalf]; });
}
template <class D>
RG_LANE_OP Vec<D> ConcatLowerLower(D d, Vec<D> high, Vec<D> low) {
  constexpr size_t kHalf = D::kLanes / 2;
  const auto x = lanes_of(low), y = lanes_of(high);
  return each_lane(d, [&](size_t i) { return i < kHalf ? x[i] : y[i - kHalf]; });
}
template <class D>
RG_LANE_OP Vec<D> ConcatUpperUpper(D d, Vec<D> high, Vec<D> low) {
  constexpr size_t kHalf = D::kLanes / 2;
  const auto x = lanes_of(low), y = lanes_of(high);
  return each_lane(d, [&](size_t i) { return i < kHalf ? x[i + kHalf] : y[i]; });
}
// Within each block of 16 bytes.
template <class D>
RG_LANE_OP Vec<D> interleaved(D d, Vec<D> a, Vec<D> b, size_t half) {
  constexpr size_t kBlock = HWY_MIN(kBlockBytes / sizeof(TFromD<D>), D::kLanes);
  const auto x = lanes_of(a), y = lanes_of(b);
  return each_lane(d, [&](size_t i) {
    const size_t from = i / kBlock * kBlock + half * (kBlock / 2) + i % kBlock / 2;
    return i % 2 == 0 ? x[from] : y[from];
  });
}
template <class D>
RG_LANE_OP Vec<D> InterleaveLower(D d, Vec<D> a, Vec<D> b) {
  return interleaved(d, a, b, 0);
}
template <class D>
RG_LANE_OP Vec<D> InterleaveUpper(D d, Vec<D> a, Vec<D> b) {
  return interleaved(d, a, b, 1);
}

}  // namespace retrograd::kernels::cpu::eight_lanes
