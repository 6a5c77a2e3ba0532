// SPDX-License-Identifier: Apache-2.0
// Rows of results: sums of rows of places, as elements of the result's type.
//
// Included once for every instruction set.
#include <algorithm>
#include <array>

#include "kernels/cpu/elements-inl.h"
#include "kernels/cpu/pooling/pool_expand-inl.h"
#include "kernels/cpu/pooling/row_pool.h"

#if defined(RETROGRAD_KERNELS_CPU_POOL_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETROGRAD_KERNELS_CPU_POOL_ROWS_INL_H_
#undef RETROGRAD_KERNELS_CPU_POOL_ROWS_INL_H_
#else
#define RETROGRAD_KERNELS_CPU_POOL_ROWS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {

// What the rows of a run are made of. Up to kCopies copies of a row have a loop of their own. cover<E>(count,
// reaches, put) calls put(tag, i, numbers, Whole or Short) so that vectors from place i on cover a row of
// elements E, and reach behind it where they may.
template <class E, class Sum, class Put>
HWY_INLINE void cover_sums(const Sum& sum, int64_t count, bool reaches, const Put& put) {
  in_row<E>(count, reaches, [&](auto d, int64_t i, auto fits) { put(d, i, sum.at(d, i), fits); });
}

// Σ of some rows, place by place.
template <int kRows>
struct RowSum {
  static constexpr int kCopies = kRows <= 2 ? 2 : 1;
  std::array<const float*, kRows> rows;
  template <class D>
  HWY_INLINE hn::Vec<D> at(D d, int64_t i) const {
    auto sum = load(d, rows[0] + i);
    for (size_t r = 1; r < kRows; ++r) sum = hn::Add(sum, load(d, rows[r] + i));
    return sum;
  }
  template <class E, class Put>
  HWY_INLINE void cover(int64_t count, bool reaches, const Put& put) const {
    cover_sums<E>(*this, count, reaches, put);
  }
  HWY_INLINE void advance(int64_t floats) {
    for (const float*& row : rows) row += floats;
  }
};
struct BoxSum {
  static constexpr int kCopies = 0;
  const float* first;
  int64_t depths, rows, plane, line;
  template <class D>
  HWY_NOINLINE hn::Vec<D> at(D d, int64_t i) const {
    auto sum = hn::Zero(d);
    for (int64_t z = 0; z < depths; ++z)
      for (int64_t y = 0; y < rows; ++y) sum = hn::Add(sum, load(d, first + z * plane + y * line + i));
    return sum;
  }
  template <class E, class Put>
  HWY_INLINE void cover(int64_t count, bool reaches, const Put& put) const {
    cover_sums<E>(*this, count, reaches, put);
  }
  HWY_INLINE void advance(int64_t floats) { first += floats; }
};

// Sums of up to kMost rows, 0, 2 or 4, have a type of their own.
template <int kMost, class Body>
HWY_INLINE void with_sum(const BoxSum& box, const Body& body) {
  const int64_t count = box.depths * box.rows;
  if (count < 1 || count > kMost) return body(box);
  if constexpr (kMost > 0) {
    std::array<const float*, 4> rows;
    size_t i = 0;
    for (int64_t z = 0; z < box.depths; ++z)
      for (int64_t y = 0; y < box.rows; ++y) rows[i++] = box.first + z * box.plane + y * box.line;
    if (count == 1) return body(RowSum<1>{{rows[0]}});
    if (count == 2) return body(RowSum<2>{{rows[0], rows[1]}});
    if constexpr (kMost > 2) {
      if (count == 3) return body(RowSum<3>{{rows[0], rows[1], rows[2]}});
      body(RowSum<4>{rows});
    }
  }
}

// Elements side by side, `copies` times, for every repeat and every volume.
struct Lines {
  int64_t count = 0, copies = 1, row = 0;               // row: bytes from one copy to the next
  int64_t repeats = 1, repeat_from = 0, repeat_to = 0;  // from one to the next: floats, bytes
  int64_t volumes = 1, volume_from = 0, volume_to = 0;
  int64_t alone = 0;     // copies that follow of the lower of two rows
  int64_t reaching = 0;  // repeats in which a vector may reach behind a line that is shorter
};

