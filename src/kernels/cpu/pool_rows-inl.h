// SPDX-License-Identifier: Apache-2.0
// Rows of results: sums of rows of places, as elements of the result's type.
//
// Included once for every instruction set.
#include <array>

#include "hwy/highway.h"
#include "kernels/cpu/elements-inl.h"
#include "kernels/cpu/pool_expand-inl.h"
#include "kernels/cpu/row_pool.h"

#if defined(RETROGRAD_KERNELS_CPU_POOL_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETROGRAD_KERNELS_CPU_POOL_ROWS_INL_H_
#undef RETROGRAD_KERNELS_CPU_POOL_ROWS_INL_H_
#else
#define RETROGRAD_KERNELS_CPU_POOL_ROWS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {

// What the rows of a run are made of. cover(count, reaches, put) calls put(tag, i, numbers) so that vectors
// from place i on cover a row, and reach behind it where they may.
template <class Sum, class Put>
HWY_INLINE void cover_sums(const Sum& sum, int64_t count, bool reaches, const Put& put) {
  const auto one = [&](auto d, int64_t i) { put(d, i, sum.at(d, i)); };
  if (reaches) return one(Floats<kLanes>(), 0);
  in_vectors(count, one);
}

// Σ of some rows, place by place.
template <int kRows>
struct RowSum {
  std::array<const float*, kRows> rows;
  template <class D>
  HWY_INLINE hn::Vec<D> at(D d, int64_t i) const {
    auto sum = load(d, rows[0] + i);
    for (size_t r = 1; r < kRows; ++r) sum = hn::Add(sum, load(d, rows[r] + i));
    return sum;
  }
  template <class Put>
  HWY_INLINE void cover(int64_t count, bool reaches, const Put& put) const {
    cover_sums(*this, count, reaches, put);
  }
  HWY_INLINE void advance(int64_t floats) {
    for (const float*& row : rows) row += floats;
  }
};
struct BoxSum {
  const float* first;
  int64_t depths, rows, plane, line;
  template <class D>
  HWY_INLINE hn::Vec<D> at(D d, int64_t i) const {
    auto sum = hn::Zero(d);
    for (int64_t z = 0; z < depths; ++z)
      for (int64_t y = 0; y < rows; ++y) sum = hn::Add(sum, load(d, first + z * plane + y * line + i));
    return sum;
  }
  template <class Put>
  HWY_INLINE void cover(int64_t count, bool reaches, const Put& put) const {
    cover_sums(*this, count, reaches, put);
  }
  HWY_INLINE void advance(int64_t floats) { first += floats; }
};

template <class Body>
HWY_INLINE void with_sum(const BoxSum& box, const Body& body) {
  const int64_t count = box.depths * box.rows;
  if (count < 1 || count > 4) return body(box);
  std::array<const float*, 4> rows;
  size_t i = 0;
  for (int64_t z = 0; z < box.depths; ++z)
    for (int64_t y = 0; y < box.rows; ++y) rows[i++] = box.first + z * box.plane + y * box.line;
  if (count == 1) return body(RowSum<1>{{rows[0]}});
  if (count == 2) return body(RowSum<2>{{rows[0], rows[1]}});
  if (count == 3) return body(RowSum<3>{{rows[0], rows[1], rows[2]}});
  body(RowSum<4>{rows});
}

// Elements side by side, `copies` times, for every volume.
struct Lines {
  int64_t count, copies, row;  // row: bytes from one copy to the next
  int64_t volumes, from, to;   // from one volume to the next: floats, bytes
  bool reaches;                // a vector may reach behind a line that is shorter
};
template <int kCopies, class E, class Sum>
HWY_INLINE void put_lines(const E& elements, Sum sum, const Lines& all, std::byte* HWY_RESTRICT out) {
  const Lines lines = all;
  const int64_t copies = kCopies > 0 ? kCopies : lines.copies;
  for (int64_t v = 0; v < lines.volumes; ++v, sum.advance(lines.from), out += lines.to)
    sum.cover(lines.count, lines.reaches, [&](auto d, int64_t i, auto numbers) {
      std::byte* at = out + i * E::kBytes;
      for (int64_t copy = 0; copy < copies; ++copy, at += lines.row) elements.store(numbers, d, at);
    });
}

