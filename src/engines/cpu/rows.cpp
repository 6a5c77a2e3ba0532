// SPDX-License-Identifier: Apache-2.0
// Conversions at the edge of the CPU engine: strides here, types in kernels/cpu/row_convert.
#include "engines/cpu/rows.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/layout/row_convert.h"
#include "kernels/cpu/layout/row_copy.h"
#include "kernels/cpu/layout/row_space.h"
#include "kernels/cpu/layout/transpose.h"

namespace retrograd::engines::cpu {
namespace {

namespace kernels = retrograd::kernels::cpu;
using problem::PassTensor;

// Elements that are gathered into a buffer, or rounded, at a time: they stay in L1.
constexpr int64_t kChunk = 256;

// out[i] = in[i], places `in_stride` and `out_stride` elements apart.
template <size_t kBytes>
void copy_strided(const std::byte* in, int64_t in_stride, std::byte* out, int64_t out_stride, int64_t count) {
  constexpr auto kStep = static_cast<int64_t>(kBytes);
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(out + i * out_stride * kStep, in + i * in_stride * kStep, kBytes);
}

// out[i] = in[2·i] for codes of two bytes. But for the last one, each is read with its neighbour: compilers
// make vectors of it.
void pick_every_other(const std::byte* in, std::byte* out, int64_t count) {
  for (int64_t i = 0; i < count - 1; ++i) {
    uint32_t pair = 0;
    std::memcpy(&pair, in + 4 * i, sizeof pair);
    const auto code = static_cast<uint16_t>(pair);
    std::memcpy(out + 2 * i, &code, sizeof code);
  }
  copy_strided<2>(in + 4 * (count - 1), 1, out + 2 * (count - 1), 1, 1);
}

void copy_strided(DType dtype, const std::byte* in, int64_t in_stride, std::byte* out, int64_t out_stride,
                  int64_t count) {
  if (size_of(dtype) == 2 && in_stride == 2 && out_stride == 1 && count > 0)
    return pick_every_other(in, out, count);
  switch (size_of(dtype)) {
    case 4:
      return copy_strided<4>(in, in_stride, out, out_stride, count);
    case 2:
      return copy_strided<2>(in, in_stride, out, out_stride, count);
    default:
      return copy_strided<1>(in, in_stride, out, out_stride, count);
  }
}

std::byte* bytes_of(float* values) { return reinterpret_cast<std::byte*>(values); }
const std::byte* bytes_of(const float* values) { return reinterpret_cast<const std::byte*>(values); }

// Channels × places, from memory where the channels of a place lie together: what is read is turned over.
void load_turned(const PassTensor& tensor, OperandRounding rounding, const std::byte* source,
                 int64_t channels, int64_t places, float* out, int64_t out_stride) {
  const int64_t stride = tensor.strides[4];
  if (is_plain(tensor, rounding)) {
    kernels::transpose(reinterpret_cast<const float*>(source), stride, out, out_stride, places, channels);
    return;
  }
  constexpr int64_t kFloats = 1024, kChannels = 64, kWanted = 16;
  const auto bytes = static_cast<int64_t>(size_of(tensor.dtype));
  alignas(64) std::array<float, kFloats> block;
  const int64_t wide = std::min(channels, kChannels);
  const int64_t high = kFloats / wide / kWanted * kWanted;  // places at once
  for (int64_t p = 0; p < places; p += high)
    for (int64_t c = 0; c < channels; c += wide) {
      const int64_t rows = std::min(high, places - p), cols = std::min(wide, channels - c);
      load_rows(tensor.dtype, rounding, source + (p * stride + c) * bytes, stride, rows, cols, block.data(),
                cols);
      kernels::transpose(block.data(), cols, out + c * out_stride + p, out_stride, rows, cols);
    }
}

// The part of a box that lies inside the tensor along one axis, as places of the box.
struct Inside {
  Inside(int64_t start, int64_t extent, int64_t size)
      : begin(std::clamp<int64_t>(-start, 0, extent)), end(std::clamp(size - start, begin, extent)) {}
  int64_t begin, end;
};

class StripLoader {
 public:
  StripLoader(const PassTensor& tensor, OperandRounding rounding, const std::byte* source,
              const StripShape& shape, float* out)
      : tensor_(tensor),
        rounding_(rounding),
        source_(source),
        s_(shape),
        out_(out),
        d_(shape.start[0], shape.extent[0], shape.size[0]),
        h_(shape.start[1], shape.extent[1], shape.size[1]),
        w_(shape.start[2], shape.extent[2], shape.size[2]) {}

