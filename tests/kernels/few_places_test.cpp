// SPDX-License-Identifier: Apache-2.0
// Every number of rows, columns and places that ends in another way, and every type of weights, against plain
// loops.
#include "kernels/cpu/dense/few_places.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cpu/layout/row_convert.h"

namespace retrograd::kernels::cpu::few_places_test {
namespace {

constexpr float kGuard = -2;

// Small integers, which every type holds, and their sums FP32.
float number(int64_t i) { return static_cast<float>(i * 7 % 5) - 2; }

struct Case {
  Case(DType dtype, int64_t rows, int64_t columns, int64_t places)
      : weights(static_cast<size_t>(rows * (columns + 3)), kGuard),
        codes(weights.size() * size_of(dtype) + 1),
        factors(static_cast<size_t>(places * (rows + 1))),
        values(static_cast<size_t>(places * (columns + 2)), kGuard) {
    for (size_t i = 0; i < factors.size(); ++i) factors[i] = number(static_cast<int64_t>(i) + 1);
    f = {.dtype = dtype,
         .weight_stride = columns + 3,
         .rows = rows,
         .columns = columns,
         .factor_stride = rows + 1,
         .places = places,
         .value_stride = columns + 2};
  }
  std::byte* start() { return codes.data() + 1; }  // at any byte
  void encode() { encode_row(f.dtype, weights.data(), static_cast<int64_t>(weights.size()), start()); }
  void decode() { decode_row(f.dtype, start(), static_cast<int64_t>(weights.size()), weights.data()); }
  FewPlaces bound() {
    FewPlaces whole = f;
    whole.weights = start();
    whole.factors = factors.data();
    whole.values = values.data();
    return whole;
  }
  float& weight(int64_t r, int64_t c) { return weights[static_cast<size_t>(r * f.weight_stride + c)]; }
  float& value(int64_t p, int64_t c) { return values[static_cast<size_t>(p * f.value_stride + c)]; }
  float factor(int64_t p, int64_t r) const { return factors[static_cast<size_t>(p * f.factor_stride + r)]; }

  std::vector<float> weights;
  std::vector<std::byte> codes;
  std::vector<float> factors, values;
  FewPlaces f;
};

template <class Body>
void each_case(const Body& body) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kE4M3, DType::kHiF8})
    for (const int64_t rows : {1, 3, 4, 8, 13})
      for (int64_t columns = 1; columns <= 41; ++columns)
        for (const int64_t places : {1, 2, 5}) body(Case(dtype, rows, columns, places));
}

TEST(FewPlaces, AddsRowsOfWeights) {
  each_case([](Case c) {
    for (int64_t r = 0; r < c.f.rows; ++r)
      for (int64_t i = 0; i < c.f.columns; ++i) c.weight(r, i) = number(r * 3 + i);
    c.encode();
    for (int64_t p = 0; p < c.f.places; ++p)
      for (int64_t i = 0; i < c.f.columns; ++i) c.value(p, i) = number(p + i);
    Case want = c;
    for (int64_t p = 0; p < c.f.places; ++p)
      for (int64_t i = 0; i < c.f.columns; ++i)
        for (int64_t r = 0; r < c.f.rows; ++r) want.value(p, i) += c.factor(p, r) * c.weight(r, i);
    add_weight_rows(c.bound());
    EXPECT_EQ(c.values, want.values) << c.f.rows << " x " << c.f.columns << " at " << c.f.places;
  });
}

TEST(FewPlaces, StoresRowsOfWeights) {
  each_case([](Case c) {
    for (int64_t p = 0; p < c.f.places; ++p)
      for (int64_t i = 0; i < c.f.columns; ++i) c.value(p, i) = p < 2 ? number(p + i) : 0;  // sums of up to 8
    c.encode();
    Case want = c;
    for (int64_t r = 0; r < c.f.rows; ++r)
      for (int64_t i = 0; i < c.f.columns; ++i) {
        want.weight(r, i) = 0;
        for (int64_t p = 0; p < c.f.places; ++p) want.weight(r, i) += c.factor(p, r) * c.value(p, i);
      }
    store_weight_rows(c.bound());
    c.decode();
    EXPECT_EQ(c.weights, want.weights) << c.f.rows << " x " << c.f.columns << " at " << c.f.places;
  });
}

TEST(FewPlaces, AddsDotsOfWeights) {
  each_case([](Case c) {
    for (int64_t r = 0; r < c.f.rows; ++r)
      for (int64_t i = 0; i < c.f.columns; ++i) c.weight(r, i) = number(r * 3 + i);
    c.encode();
    for (int64_t p = 0; p < c.f.places; ++p)
      for (int64_t i = 0; i < c.f.columns; ++i) c.value(p, i) = number(p + i);
    c.f.sum_stride = c.f.rows + 2;
    std::vector<float> sums(static_cast<size_t>(c.f.places * c.f.sum_stride), 3), want = sums;
    for (int64_t p = 0; p < c.f.places; ++p)
      for (int64_t r = 0; r < c.f.rows; ++r)
        for (int64_t i = 0; i < c.f.columns; ++i)
          want[static_cast<size_t>(p * c.f.sum_stride + r)] += c.weight(r, i) * c.value(p, i);
    FewPlaces bound = c.bound();
    bound.sums = sums.data();
    add_weight_dots(bound);
    EXPECT_EQ(sums, want) << c.f.rows << " x " << c.f.columns << " at " << c.f.places;
  });
}

}  // namespace
}  // namespace retrograd::kernels::cpu::few_places_test
