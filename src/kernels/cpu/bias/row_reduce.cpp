// SPDX-License-Identifier: Apache-2.0
// Sums along rows and columns, once for every instruction set.
#include "kernels/cpu/bias/row_reduce.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/bias/row_reduce.cpp"
#include "kernels/cpu/all_targets.h"
#include "kernels/cpu/elements-inl.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {

constexpr int64_t kSideBySide = 32;           // sums that a row is dealt out to
constexpr int64_t kInSinglePrecision = 8192;  // elements, before what they give is added in double

// Element i of a row goes to sum i mod 32; the sums are added as a tree.
class RowSum {
 public:
  template <class E>
  HWY_INLINE void add(const E& elements, const std::byte* HWY_RESTRICT row, int64_t count) {
    const Floats<kLanes> d;
    hn::Vec<Floats<kLanes>> sums[kVectors];
    for (int v = 0; v < kVectors; ++v) sums[v] = hn::Load(d, sums_ + v * kLanes);
    int64_t i = 0;
    for (; i + kSideBySide <= count; i += kSideBySide)
      for (int v = 0; v < kVectors; ++v)
        sums[v] = hn::Add(sums[v], elements.load(d, row + (i + v * kLanes) * E::kBytes));
    for (int v = 0; v < kVectors; ++v) {
      const int64_t left = std::min<int64_t>(count - i - v * kLanes, kLanes);
      if (left > 0)
        sums[v] = hn::Add(sums[v], load_first(elements, d, row + (i + v * kLanes) * E::kBytes, left));
    }
    for (int v = 0; v < kVectors; ++v) hn::Store(sums[v], d, sums_ + v * kLanes);
  }

  HWY_INLINE double take() {
    for (int half = kSideBySide / 2; half >= 4; half /= 2)
      for (int i = 0; i < half; ++i) sums_[i] += sums_[i + half];
    const double sum = (double{sums_[0]} + double{sums_[2]}) + (double{sums_[1]} + double{sums_[3]});
    std::fill_n(sums_, kSideBySide, 0.0F);
    return sum;
  }

 private:
  static constexpr int kVectors = kSideBySide / kLanes;

  HWY_ALIGN float sums_[kSideBySide] = {};
};

template <class E>
double sum_rows_of(const E& elements, const std::byte* source, int64_t row_stride, int64_t rows,
                   int64_t count) {
  RowSum sum;
  double total = 0;
  int64_t added = 0;
  for (int64_t r = 0; r < rows; ++r, source += row_stride * E::kBytes)
    for (int64_t i = 0; i < count; i += kInSinglePrecision) {
      const int64_t part = std::min(count - i, kInSinglePrecision);
      if (added + part > kInSinglePrecision) {
        total += sum.take();
        added = 0;
      }
      sum.add(elements, source + i * E::kBytes, part);
      added += part;
    }
  return total + sum.take();
}

double sum_rows(DType dtype, const std::byte* source, int64_t row_stride, int64_t rows, int64_t count) {
  double sum = 0;
  with_elements(dtype, [&](auto elements) { sum = sum_rows_of(elements, source, row_stride, rows, count); });
  return sum;
}

constexpr int64_t kPositions = 128;

template <class D>
HWY_INLINE void add_to(D d, hn::Vec<D> v, double* HWY_RESTRICT sums) {
  HWY_ALIGN float lanes[hn::MaxLanes(D())];
  hn::Store(v, d, lanes);
  for (size_t i = 0; i < hn::MaxLanes(D()); ++i) sums[i] += double{lanes[i]};
}

// Four vectors of columns, whose additions need not wait for each other.
template <class E>
HWY_INLINE void add_four(const E& elements, const std::byte* HWY_RESTRICT at, int64_t step, int64_t positions,
                         double* HWY_RESTRICT sums) {
  const Floats<kLanes> d;
  auto a = hn::Zero(d), b = a, c = a, e = a;
  constexpr int64_t kStep = kLanes * E::kBytes;
  for (int64_t p = 0; p < positions; ++p, at += step) {
    a = hn::Add(a, elements.load(d, at));
    b = hn::Add(b, elements.load(d, at + kStep));
    c = hn::Add(c, elements.load(d, at + 2 * kStep));
    e = hn::Add(e, elements.load(d, at + 3 * kStep));
  }
  add_to(d, a, sums);
  add_to(d, b, sums + kLanes);
  add_to(d, c, sums + 2 * kLanes);
  add_to(d, e, sums + 3 * kLanes);
}

template <class E, class D>
HWY_INLINE void add_one(const E& elements, D d, const std::byte* HWY_RESTRICT at, int64_t step,
                        int64_t positions, double* HWY_RESTRICT sums) {
  auto sum = hn::Zero(d);
  for (int64_t p = 0; p < positions; ++p, at += step) sum = hn::Add(sum, elements.load(d, at));
  add_to(d, sum, sums);
}

template <class E>
void add_columns_of(const E& elements, const std::byte* source, int64_t stride, int64_t positions,
                    int64_t columns, double* sums) {
  const int64_t step = stride * E::kBytes;
  for (int64_t p = 0; p < positions; p += kPositions, source += kPositions * step) {
    const int64_t part = std::min(kPositions, positions - p);
    int64_t c = 0;
    for (; c + 4 * kLanes <= columns; c += 4 * kLanes)
      add_four(elements, source + c * E::kBytes, step, part, sums + c);
    const auto ones = [&](auto d) {
      constexpr auto kStep = static_cast<int64_t>(hn::MaxLanes(decltype(d)()));
      for (; c + kStep <= columns; c += kStep)
        add_one(elements, d, source + c * E::kBytes, step, part, sums + c);
    };
    ones(Floats<kLanes>());
    ones(Floats<8>());
    ones(Floats<4>());
    ones(Floats<1>());
  }
}

void add_columns(DType dtype, const std::byte* source, int64_t stride, int64_t positions, int64_t columns,
                 double* sums) {
  with_elements(dtype,
                [&](auto elements) { add_columns_of(elements, source, stride, positions, columns, sums); });
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {

RG_EXPORT(RG_WIDEST, sum_rows)
RG_EXPORT(RG_WIDEST, add_columns)

double sum_rows(DType dtype, const std::byte* source, int64_t row_stride, int64_t rows, int64_t count) {
  return chosen_sum_rows()(dtype, source, row_stride, rows, count);
}
void add_columns(DType dtype, const std::byte* source, int64_t stride, int64_t positions, int64_t columns,
                 double* sums) {
  chosen_add_columns()(dtype, source, stride, positions, columns, sums);
}

}  // namespace retrograd::kernels::cpu
#endif
