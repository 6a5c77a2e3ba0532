// SPDX-License-Identifier: Apache-2.0
// Products of a matrix of weights with few places, at the speed of memory: each weight is read, or written,
// once and where it lies.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace retrograd::kernels::cpu {

struct FewPlaces {
  DType dtype = DType::kF32;     // of the weights
  std::byte* weights = nullptr;  // row r at r·weight_stride elements
  int64_t weight_stride = 0;
  int64_t rows = 0, columns = 0;   // of the weights
  const float* factors = nullptr;  // of row r at place p: factors[p·factor_stride + r]
  int64_t factor_stride = 0;
  int64_t places = 0;
  float* values = nullptr;  // of column c at place p: values[p·value_stride + c]
  int64_t value_stride = 0;
  float* sums = nullptr;  // of row r at place p: sums[p·sum_stride + r]
  int64_t sum_stride = 0;
};

// values[p][c] += Σ_r factors[p][r] · weights[r][c]
void add_weight_rows(const FewPlaces& f);
// weights[r][c] = Σ_p factors[p][r] · values[p][c]
void store_weight_rows(const FewPlaces& f);

// sums[p][r] += Σ_c weights[r][c] · values[p][c]: a sum a lane, then those of the lanes
void add_weight_dots(const FewPlaces& f);

}  // namespace retrograd::kernels::cpu
