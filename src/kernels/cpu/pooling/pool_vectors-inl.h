// SPDX-License-Identifier: Apache-2.0
// What the kernels of pooling share: vectors along rows of floats and of elements.
//
// FLOAT has a loop for every case that is worth one, the 16-bit types share what is general: a loop for every
// case of every type would keep the compiler for minutes.
//
// Included once for every instruction set.
#include <array>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "kernels/cpu/elements-inl.h"

#if defined(RETROGRAD_KERNELS_CPU_POOL_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETROGRAD_KERNELS_CPU_POOL_VECTORS_INL_H_
#undef RETROGRAD_KERNELS_CPU_POOL_VECTORS_INL_H_
#else
#define RETROGRAD_KERNELS_CPU_POOL_VECTORS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const float* at) {
  return load_codes(d, reinterpret_cast<const std::byte*>(at));
}
template <class D>
HWY_INLINE void store(hn::Vec<D> v, D d, float* at) {
  store_codes(v, d, reinterpret_cast<std::byte*>(at));
}

template <class E>
inline constexpr bool kIsFloat = E::kBytes == 4;

// The types that pooling has.
template <class Body>
HWY_INLINE void with_pool_elements(DType dtype, const Body& body) {
  if (dtype == DType::kF32) return body(Elements<DType::kF32>());
  if (dtype == DType::kF16) return body(Elements<DType::kF16>());
  body(Elements<DType::kBF16>());
}

// in_vectors, but what is left at the end of many lanes takes as few as will do: stores that cross cache
// lines cost twice.
template <class Body>
HWY_INLINE void in_narrow_vectors(int64_t count, const Body& body) {
  const int64_t whole = count / kLanes * kLanes, left = count - whole;
  if (whole == 0 || left == 0 || left > kLanes / 2) return in_vectors(count, body);
  for (int64_t i = 0; i < whole; i += kLanes) body(Floats<kLanes>(), i);
  if (left > 4) return body(Floats<8>(), count - 8);
  body(Floats<4>(), count - HWY_MIN(4, kLanes));
}

// `bytes` bytes, fewer than 2 · kPiece, in two pieces that overlap.
template <int kPiece>
HWY_INLINE void copy_few(const std::byte* from, std::byte* to, int64_t bytes) {
  if constexpr (kPiece > 0) {
    if (bytes < kPiece) return copy_few<kPiece / 2>(from, to, bytes);
    std::array<std::byte, kPiece> last;
    std::memcpy(last.data(), from + bytes - kPiece, kPiece);
    std::memcpy(to, from, kPiece);
    std::memcpy(to + bytes - kPiece, last.data(), kPiece);
  }
}
// The first `lanes` lanes, fewer than there are; not of FLOAT.
template <class E>
HWY_NOINLINE void store_few(const E& elements, hn::Vec<Floats<kLanes>> v, std::byte* at, int64_t lanes) {
  std::array<std::byte, kLanes * E::kBytes> all;
  elements.store(v, Floats<kLanes>(), all.data());
  copy_few<static_cast<int>(kLanes * E::kBytes) / 2>(all.data(), at, lanes * E::kBytes);
}
// Whether a vector may be stored as it is. The other case is a row of a 16-bit type that is shorter than a
// vector and has something behind it; FLOAT takes narrow vectors there.
using Whole = std::true_type;
using Short = std::false_type;
template <class E, class D, class Fits>
HWY_INLINE void store_row(const E& elements, hn::Vec<D> v, D d, std::byte* at, int64_t count, Fits) {
  if constexpr (Fits::value) {
    elements.store(v, d, at);
  } else {
    store_few(elements, v, at, count);
  }
}
// body(tag, i, Whole or Short) for vectors over a row of `count`, which may reach behind it or not.
template <class E, class Body>
HWY_INLINE void in_row(int64_t count, bool reaches, const Body& body) {
  const Floats<kLanes> d;
  if (reaches) return body(d, 0, Whole());
  if constexpr (kIsFloat<E>) {
    in_narrow_vectors(count, [&](auto tag, int64_t i) { body(tag, i, Whole()); });
  } else {
    if (count < kLanes) return body(d, 0, Short());
    constexpr int kQuarter = HWY_MAX(kLanes / 4, 1);
    const int64_t whole = count / kLanes * kLanes, left = count - whole;
    for (int64_t i = 0; i < whole; i += kLanes) body(d, i, Whole());
    if (left > kQuarter) return body(d, count - kLanes, Whole());
    if (left > 0) body(Floats<kQuarter>(), count - kQuarter, Whole());
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