  void run() const {
    const int64_t area = s_.extent[1] * s_.extent[2];
    if (w_.begin == w_.end || h_.begin == h_.end || d_.begin == d_.end) {
      for (int64_t c = 0; c < s_.channels; ++c) std::fill_n(out_ + c * s_.pitch(), s_.plane(), 0.0F);
      return;
    }
    if (load_joined()) return;
    for (int64_t c = 0; c < s_.channels; ++c) {
      float* const plane = out_ + c * s_.pitch();
      std::fill_n(plane, d_.begin * area, 0.0F);
      std::fill(plane + d_.end * area, plane + s_.plane(), 0.0F);
    }
    // Channels that lie together are read together, unless places do too.
    const bool turned = is_channels_last(tensor_) && s_.channels > 1;
    for (int64_t d = d_.begin; d < d_.end; ++d) {
      for (int64_t c = 0; c < s_.channels; ++c) pad_ends(out_ + c * s_.pitch() + d * area);
      if (turned) {
        load_area(0, s_.channels, d);
      } else {
        for (int64_t c = 0; c < s_.channels; ++c) load_area(c, 1, d);
      }
    }
  }

 private:
  // A box without padding whose places follow each other in memory, and perhaps its channels too: rows as
  // long as can be.
  bool load_joined() const {
    const auto& [depth, height, width] = s_.extent;
    const auto& s = tensor_.strides;
    if (w_.end - w_.begin < width || h_.end - h_.begin < height || d_.end - d_.begin < depth) return false;
    if (s[4] != 1 || (height > 1 && s[3] != width) || (depth > 1 && s[2] != height * width)) return false;
    const auto bytes = static_cast<int64_t>(size_of(tensor_.dtype));
    const bool one = s[1] == s_.plane() && s_.pitch() == s_.plane();
    const int64_t rows = one ? 1 : s_.channels, count = one ? s_.channels * s_.plane() : s_.plane();
    const std::byte* from = source_ + (s_.start[0] * s[2] + s_.start[1] * s[3] + s_.start[2]) * bytes;
    for (int64_t row = 0; row < rows; ++row, from += s[1] * bytes) {
      if (row + 1 < rows) fetch(from + s[1] * bytes, count);
      load_row(tensor_.dtype, rounding_, from, 1, count, out_ + row * s_.pitch());
    }
    return true;
  }

  // The next channel begins far from where the last row ended: what the processor fetches ahead by itself
  // comes too late for its first lines. There need not be one; an address that is none is not fetched.
  void fetch(const std::byte* row, int64_t count) const {
    constexpr int64_t kLine = 64, kMostLines = 16;
    const int64_t bytes = std::min(count * static_cast<int64_t>(size_of(tensor_.dtype)), kMostLines * kLine);
    for (int64_t i = 0; i < bytes; i += kLine) __builtin_prefetch(row + i);
  }

  // Places of the area outside the tensor, those between its rows apart.
  void pad_ends(float* area) const {
    const int64_t width = s_.extent[2];
    std::fill_n(area, h_.begin * width + w_.begin, 0.0F);
    std::fill(area + (h_.end - 1) * width + w_.end, area + s_.extent[1] * width, 0.0F);
  }
  void pad_gaps(float* area) const {
    const int64_t width = s_.extent[2];
    const int64_t gap = w_.begin + width - w_.end;  // behind one row and before the next
    if (gap > 0)
      for (int64_t h = h_.begin; h + 1 < h_.end; ++h) std::fill_n(area + h * width + w_.end, gap, 0.0F);
  }

  void load_area(int64_t channel, int64_t channels, int64_t d) const {
    const auto& strides = tensor_.strides;
    const auto bytes = static_cast<int64_t>(size_of(tensor_.dtype));
    const int64_t width = s_.extent[2];
    // Rows that follow each other on both sides are one.
    const bool joined = w_.end - w_.begin == width && strides[3] == width * strides[4];
    const int64_t rows = joined ? 1 : h_.end - h_.begin;
    const int64_t count = joined ? (h_.end - h_.begin) * width : w_.end - w_.begin;
    const int64_t first = channel * strides[1] + (s_.start[0] + d) * strides[2] +
                          (s_.start[1] + h_.begin) * strides[3] + (s_.start[2] + w_.begin) * strides[4];
    float* to = out_ + channel * s_.pitch() + (d * s_.extent[1] + h_.begin) * width + w_.begin;
    if (channels == 1 && is_plain(tensor_, rounding_) && strides[4] == 1)
      return kernels::copy_rows_apart(reinterpret_cast<const float*>(source_) + first, strides[3], to, width,
                                      rows, count, strides[1]);
    for (int64_t c = 0; c < channels; ++c)
      pad_gaps(out_ + (channel + c) * s_.pitch() + d * s_.extent[1] * width);
    fetch(source_ + (first + strides[1]) * bytes, channels == 1 && strides[4] == 1 ? count : 0);
    for (int64_t row = 0; row < rows; ++row, to += width) {
      const std::byte* from = source_ + (first + row * strides[3]) * bytes;
      if (channels == 1) {
        if (strides[4] == 2) fetch(from + strides[1] * bytes, 2 * count);
        load_row(tensor_.dtype, rounding_, from, strides[4], count, to);
      } else {
        load_turned(tensor_, rounding_, from, channels, count, to, s_.pitch());
      }
    }
  }