// Not inlined: the loops below need all registers.
template <int kCopies, class E, class Sum>
HWY_NOINLINE void put_lines(const E& codec, Sum sum, const Lines& all, std::byte* out) {
  const E elements = codec;
  const Lines lines = all;
  const int64_t copies = kCopies > 0 ? kCopies : lines.copies;
  for (int64_t v = 0; v < lines.volumes; ++v, sum.advance(lines.volume_from), out += lines.volume_to) {
    Sum line = sum;
    std::byte* to = out;
    for (int64_t k = 0; k < lines.repeats; ++k, line.advance(lines.repeat_from), to += lines.repeat_to) {
      line.template cover<E>(lines.count, k < lines.reaching,
                             [&](auto d, int64_t i, auto numbers, auto fits) {
                               std::byte* at = to + i * E::kBytes;
                               for (int64_t copy = 0; copy < copies; ++copy, at += lines.row)
                                 store_row(elements, numbers, d, at, lines.count, fits);
                             });
    }
  }
}

// Of two rows of windows, copies of their sum and then of the lower one.
template <class E, class Sum>
HWY_NOINLINE void put_pairs(const E& codec, Sum upper, Sum lower, const Lines& all, std::byte* out) {
  const E elements = codec;
  const Lines lines = all;
  for (int64_t v = 0; v < lines.volumes; ++v, out += lines.volume_to) {
    Sum up = upper, low = lower;
    std::byte* to = out;
    for (int64_t k = 0; k < lines.repeats; ++k, to += lines.repeat_to) {
      low.template cover<E>(lines.count, k < lines.reaching, [&](auto d, int64_t i, auto numbers, auto fits) {
        std::byte* at = to + i * E::kBytes;
        const auto both = hn::Add(up.at(d, i), numbers);
        for (int64_t copy = 0; copy < lines.copies; ++copy, at += lines.row)
          store_row(elements, both, d, at, lines.count, fits);
        for (int64_t copy = 0; copy < lines.alone; ++copy, at += lines.row)
          store_row(elements, numbers, d, at, lines.count, fits);
      });
      up.advance(lines.repeat_from);
      low.advance(lines.repeat_from);
    }
    upper.advance(lines.volume_from);
    lower.advance(lines.volume_from);
  }
}

// Places apart from each other.
template <class E, class Sum>
HWY_NOINLINE void put_places(const PoolVolumes& p, const E& elements, const PoolRun& run, Sum sum,
                             const Lines& lines, std::byte* out) {
  for (int64_t v = 0; v < lines.volumes; ++v, sum.advance(lines.volume_from), out += lines.volume_to) {
    Sum line = sum;
    std::byte* to = out;
    for (int64_t k = 0; k < lines.repeats; ++k, line.advance(lines.repeat_from), to += lines.repeat_to)
      for (int64_t row = 0; row < run.rows; ++row)
        for (int64_t x = 0; x < p.x; ++x) {
          const int64_t from = (run.slides ? row * p.x : 0) + x;
          std::byte* at = to + row * lines.row + x * p.out.place * E::kBytes;
          elements.store(line.at(Floats<1>(), from), Floats<1>(), at);
        }
  }
}

template <class E, class Sum>
HWY_INLINE void put_copies(const E& elements, Sum sum, const Lines& lines, std::byte* out) {
  constexpr int kCopies = kIsFloat<E> ? Sum::kCopies : 0;
  if constexpr (kCopies >= 1) {
    if (lines.copies == 1) return put_lines<1>(elements, sum, lines, out);
  }
  if constexpr (kCopies >= 2) {
    if (lines.copies == 2) return put_lines<2>(elements, sum, lines, out);
  }
  put_lines<0>(elements, sum, lines, out);
}

