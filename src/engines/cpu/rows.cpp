// SPDX-License-Identifier: Apache-2.0
// Conversions at the edge of the CPU engine.
#include "engines/cpu/rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace retrograd::engines::cpu {
namespace {

template <class Bits, class Decode>
void decode_row(const std::byte* source, int64_t stride, int64_t count, float* out, Decode decode) {
  for (int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, source + i * stride * static_cast<int64_t>(sizeof(Bits)), sizeof(Bits));
    out[i] = decode(bits);
  }
}

template <class Bits, class Encode>
void encode_row(std::byte* destination, int64_t stride, const float* row, int64_t row_stride, int64_t count,
                Encode encode) {
  for (int64_t i = 0; i < count; ++i) {
    const Bits bits = encode(row[i * row_stride]);
    std::memcpy(destination + i * stride * static_cast<int64_t>(sizeof(Bits)), &bits, sizeof(Bits));
  }
}

float same(float value) { return value; }

}  // namespace

void load_row(DType dtype, OperandRounding rounding, const std::byte* source, int64_t stride, int64_t count,
              float* out) {
  switch (dtype) {
    case DType::kF32:
      if (stride == 1) {
        std::memcpy(out, source, static_cast<size_t>(count) * sizeof(float));
      } else {
        decode_row<float>(source, stride, count, out, same);
      }
      break;
    case DType::kF16:
      decode_row<uint16_t>(source, stride, count, out, f16_to_f32);
      break;
    case DType::kBF16:
      decode_row<uint16_t>(source, stride, count, out, bf16_to_f32);
      break;
    case DType::kHiF8:
      decode_row<uint8_t>(source, stride, count, out, hif8_to_f32);
      break;
    case DType::kE4M3:
      decode_row<uint8_t>(source, stride, count, out, e4m3_to_f32);
      break;
  }
  if (rounding == OperandRounding::kNone) return;
  for (int64_t i = 0; i < count; ++i) out[i] = apply(rounding, out[i]);
}

void store_row(DType dtype, std::byte* destination, int64_t stride, const float* row, int64_t row_stride,
               int64_t count) {
  switch (dtype) {
    case DType::kF32:
      return encode_row<float>(destination, stride, row, row_stride, count, same);
    case DType::kF16:
      return encode_row<uint16_t>(destination, stride, row, row_stride, count, f32_to_f16);
    case DType::kBF16:
      return encode_row<uint16_t>(destination, stride, row, row_stride, count, f32_to_bf16);
    case DType::kHiF8:
      return encode_row<uint8_t>(destination, stride, row, row_stride, count, f32_to_hif8);
    case DType::kE4M3:
      return encode_row<uint8_t>(destination, stride, row, row_stride, count, f32_to_e4m3);
  }
}

bool all_finite(const float* values, int64_t count) {
  // No early exit, so that it vectorises.
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) finite &= std::abs(values[i]) <= std::numeric_limits<float>::max();
  return finite;
}

void load_strip(const problem::PassTensor& tensor, OperandRounding rounding, const std::byte* source,
                const StripShape& s, float* out) {
  const auto width = static_cast<int64_t>(size_of(tensor.dtype));
  const auto& [first_d, first_h, first_w] = s.start;
  const auto& [extent_d, extent_h, extent_w] = s.extent;
  // The part of a row that lies inside the tensor.
  const int64_t begin = std::clamp<int64_t>(-first_w, 0, extent_w);
  const int64_t end = std::clamp(s.size[2] - first_w, begin, extent_w);
  for (int64_t c = 0; c < s.channels; ++c)
    for (int64_t d = first_d; d < first_d + extent_d; ++d)
      for (int64_t h = first_h; h < first_h + extent_h; ++h, out += extent_w) {
        if (d < 0 || d >= s.size[0] || h < 0 || h >= s.size[1]) {
          std::fill_n(out, extent_w, 0.0F);
          continue;
        }
        std::fill_n(out, begin, 0.0F);
        const int64_t at = c * tensor.strides[1] + d * tensor.strides[2] + h * tensor.strides[3] +
                           (first_w + begin) * tensor.strides[4];
        if (begin < end)
          load_row(tensor.dtype, rounding, source + at * width, tensor.strides[4], end - begin, out + begin);
        std::fill_n(out + end, extent_w - end, 0.0F);
      }
}

}  // namespace retrograd::engines::cpu
