// SPDX-License-Identifier: Apache-2.0
// Vectors of FP32 from and to memory that holds another type, for kernels that
// read and write tensors. The bits are those of base/dtype.h, except that a
// signalling NaN may come out quiet.
//
// Included once for every instruction set; addresses need no alignment, not
// even that of the element.
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "base/dtype.h"
#include "kernels/cpu/hif8_values.h"
#include "kernels/cpu/vectors.h"

#if defined(RETROGRAD_KERNELS_CPU_ELEMENTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETROGRAD_KERNELS_CPU_ELEMENTS_INL_H_
#undef RETROGRAD_KERNELS_CPU_ELEMENTS_INL_H_
#else
#define RETROGRAD_KERNELS_CPU_ELEMENTS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = RG_VECTORS;

// Sixteen lanes at most: no kernel gains from more, and the lanes are known
// when it is compiled.
inline constexpr int kLanes = HWY_MIN(RG_VECTOR_FLOATS, 16);
template <int lanes>
using Floats = hn::FixedTag<float, HWY_MIN(lanes, kLanes)>;

#if !RG_EIGHT_LANES && \
    (HWY_TARGET == HWY_NEON || (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)))
inline constexpr bool kConvertsHalf = true;  // in hardware, to nearest even whatever the mode
#else
inline constexpr bool kConvertsHalf = false;
#endif

// Highway reads a single lane as an object of its type, which must be aligned.
template <class D>
HWY_INLINE hn::Vec<D> load_codes(D d, const std::byte* at) {
  using T = hn::TFromD<D>;
  if constexpr (hn::MaxLanes(d) == 1) {
    T code;
    std::memcpy(&code, at, sizeof code);
    return hn::Set(d, code);
  } else {
    return hn::LoadU(d, reinterpret_cast<const T*>(at));
  }
}
template <class D>
HWY_INLINE void store_codes(hn::Vec<D> v, D d, std::byte* at) {
  using T = hn::TFromD<D>;
  if constexpr (hn::MaxLanes(d) == 1) {
    const T code = hn::GetLane(v);
    std::memcpy(at, &code, sizeof code);
  } else {
    hn::StoreU(v, d, reinterpret_cast<T*>(at));
  }
}

// One lane after the other, for what no instruction does.
template <class D, class Decode>
HWY_INLINE hn::Vec<D> decode_lanes(D d, Decode decode) {
  HWY_ALIGN std::array<float, hn::MaxLanes(d)> lanes;
  for (size_t i = 0; i < lanes.size(); ++i) lanes[i] = decode(i);
  return hn::Load(d, lanes.data());
}
template <class D, class Encode>
HWY_INLINE void encode_lanes(hn::Vec<D> v, D d, Encode encode) {
  HWY_ALIGN std::array<float, hn::MaxLanes(d)> lanes;
  hn::Store(v, d, lanes.data());
  for (size_t i = 0; i < lanes.size(); ++i) encode(i, lanes[i]);
}

template <DType>
struct Elements;

template <>
struct Elements<DType::kF32> {
  static constexpr int64_t kBytes = 4;
  using Code = float;
  template <class D>
  HWY_INLINE hn::Vec<D> decode(D, hn::Vec<D> codes) const {
    return codes;
  }
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const std::byte* at) const {
    return load_codes(d, at);
  }
  template <class D>
  HWY_INLINE void store(hn::Vec<D> v, D d, std::byte* at) const {
    store_codes(v, d, at);
  }
};

