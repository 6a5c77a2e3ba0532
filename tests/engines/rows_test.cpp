// SPDX-License-Identifier: Apache-2.0
// Rows and strips of every type, stride, rounding and place of the box, against one element after the other.
#include "engines/cpu/rows.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace retrograd::engines::cpu {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kHiF8, DType::kE4M3};

// Elements of small values that every type holds, in memory that starts at an odd address if asked to.
struct Memory {
  Memory(DType type, int64_t count, int64_t shift) : dtype(type), start(shift) {
    const auto bytes = static_cast<int64_t>(size_of(dtype));
    storage.resize(static_cast<size_t>(count * bytes + start));
    for (int64_t i = 0; i < count; ++i)
      store_from_f32(dtype, storage.data() + start + i * bytes,
                     static_cast<float>((i * 7 + i / 13) % 15 - 7));
  }
  const std::byte* at(int64_t element) const {
    return storage.data() + start + element * static_cast<int64_t>(size_of(dtype));
  }
  std::byte* at(int64_t element) { return const_cast<std::byte*>(std::as_const(*this).at(element)); }
  float operator[](int64_t element) const { return load_as_f32(dtype, at(element)); }
  DType dtype;
  int64_t start;
  std::vector<std::byte> storage;
};

TEST(RowsTest, AnyStrideAndLength) {
  for (const DType dtype : kTypes)
    for (const int64_t stride : {1, 2, 7, -1, -3, 0})
      for (const int64_t count : {0, 1, 3, 17, 255, 256, 257, 600}) {
        const Memory in(dtype, 7 * 600, 1);
        const int64_t first = stride < 0 ? -stride * 600 : 0;
        std::vector<float> out(static_cast<size_t>(count) + 1, -99);
        load_row(dtype, OperandRounding::kNone, in.at(first), stride, count, out.data());
        for (int64_t i = 0; i < count; ++i)
          ASSERT_EQ(out[static_cast<size_t>(i)], in[first + i * stride]) << name_of(dtype) << stride;
        EXPECT_EQ(out.back(), -99);
        if (stride == 0) continue;
        Memory back(dtype, 7 * 600, 1), want = back;
        for (const int64_t row_stride : {0, 1, 5}) {
          std::vector<float> row(static_cast<size_t>(count * 5 + 1));
          for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>(i % 8);
          store_row(dtype, back.at(first), stride, row.data(), row_stride, count);
          for (int64_t i = 0; i < count; ++i)
            store_from_f32(dtype, want.at(first + i * stride), row[static_cast<size_t>(i * row_stride)]);
          ASSERT_EQ(back.storage, want.storage) << name_of(dtype) << " stride " << stride << ", " << count;
        }
      }
}

TEST(RowsTest, RoundsEveryElement) {
  const float fine = 1.0F + 0x1p-11F + 0x1p-20F;
  for (const OperandRounding rounding :
       {OperandRounding::kF16, OperandRounding::kHf32Bits11, OperandRounding::kHf32Bits10})
    for (const int64_t stride : {1, 2}) {
      const std::vector<float> in(1200, fine);
      std::vector<float> out(600);
      load_row(DType::kF32, rounding, reinterpret_cast<const std::byte*>(in.data()), stride, 600, out.data());
      for (const float value : out) ASSERT_EQ(value, apply(rounding, fine));
    }
}

struct Layout {
  const char* name;
  problem::Strides5 strides;
};

void expect_strip(const Layout& layout, const Memory& in, const StripShape& shape) {
  const problem::PassTensor tensor{.dtype = in.dtype, .strides = layout.strides};
  const int64_t base = 1 << 15;
  const auto floats = static_cast<size_t>(shape.channels * shape.plane());
  std::vector<float> out(floats + 1, -99), want = out;
  load_strip(tensor, OperandRounding::kNone, in.at(base), shape, out.data());
  float* next = want.data();
  for (int64_t c = 0; c < shape.channels; ++c)
    for (int64_t d = 0; d < shape.extent[0]; ++d)
      for (int64_t h = 0; h < shape.extent[1]; ++h)
        for (int64_t w = 0; w < shape.extent[2]; ++w) {
          const std::array<int64_t, 3> place{shape.start[0] + d, shape.start[1] + h, shape.start[2] + w};
          bool inside = true;
          for (size_t axis = 0; axis < 3; ++axis)
            inside = inside && place[axis] >= 0 && place[axis] < shape.size[axis];
          const auto& s = layout.strides;
          *next++ = inside ? in[base + c * s[1] + place[0] * s[2] + place[1] * s[3] + place[2] * s[4]] : 0.0F;
        }
  ASSERT_EQ(out, want) << layout.name << " " << name_of(in.dtype) << " " << shape.channels
                       << " channels from " << shape.start[0] << "," << shape.start[1] << ","
                       << shape.start[2];
}

TEST(RowsTest, StripsOfEveryLayout) {
  const std::array<int64_t, 3> size{3, 5, 18};
  for (const DType dtype : kTypes) {
    const Memory in(dtype, 1 << 16, 1);
    for (const int64_t channels : {1, 3, 20, 70}) {
      const Layout layouts[] = {{"planes", {0, 270, 90, 18, 1}},
                                {"channels last", {0, 1, 90 * channels, 18 * channels, channels}},
                                {"a slice of channels last", {0, 1, 100 * channels, 19 * channels, channels}},
                                {"reversed", {0, 270, -90, -18, -1}},
                                {"broadcast", {0, 0, 0, 0, 0}}};
      for (const Layout& layout : layouts)
        for (const int64_t start : {-2, 0, 1})
          for (const int64_t w : {-30, -2, 0, 4, 17, 18})
            for (const int64_t width : {1, 18, 21})
              expect_strip(
                  layout, in,
                  {.channels = channels, .start = {start, -start, w}, .extent = {2, 4, width}, .size = size});
    }
  }
}

TEST(RowsTest, StripsOfWholePlanes) {
  for (const DType dtype : kTypes) {
    const Memory in(dtype, 1 << 16, 1);
    for (const int64_t gap : {0, 5})  // between channels
      for (const int64_t first : {0, 1})
        for (const int64_t channels : {1, 3, 20})
          expect_strip({"planes", {0, 270 + gap, 90, 18, 1}}, in,
                       {.channels = channels,
                        .start = {first, 0, 0},
                        .extent = {3 - first, 5, 18},
                        .size = {INT64_MAX, INT64_MAX, INT64_MAX}});
  }
}

TEST(RowsTest, StoresTurnedOver) {
  const int64_t columns = 37, pitch = 40;
  for (const DType dtype : kTypes)
    for (const int64_t rows : {1, 9, 128, 1024, 1025, 2050})
      for (const int64_t stride : {rows, rows + 3}) {
        std::vector<float> values(static_cast<size_t>(rows * pitch));
        for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 8) - 3;
        Memory out(dtype, columns * stride, 0), want = out;
        store_turned(dtype, out.at(0), stride, values.data(), pitch, rows, columns);
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < columns; ++c)
            store_from_f32(dtype, want.at(c * stride + r), values[static_cast<size_t>(r * pitch + c)]);
        ASSERT_EQ(out.storage, want.storage)
            << name_of(dtype) << " " << rows << " rows " << stride << " apart";
      }
}

}  // namespace
}  // namespace retrograd::engines::cpu
