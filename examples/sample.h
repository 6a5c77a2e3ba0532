// SPDX-License-Identifier: Apache-2.0
// What every sample needs: tensors on the host with known contents, and a report of how a result compares.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace sample {

using Shape = std::vector<int64_t>;

inline int64_t product(Shape::const_iterator begin, Shape::const_iterator end) {
  int64_t result = 1;
  for (; begin != end; ++begin) result *= *begin;
  return result;
}

// Dense, row-major.
struct Tensor {
  Tensor(const Shape& sizes, float value)
      : shape(sizes), values(static_cast<size_t>(product(sizes.begin(), sizes.end())), value) {}
  float operator[](int64_t index) const { return values[static_cast<size_t>(index)]; }
  size_t bytes() const { return values.size() * sizeof(float); }

  Shape shape;
  std::vector<float> values;
};

// A fixed sequence, the same on every machine: hundredths from -1.28 to 1.27. Few of them are exact in
// binary, so the differences reported below are those of real data, not a flattering zero.
inline Tensor numbers(const Shape& shape, uint32_t seed) {
  Tensor tensor(shape, 0.0f);
  for (float& value : tensor.values) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<int>(seed >> 24) - 128) / 100.0f;
  }
  return tensor;
}

// For the gradients: an element that an operator forgets to write stays NaN and is reported.
inline Tensor unwritten(const Shape& shape) { return Tensor(shape, std::nanf("")); }

// One element of a result, added up in double.
struct Sum {
  void add(double term) {
    value += term;
    magnitude += std::fabs(term);
    ++terms;
  }
  // n products added in FP32, in any order, are off by at most n * u * (sum of their magnitudes) to first
  // order, with u half of FLT_EPSILON; the other half covers the higher orders. No terms: exactly zero.
  double tolerance() const { return terms * static_cast<double>(FLT_EPSILON) * magnitude; }

  double value = 0.0, magnitude = 0.0;
  int terms = 0;
};

struct Sums {
  explicit Sums(size_t count) : elements(count) {}
  Sum& operator[](int64_t index) { return elements[static_cast<size_t>(index)]; }

  std::vector<Sum> elements;
};

inline void print(const char* name, const Tensor& tensor) {
  const size_t shown = 24, row = 12;
  std::printf("%s (", name);
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    std::printf(i > 0 ? ", %lld" : "%lld", static_cast<long long>(tensor.shape[i]));
  }
  std::printf(")");
  for (size_t i = 0; i < std::min(shown, tensor.values.size()); ++i) {
    std::printf(i % row == 0 ? "\n %8.4f" : " %8.4f", static_cast<double>(tensor.values[i]));
  }
  std::printf(tensor.values.size() > shown ? " ...\n" : "\n");
}

// Prints the gradient and its worst difference; 1 when an element is further off than FP32 explains, else 0.
inline int report(const char* name, const Tensor& got, const Sums& expected) {
  double worst = 0.0;
  int wrong = 0;
  print(name, got);
  for (size_t i = 0; i < got.values.size(); ++i) {
    const Sum& sum = expected.elements[i];
    const double difference = std::fabs(static_cast<double>(got.values[i]) - sum.value);
    // Both conditions are written so that a NaN, of which every comparison is false, is kept and is wrong.
    if (difference > worst || std::isnan(difference)) worst = difference;
    if (!(difference <= sum.tolerance()) && wrong == 0) {
      std::printf("  element %zu is %.9g, expected %.9g within %.3g\n", i, static_cast<double>(got.values[i]),
                  sum.value, sum.tolerance());
      wrong = 1;
    }
  }
  std::printf("  worst difference from plain loops: %.3g\n", worst);
  return wrong;
}

}  // namespace sample