template <class E, class Sum>
HWY_INLINE void put_run(const PoolVolumes& p, const E& elements, const PoolRun& run, Sum sum, Lines lines,
                        std::byte* out) {
  if (!run.slides) return put_copies(elements, sum, lines, out);
  lines.copies = 1;
  if (p.out.row == lines.count) {
    lines.count *= run.rows;
    if (lines.count >= kLanes) lines.reaching = 0;
  } else {
    lines.repeats = run.rows;
    lines.repeat_to = lines.row;
  }
  put_copies(elements, sum, lines, out);
}

// Repeats of a run after which at least kLanes places up to `end` are still to be written.
inline int64_t reaching_repeats(const PoolRun& run, int64_t line, int64_t end) {
  if (run.first * line + kLanes > end) return 0;
  const int64_t rows = (end - kLanes) / line - run.first + 1;  // that may be reached behind
  const int64_t own = run.rows + run.alone;
  if (rows < own) return 0;
  return run.repeats == 1 ? 1 : std::min(run.repeats, (rows - own) / run.step + 1);
}

// Calls body(elements, depth, run, lines, to) for every run, each for all volumes: what a run is need not be
// found out for every few vectors. Rows of windows are `pitch` floats apart.
template <class Body>
HWY_INLINE void each_run(const PoolVolumes& p, int64_t count, int64_t pitch, std::byte* out,
                         const Body& body) {
  const PoolTensor& t = p.out;
  const int64_t line = p.x, slice = p.rows * line;
  // What lies behind a row of a volume is written later, to the end of the slice or of the volume.
  const bool dense_rows = t.place == 1 && (p.rows == 1 || t.row == line);
  const bool dense_slices = dense_rows && (p.depths == 1 || t.depth == slice);
  with_pool_elements(t.dtype, [&](auto elements) {
    constexpr int64_t kBytes = decltype(elements)::kBytes;
    Lines lines;
    lines.count = line;
    lines.row = t.row * kBytes;
    lines.repeat_from = pitch;
    lines.volumes = count;
    lines.volume_from = p.depth_windows * p.row_windows * pitch;
    lines.volume_to = t.volume * kBytes;
    for (int64_t d = 0; d < p.depths; ++d) {
      const int64_t end = dense_slices ? (p.depths - d) * slice : dense_rows ? slice : 0;
      for (const PoolRun* run = p.runs; run != p.runs + p.run_count; ++run) {
        lines.copies = run->rows;
        lines.alone = run->alone;
        lines.repeats = run->repeats;
        lines.repeat_to = run->step * lines.row;
        lines.reaching = line < kLanes ? reaching_repeats(*run, line, end) : 0;
        body(elements, p.over_depth[d], *run, lines, out + (d * t.depth + run->first * t.row) * kBytes);
      }
    }
  });
}

void add_rows(const PoolVolumes& p, const float* expanded, int64_t count, std::byte* out) {
  const int64_t line = p.x, plane = p.row_windows * line;
  each_run(
      p, count, line, out,
      [&](auto elements, const PoolWindows& depth, const PoolRun& run, const Lines& lines, std::byte* to) {
        using E = decltype(elements);
        constexpr int kFew = kIsFloat<E> ? 2 : 0;
        const PoolWindows& w = run.windows;
        if (run.alone > 0) {
          const BoxSum upper{expanded + depth.begin * plane + w.begin * line, depth.end - depth.begin, 1,
                             plane, line};
          return with_sum<2>(upper, [&](const auto& up) {
            auto low = up;
            low.advance(line);
            put_pairs(elements, up, low, lines, to);
          });
        }
        const BoxSum box{expanded + depth.begin * plane + w.begin * line, depth.end - depth.begin,
                         w.end - w.begin, plane, line};
        if (p.out.place != 1)
          return with_sum<kFew>(box, [&](const auto& sum) { put_places(p, elements, run, sum, lines, to); });
        with_sum<4>(box, [&](const auto& sum) { put_run(p, elements, run, sum, lines, to); });
      });
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