// Places apart from each other.
template <class E, class Sum>
HWY_INLINE void put_places(const PoolVolumes& p, const E& elements, const PoolRun& run, Sum sum,
                           const Lines& lines, std::byte* out) {
  for (int64_t v = 0; v < lines.volumes; ++v, sum.advance(lines.from), out += lines.to)
    for (int64_t row = 0; row < run.rows; ++row)
      for (int64_t x = 0; x < p.x; ++x) {
        const int64_t from = ((run.slides ? row * p.x : 0) + x) * p.unit;
        std::byte* at = out + row * lines.row + x * p.out.place * E::kBytes;
        in_vectors(p.unit,
                   [&](auto d, int64_t i) { elements.store(sum.at(d, from + i), d, at + i * E::kBytes); });
      }
}

template <class E, class Sum>
HWY_INLINE void put_copies(const E& elements, Sum sum, const Lines& lines, std::byte* out) {
  if (lines.copies == 1) return put_lines<1>(elements, sum, lines, out);
  if (lines.copies == 2) return put_lines<2>(elements, sum, lines, out);
  put_lines<0>(elements, sum, lines, out);
}

template <class E, class Sum>
HWY_INLINE void put_run(const PoolVolumes& p, const E& elements, const PoolRun& run, Sum sum, Lines lines,
                        std::byte* out) {
  if (p.out.place != p.unit) return put_places(p, elements, run, sum, lines, out);
  if (!run.slides) return put_copies(elements, sum, lines, out);
  lines.copies = 1;
  if (p.out.row == lines.count) {
    lines.count *= run.rows;
    lines.reaches = lines.reaches && lines.count < kLanes;
    return put_lines<1>(elements, sum, lines, out);
  }
  const int64_t line = lines.count;
  for (int64_t i = 0; i < run.rows; ++i, sum.advance(line), out += lines.row)
    put_lines<1>(elements, sum, lines, out);
}

// Calls body(elements, depth, run, lines, to) for every run, each for all volumes: what a run is need not be
// found out for every few vectors. `from`: floats of a volume.
template <class Body>
HWY_INLINE void each_run(const PoolVolumes& p, int64_t count, int64_t from, std::byte* out,
                         const Body& body) {
  const PoolTensor& t = p.out;
  const int64_t line = p.x * p.unit, slice = p.rows * line;
  // What lies behind a row of a volume is written later, to the end of the slice or of the volume.
  const bool dense_rows = t.place == p.unit && (p.rows == 1 || t.row == line);
  const bool dense_slices = dense_rows && (p.depths == 1 || t.depth == slice);
  with_elements(t.dtype, [&](auto elements) {
    constexpr int64_t kBytes = decltype(elements)::kBytes;
    Lines lines{line, 1, t.row * kBytes, count, from, t.volume * kBytes, false};
    for (int64_t d = 0; d < p.depths; ++d) {
      const int64_t end = dense_slices ? (p.depths - d) * slice : dense_rows ? slice : 0;
      for (const PoolRun* run = p.runs; run != p.runs + p.run_count; ++run) {
        lines.copies = run->rows;
        lines.reaches = line < kLanes && (run->first + run->rows - 1) * line + kLanes <= end;
        body(elements, p.over_depth[d], *run, lines, out + (d * t.depth + run->first * t.row) * kBytes);
      }
    }
  });
}

void add_rows(const PoolVolumes& p, const float* expanded, int64_t count, std::byte* out) {
  const int64_t line = p.x * p.unit, plane = p.row_windows * line;
  each_run(
      p, count, p.depth_windows * plane, out,
      [&](auto elements, const PoolWindows& depth, const PoolRun& run, const Lines& lines, std::byte* to) {
        const PoolWindows& w = run.windows;
        const BoxSum box{expanded + depth.begin * plane + w.begin * line, depth.end - depth.begin,
                         w.end - w.begin, plane, line};
        with_sum(box, [&](const auto& sum) { put_run(p, elements, run, sum, lines, to); });
      });
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