template <>
struct Elements<DType::kF16> {
  static constexpr int64_t kBytes = 2;
  using Code = uint16_t;
  template <class D>
  HWY_INLINE hn::Vec<D> decode(D d, hn::Vec<hn::Rebind<uint16_t, D>> codes) const {
    return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), codes));
  }
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const std::byte* at) const {
    if constexpr (kConvertsHalf) {
      return decode(d, load_codes(hn::Rebind<uint16_t, D>(), at));
    } else {
      return decode_lanes(d, [at](size_t i) {
        uint16_t code;
        std::memcpy(&code, at + 2 * i, sizeof code);
        return f16_to_f32(code);
      });
    }
  }
  template <class D>
  HWY_INLINE void store(hn::Vec<D> v, D d, std::byte* at) const {
    if constexpr (kConvertsHalf) {
      const hn::Rebind<uint16_t, D> codes;
      store_codes(hn::BitCast(codes, hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), v)), codes, at);
    } else {
      encode_lanes(v, d, [at](size_t i, float value) {
        const uint16_t code = f32_to_f16(value);
        std::memcpy(at + 2 * i, &code, sizeof code);
      });
    }
  }
};

// Highway's own conversion cuts instead of rounding; AVX-512's takes subnormal
// numbers for zero.
template <>
struct Elements<DType::kBF16> {
  static constexpr int64_t kBytes = 2;
  using Code = uint16_t;
  template <class D>
  HWY_INLINE hn::Vec<D> decode(D d, hn::Vec<hn::Rebind<uint16_t, D>> codes) const {
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(hn::Rebind<uint32_t, D>(), codes)));
  }
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const std::byte* at) const {
    return decode(d, load_codes(hn::Rebind<uint16_t, D>(), at));
  }
  // The code in the upper half of each word.
  template <class D>
  HWY_INLINE auto rounded(hn::Vec<D> v, D) const {
    const hn::Rebind<uint32_t, D> words;
    const auto bits = hn::BitCast(words, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1u));
    const auto quiet = hn::Or(bits, hn::Set(words, 0x40'0000u));
    const auto nan = hn::RebindMask(words, hn::IsNaN(v));
    return hn::IfThenElse(nan, quiet, hn::Add(hn::Add(bits, hn::Set(words, 0x7fffu)), odd));
  }
  template <class D>
  HWY_INLINE void store(hn::Vec<D> v, D d, std::byte* at) const {
    const hn::Rebind<int32_t, D> integers;
    const hn::Rebind<uint16_t, D> codes;
    store_codes(hn::DemoteTo(codes, hn::BitCast(integers, hn::ShiftRight<16>(rounded(v, d)))), codes, at);
  }
};