  const PassTensor& tensor_;
  OperandRounding rounding_;
  const std::byte* source_;
  const StripShape& s_;
  float* out_;
  Inside d_, h_, w_;
};

}  // namespace

void load_row(DType dtype, OperandRounding rounding, const std::byte* source, int64_t stride, int64_t count,
              float* out) {
  if (stride == 1 && rounding == OperandRounding::kNone)
    return kernels::decode_row(dtype, source, count, out);
  const auto bytes = static_cast<int64_t>(size_of(dtype));
  for (int64_t i = 0; i < count; i += kChunk) {
    const int64_t part = std::min(kChunk, count - i);
    const std::byte* from = source + i * stride * bytes;
    if (stride == 1) {
      kernels::decode_row(dtype, from, part, out + i);
    } else if (dtype == DType::kF32 && stride == 2) {
      kernels::pick_every_other(reinterpret_cast<const float*>(from), out + i, part);
    } else if (dtype == DType::kF32) {
      copy_strided<4>(from, stride, bytes_of(out + i), 1, part);
    } else {
      std::array<std::byte, 2 * kChunk> codes;
      copy_strided(dtype, from, stride, codes.data(), 1, part);
      kernels::decode_row(dtype, codes.data(), part, out + i);
    }
    kernels::round_row(rounding, out + i, part);
  }
}

void store_row(DType dtype, std::byte* destination, int64_t stride, const float* row, int64_t row_stride,
               int64_t count) {
  if (stride == 1 && row_stride == 1) return kernels::encode_row(dtype, row, count, destination);
  if (dtype == DType::kF32) return copy_strided<4>(bytes_of(row), row_stride, destination, stride, count);
  const auto bytes = static_cast<int64_t>(size_of(dtype));
  for (int64_t i = 0; i < count; i += kChunk) {
    const int64_t part = std::min(kChunk, count - i);
    std::array<float, kChunk> values;
    std::array<std::byte, 2 * kChunk> codes;
    copy_strided<4>(bytes_of(row + i * row_stride), row_stride, bytes_of(values.data()), 1, part);
    kernels::encode_row(dtype, values.data(), part, codes.data());
    copy_strided(dtype, codes.data(), 1, destination + i * stride * bytes, stride, part);
  }
}

void load_rows(DType dtype, OperandRounding rounding, const std::byte* source, int64_t step, int64_t rows,
               int64_t count, float* out, int64_t pitch) {
  if (step == count && pitch == count) return load_row(dtype, rounding, source, 1, rows * count, out);
  if (dtype == DType::kF32 && rounding == OperandRounding::kNone)
    return kernels::copy_rows(reinterpret_cast<const float*>(source), step, out, pitch, rows, count);
  kernels::decode_rows(dtype, source, step, rows, count, out, pitch);
  if (rounding == OperandRounding::kNone) return;
  for (int64_t r = 0; r < rows; ++r) kernels::round_row(rounding, out + r * pitch, count);
}

void store_rows(DType dtype, std::byte* destination, int64_t step, const float* values, int64_t pitch,
                int64_t rows, int64_t count) {
  if (step == count && pitch == count) return kernels::encode_row(dtype, values, rows * count, destination);
  if (dtype == DType::kF32)
    return kernels::copy_rows(values, pitch, reinterpret_cast<float*>(destination), step, rows, count);
  kernels::encode_rows(dtype, values, pitch, rows, count, destination, step);
}

void store_turned(DType dtype, std::byte* destination, int64_t stride, const float* values, int64_t pitch,
                  int64_t rows, int64_t columns) {
  if (dtype == DType::kF32)
    return kernels::transpose(values, pitch, reinterpret_cast<float*>(destination), stride, rows, columns);
  constexpr int64_t kFloats = 4096, kMostRows = 1024;
  alignas(64) std::array<float, kFloats> block;
  const auto bytes = static_cast<int64_t>(size_of(dtype));
  for (int64_t r = 0; r < rows; r += kMostRows) {
    const int64_t high = std::min(kMostRows, rows - r), at_once = kFloats / high;
    for (int64_t c = 0; c < columns; c += at_once) {
      const int64_t wide = std::min(at_once, columns - c);
      std::byte* out = destination + (c * stride + r) * bytes;
      kernels::transpose(values + r * pitch + c, pitch, block.data(), high, high, wide);
      store_rows(dtype, out, stride, block.data(), high, wide, high);
    }
  }
}

bool all_finite(const float* values, int64_t count) { return kernels::all_finite(values, count); }

void load_strip(const PassTensor& tensor, OperandRounding rounding, const std::byte* source,
                const StripShape& shape, float* out) {
  StripLoader(tensor, rounding, source, shape, out).run();
}

}  // namespace retrograd::engines::cpu
