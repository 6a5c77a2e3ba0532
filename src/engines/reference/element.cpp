// SPDX-License-Identifier: Apache-2.0
// The tables of load and store functions, one for each type and rounding.
#include "engines/reference/element.h"

#include <array>
#include <cstring>

namespace retrograd::engines::reference {
namespace {

template <class T>
T bits_at(const std::byte* address) {
  T bits;
  std::memcpy(&bits, address, sizeof(T));
  return bits;
}

template <DType kType, OperandRounding kRounding>
double load(const std::byte* address) {
  float value;
  if constexpr (kType == DType::kF32) {
    value = bits_at<float>(address);
  } else if constexpr (kType == DType::kF16) {
    value = f16_to_f32(bits_at<uint16_t>(address));
  } else if constexpr (kType == DType::kBF16) {
    value = bf16_to_f32(bits_at<uint16_t>(address));
  } else if constexpr (kType == DType::kHiF8) {
    value = hif8_to_f32(bits_at<uint8_t>(address));
  } else {
    static_assert(kType == DType::kE4M3);
    value = e4m3_to_f32(bits_at<uint8_t>(address));
  }
  return kRounding == OperandRounding::kNone ? value : apply(kRounding, value);
}

template <DType kType>
void store(std::byte* address, float value) {
  store_from_f32(kType, address, value);
}

template <DType kType>
constexpr std::array<Load, 4> kLoads = {
    load<kType, OperandRounding::kNone>,
    load<kType, OperandRounding::kF16>,
    load<kType, OperandRounding::kHf32Bits11>,
    load<kType, OperandRounding::kHf32Bits10>,
};

}  // namespace

Load load_function(DType dtype, OperandRounding rounding) {
  const auto r = static_cast<size_t>(rounding);
  switch (dtype) {
    case DType::kF32:
      return kLoads<DType::kF32>[r];
    case DType::kF16:
      return kLoads<DType::kF16>[r];
    case DType::kBF16:
      return kLoads<DType::kBF16>[r];
    case DType::kHiF8:
      return kLoads<DType::kHiF8>[r];
    case DType::kE4M3:
      return kLoads<DType::kE4M3>[r];
  }
  return nullptr;
}

Store store_function(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return store<DType::kF32>;
    case DType::kF16:
      return store<DType::kF16>;
    case DType::kBF16:
      return store<DType::kBF16>;
    case DType::kHiF8:
      return store<DType::kHiF8>;
    case DType::kE4M3:
      return store<DType::kE4M3>;
  }
  return nullptr;
}

}  // namespace retrograd::engines::reference