template <>
struct Elements<DType::kE4M3> {
  static constexpr int64_t kBytes = 1;
  using Code = uint8_t;
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const std::byte* at) const {
    return decode(d, load_codes(hn::Rebind<uint8_t, D>(), at));
  }
  // A normal number moves to FP32's place and exponent; a subnormal one counts
  // units of 2^-9.
  template <class D>
  HWY_INLINE hn::Vec<D> decode(D d, hn::Vec<hn::Rebind<uint8_t, D>> codes) const {
    const hn::Rebind<uint32_t, D> words;
    const auto code = hn::PromoteTo(words, codes);
    const auto magnitude = hn::And(code, hn::Set(words, 0x7fu));
    const auto normal = hn::Add(hn::ShiftLeft<20>(magnitude), hn::Set(words, 120u << 23));
    const auto units = hn::ConvertTo(d, hn::BitCast(hn::Rebind<int32_t, D>(), magnitude));
    const auto subnormal = hn::BitCast(words, hn::Mul(units, hn::Set(d, 0x1p-9F)));
    auto bits = hn::IfThenElse(hn::Eq(hn::ShiftRight<3>(magnitude), hn::Zero(words)), subnormal, normal);
    bits = hn::IfThenElse(hn::Eq(magnitude, hn::Set(words, 0x7fu)), hn::Set(words, 0x7fc0'0000u), bits);
    return hn::BitCast(d, hn::Or(bits, hn::ShiftLeft<24>(hn::Xor(code, magnitude))));
  }
  // Below 2^-6 the FP32 adder rounds to units of 2^-9 when 2^14 is added.
  template <class D>
  HWY_INLINE void store(hn::Vec<D> v, D d, std::byte* at) const {
    const hn::Rebind<uint32_t, D> words;
    const auto bits = hn::BitCast(words, v);
    const auto magnitude = hn::And(bits, hn::Set(words, 0x7fff'ffffu));
    const auto moved = hn::Sub(magnitude, hn::Set(words, 120u << 23));
    const auto odd = hn::And(hn::ShiftRight<20>(moved), hn::Set(words, 1u));
    const auto normal = hn::Min(hn::ShiftRight<20>(hn::Add(hn::Add(moved, hn::Set(words, 0x7'ffffu)), odd)),
                                hn::Set(words, 0x7fu));
    const auto unit = hn::Set(d, 0x1p14F);
    const auto subnormal =
        hn::Sub(hn::BitCast(words, hn::Add(hn::BitCast(d, magnitude), unit)), hn::BitCast(words, unit));
    const hn::Rebind<int32_t, D> integers;
    const auto small =
        hn::RebindMask(words, hn::Lt(hn::BitCast(integers, magnitude), hn::Set(integers, 121 << 23)));
    const auto sign = hn::ShiftRight<24>(hn::Xor(bits, magnitude));
    const auto code = hn::Or(hn::IfThenElse(small, subnormal, normal), sign);
    const hn::Rebind<uint8_t, D> codes;
    store_codes(hn::DemoteTo(codes, hn::BitCast(integers, code)), codes, at);
  }
};

// The layout is the table of base/hif8_codec.cpp. `steps` below is |E| with the
// mantissa behind it, cut to the bits that the code keeps: every field of |E|
// is a constant and a shift of it.
template <>
struct Elements<DType::kHiF8> {
  static constexpr int64_t kBytes = 1;
  using Code = uint8_t;
  const float* values = hif8_values();
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const std::byte* at) const {
    return decode_lanes(d, [this, at](size_t i) { return values[static_cast<uint8_t>(at[i])]; });
  }
  template <class D>
  HWY_INLINE void store(hn::Vec<D> v, D, std::byte* at) const {
    const hn::Rebind<uint32_t, D> words;
    const hn::Rebind<int32_t, D> integers;
    const auto constant = [&](uint32_t value) { return hn::Set(words, value); };
    const auto below = [&](auto a, int32_t b) {
      return hn::RebindMask(words, hn::Lt(a, hn::Set(integers, b)));
    };
    const auto bits = hn::BitCast(words, v);
    const auto magnitude = hn::And(bits, constant(0x7fff'ffffu));
    const auto exponent = [&](auto word) {
      return hn::Sub(hn::BitCast(integers, hn::ShiftRight<23>(word)), hn::Set(integers, 127));
    };

    // Half a step of the mantissa that is kept: 3 bits, 2, 1, or none below
    // 2^-15.
    const auto first = hn::Abs(exponent(magnitude));
    auto half = hn::IfThenElse(below(first, 16), constant(1u << 21), constant(1u << 22));
    half = hn::IfThenElse(below(first, 8), constant(1u << 20), half);
    half = hn::IfThenElse(below(first, 4), constant(1u << 19), half);
    const auto rounded = hn::Add(magnitude, half);

    const auto e = exponent(rounded);
    const auto size = hn::Abs(e);
    const auto mantissa = hn::And(rounded, constant(0x7f'ffffu));
    const auto steps = hn::Or(hn::ShiftLeft<23>(hn::BitCast(words, size)), mantissa);
    const auto negative = hn::BitCast(words, hn::And(e, hn::Set(integers, INT32_MIN)));
    auto code = hn::Add(hn::ShiftRight<22>(steps), constant(0x50u));
    code = hn::IfThenElse(below(size, 8), hn::Add(hn::ShiftRight<21>(steps), constant(0x30u)), code);
    const auto three = hn::ShiftRight<20>(steps);
    code = hn::IfThenElse(below(size, 4), hn::Add(three, constant(0x10u)), code);
    code = hn::Add(code, hn::ShiftRight<27>(negative));
    const auto unit = hn::Add(hn::Add(three, constant(0x08u)), hn::ShiftRight<28>(negative));
    code = hn::IfThenElse(below(size, 2), unit, code);
    // Denormal: the exponent alone. All of [2^-23, 2^-22) is nearest to the
    // smallest, or tied with zero.
    const auto denormal = hn::Max(hn::Add(e, hn::Set(integers, 23)), hn::Set(integers, 1));
    code = hn::IfThenElse(below(e, -15), hn::BitCast(words, denormal), code);
    const auto ordered = hn::BitCast(integers, magnitude);
    code = hn::IfThenElse(below(ordered, 104 << 23), hn::Zero(words), code);
    code = hn::IfThenElse(below(ordered, std::bit_cast<int32_t>(40960.0F)), code, constant(0x6fu));
    const auto sign = hn::ShiftRight<24>(hn::Xor(bits, magnitude));
    code = hn::IfThenElse(hn::Eq(code, hn::Zero(words)), code, hn::Or(code, sign));
    code = hn::IfThenElse(hn::RebindMask(words, hn::IsNaN(v)), constant(0x80u), code);
    const hn::Rebind<uint8_t, D> codes;
    store_codes(hn::DemoteTo(codes, hn::BitCast(integers, code)), codes, at);
  }
};

#if RG_HAS_MASKED_LOADS
inline constexpr int kMasksBytes = RG_HAS_AVX512 ? 1 : 4;  // the smallest element a load may mask
#else
inline constexpr int kMasksBytes = 8;
#endif

// The first `count` lanes, zeros in the others; reads nothing beyond.
template <class E, class D>
HWY_INLINE hn::Vec<D> load_first(const E& elements, D d, const std::byte* at, int64_t count) {
  if constexpr (E::kBytes >= kMasksBytes && !std::is_same_v<E, Elements<DType::kHiF8>>) {
    const hn::Rebind<typename E::Code, D> codes;
    const auto mask = hn::FirstN(codes, static_cast<size_t>(count));
    return elements.decode(d, hn::MaskedLoad(mask, codes, reinterpret_cast<const typename E::Code*>(at)));
  } else {
    // The code 0 is zero in every type.
    std::array<std::byte, E::kBytes * hn::MaxLanes(D())> buffer{};
    std::memcpy(buffer.data(), at, static_cast<size_t>(count * E::kBytes));
    return elements.load(d, buffer.data());
  }
}

// Calls body(Elements<dtype>()) with the type as part of its type.
template <class Body>
HWY_INLINE void with_elements(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::kF32:
      return body(Elements<DType::kF32>());
    case DType::kF16:
      return body(Elements<DType::kF16>());
    case DType::kBF16:
      return body(Elements<DType::kBF16>());
    case DType::kHiF8:
      return body(Elements<DType::kHiF8>());
    case DType::kE4M3:
      return body(Elements<DType::kE4M3>());
  }
}

// Calls body(tag, i) so that vectors of `tag` from place i on cover [0, count),
// in ascending order and never beyond: the last vector may start early and
// cover some places twice, so that short rows need no masks.
template <class Body>
HWY_INLINE void in_vectors(int64_t count, const Body& body) {
  const auto cover = [&](auto d) {
    constexpr auto kStep = static_cast<int64_t>(hn::MaxLanes(decltype(d)()));
    int64_t i = 0;
    for (; i + kStep <= count; i += kStep) body(d, i);
    if (i < count) body(d, count - kStep);
  };
  if (count >= kLanes) return cover(Floats<kLanes>());
  if constexpr (kLanes > 8) {
    if (count >= 8) return cover(Floats<8>());
  }
  if constexpr (kLanes > 4) {
    if (count >= 4) return cover(Floats<4>());
  }
  cover(Floats<1>());
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
