// SPDX-License-Identifier: Apache-2.0
// Sums of rows and columns against sums in double: exact on small integers,
// whatever the sizes and strides.
#include "kernels/cpu/bias/row_reduce.h"

#include <gtest/gtest.h>

#include <vector>

namespace retrograd::kernels::cpu::row_reduce_test {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kHiF8, DType::kE4M3};

// Between values that would show in any sum: 8 elements before the first and
// behind the last. At an odd address.
class Guarded {
 public:
  Guarded(DType dtype, int64_t count) : dtype_(dtype), bytes_(static_cast<int64_t>(size_of(dtype))) {
    storage_.resize(static_cast<size_t>((count + 16) * bytes_ + 1));
    for (int64_t i = -8; i < count + 8; ++i)
      store_from_f32(dtype, address(i),
                     i < 0 || i >= count ? 224.0F : static_cast<float>((i * 5 + i / 7) % 15 - 6));
  }
  std::byte* address(int64_t i) { return storage_.data() + 1 + (i + 8) * bytes_; }
  double operator[](int64_t i) { return load_as_f32(dtype_, address(i)); }

 private:
  DType dtype_;
  int64_t bytes_;
  std::vector<std::byte> storage_;
};

TEST(RowReduce, RowsOfEveryLength) {
  for (const DType dtype : kTypes)
    for (const int64_t rows : {0, 1, 2, 5})
      for (const int64_t gap : {0, 3})
        for (int64_t count = 0; count <= 100; ++count) {
          const int64_t stride = count + gap;
          Guarded in(dtype, rows == 0 ? 0 : (rows - 1) * stride + count);
          double want = 0;
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t i = 0; i < count; ++i) want += in[r * stride + i];
          ASSERT_EQ(sum_rows(dtype, in.address(0), stride, rows, count), want)
              << name_of(dtype) << " " << rows << " rows of " << count;
        }
}

TEST(RowReduce, LongRowsAreNotSummedInSinglePrecisionAlone) {
  // 2^24 + 1 is no FP32 number: a sum in FP32 would stay at 2^24.
  const int64_t count = (int64_t{1} << 24) / 64 + 8192;
  const std::vector<float> in(static_cast<size_t>(count), 64.0F);
  const double sum = sum_rows(DType::kF32, reinterpret_cast<const std::byte*>(in.data()), 0, 1, count);
  EXPECT_EQ(sum, 64.0 * static_cast<double>(count));
}

TEST(RowReduce, ColumnsOfEveryCount) {
  for (const DType dtype : kTypes)
    for (const int64_t positions : {0, 1, 127, 128, 129, 300})
      for (const int64_t gap : {0, 3})
        for (const int64_t columns : {1, 2, 3, 4, 7, 8, 15, 16, 31, 33, 64, 95, 130}) {
          const int64_t stride = columns + gap;
          Guarded in(dtype, positions == 0 ? 0 : (positions - 1) * stride + columns);
          std::vector<double> sums(static_cast<size_t>(columns + 1), 0.5), want = sums;
          for (int64_t p = 0; p < positions; ++p)
            for (int64_t c = 0; c < columns; ++c) want[static_cast<size_t>(c)] += in[p * stride + c];
          add_columns(dtype, in.address(0), stride, positions, columns, sums.data());
          ASSERT_EQ(sums, want) << name_of(dtype) << " " << positions << " positions of " << columns;
        }
}

}  // namespace
}  // namespace retrograd::kernels::cpu::row_reduce_test
