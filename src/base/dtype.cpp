// SPDX-License-Identifier: Apache-2.0
// Names and sizes of the element types, and the switch from a type known at run time to its codec.
#include "base/dtype.h"

#include <array>
#include <cstring>

namespace retrograd {
namespace {

struct Entry {
  std::string_view name;
  size_t size;
};

// In the order of DType.
constexpr std::array<Entry, kDTypeCount> kEntries{
    {{"f32", 4}, {"f16", 2}, {"bf16", 2}, {"hif8", 1}, {"e4m3", 1}}};

const Entry& entry_of(DType dtype) { return kEntries[static_cast<size_t>(dtype)]; }

// memcpy, because a caller's tensor may start at any byte.
template <class T>
T load(const void* address) {
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

template <class T>
void store(void* address, T value) {
  std::memcpy(address, &value, sizeof value);
}

}  // namespace

size_t size_of(DType dtype) { return entry_of(dtype).size; }

std::string_view name_of(DType dtype) { return entry_of(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (size_t i = 0; i < kEntries.size(); ++i)
    if (kEntries[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

float apply(OperandRounding rounding, float value) {
  switch (rounding) {
    case OperandRounding::kNone:
      break;
    case OperandRounding::kF16:
      return f16_to_f32(f32_to_f16(value));
    case OperandRounding::kHf32Bits11:
      return round_to_hf32(value, 11);
    case OperandRounding::kHf32Bits10:
      return round_to_hf32(value, 10);
  }
  return value;
}

float load_as_f32(DType dtype, const void* address) {
  switch (dtype) {
    case DType::kF32:
      break;
    case DType::kF16:
      return f16_to_f32(load<uint16_t>(address));
    case DType::kBF16:
      return bf16_to_f32(load<uint16_t>(address));
    case DType::kHiF8:
      return hif8_to_f32(load<uint8_t>(address));
    case DType::kE4M3:
      return e4m3_to_f32(load<uint8_t>(address));
  }
  return load<float>(address);
}

void store_from_f32(DType dtype, void* address, float value) {
  switch (dtype) {
    case DType::kF32:
      return store(address, value);
    case DType::kF16:
      return store(address, f32_to_f16(value));
    case DType::kBF16:
      return store(address, f32_to_bf16(value));
    case DType::kHiF8:
      return store(address, f32_to_hif8(value));
    case DType::kE4M3:
      return store(address, f32_to_e4m3(value));
  }
}

}  // namespace retrograd
