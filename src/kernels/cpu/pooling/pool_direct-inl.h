// SPDX-License-Identifier: Apache-2.0
// Rows of results straight from rows of quotients, where few windows hold a place.
//
// Included once for every instruction set.
#include <cstddef>

#include "kernels/cpu/elements-inl.h"
#include "kernels/cpu/pooling/pool_rows-inl.h"
#include "kernels/cpu/pooling/row_pool.h"

#if defined(RETROGRAD_KERNELS_CPU_POOL_DIRECT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETROGRAD_KERNELS_CPU_POOL_DIRECT_INL_H_
#undef RETROGRAD_KERNELS_CPU_POOL_DIRECT_INL_H_
#else
#define RETROGRAD_KERNELS_CPU_POOL_DIRECT_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {

// The rows of a run that slides, each from the row of windows after the last.
inline void one_by_one(Lines& lines) {
  lines.repeats = lines.copies;
  lines.reaching = lines.reaching > 0 ? lines.copies : 0;
  lines.copies = 1;
  lines.repeat_to = lines.row;
}

// One window a place: lanes of a vector of quotients, several times each.
class WindowCopies {
 public:
  static constexpr int kCopies = 2;
  explicit WindowCopies(const PoolVolumes& p)
      : phases_(p.phases),
        stride_(p.stride),
        windows_(kLanes / p.stride),
        residues_(kLanes % p.stride),
        first_window_(p.pad / p.stride),
        first_residue_(p.pad % p.stride),
        last_window_((p.x - kLanes + p.pad) / p.stride),
        last_residue_((p.x - kLanes + p.pad) % p.stride) {}
  void start(const float* quotients) { row_ = quotients; }
  HWY_INLINE void advance(int64_t floats) { row_ += floats; }

  template <class E, class Put>
  HWY_INLINE void cover(int64_t count, bool reaches, const Put& put) const {
    const Floats<kLanes> d;
    if (count < kLanes) {
      const auto numbers = places(first_window_, first_residue_);
      if (reaches) return put(d, 0, numbers, Whole());
      if constexpr (kIsFloat<E>) {
        HWY_ALIGN std::array<float, kLanes> buffer;
        hn::Store(numbers, d, buffer.data());
        return in_vectors(count,
                          [&](auto tag, int64_t i) { put(tag, i, load(tag, buffer.data() + i), Whole()); });
      } else {
        return put(d, 0, numbers, Short());
      }
    }
    int64_t j = first_window_, r = first_residue_, x = 0;
    for (; x + kLanes <= count; x += kLanes) {
      put(d, x, places(j, r), Whole());
      const bool wraps = r + residues_ >= stride_;
      j += windows_ + (wraps ? 1 : 0);
      r += residues_ - (wraps ? stride_ : 0);
    }
    if (x < count) put(d, count - kLanes, places(last_window_, last_residue_), Whole());
  }

 private:
  HWY_INLINE hn::Vec<Floats<kLanes>> places(int64_t window, int64_t residue) const {
    const Floats<kLanes> d;
    const hn::RebindToSigned<decltype(d)> integers;
    const auto lanes = hn::IndicesFromVec(d, hn::Load(integers, phases_[residue].window.data()));
    return hn::TableLookupLanes(load(d, row_ + window), lanes);
  }

  const float* row_ = nullptr;
  const PoolPhase* phases_;
  int64_t stride_, windows_, residues_, first_window_, first_residue_, last_window_, last_residue_;
};

void copy_rows(const PoolVolumes& p, const float* quotients, int64_t count, std::byte* out) {
  WindowCopies copies(p);
  each_run(p, count, p.pitch, out,
           [&](auto elements, const PoolWindows& depth, const PoolRun& run, Lines lines, std::byte* to) {
             if (run.slides) one_by_one(lines);
             if (depth.begin == depth.end || run.windows.begin == run.windows.end)
               return put_copies(elements, BoxSum{quotients, 0, 0, 0, 0}, lines, to);
             copies.start(quotients + (depth.begin * p.row_windows + run.windows.begin) * p.pitch);
             put_copies(elements, copies, lines, to);
           });
}

// Σ of kTerms places along the row of each of some rows.
template <int kTerms>
struct SlidSum {
  static constexpr int kCopies = 1;
  const float* first;
  int64_t rows, pitch;
  template <class D>
  HWY_INLINE hn::Vec<D> along(D d, int64_t i) const {
    return sum_back(d, first + i, 1, kTerms);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> at(D d, int64_t i) const {
    auto sum = hn::Zero(d);
    for (int64_t row = 0; row < rows; ++row) sum = hn::Add(sum, along(d, row * pitch + i));
    return sum;
  }
  template <class E, class Put>
  HWY_INLINE void cover(int64_t count, bool reaches, const Put& put) const {
    cover_sums<E>(*this, count, reaches, put);
  }
  HWY_INLINE void advance(int64_t floats) { first += floats; }
};

// A run that slides, a vector of places down all its rows: each row's sum along is made once for the kRows
// results that it is part of.
template <int kRows, int kTerms, class E>
HWY_NOINLINE void put_sliding(const E& codec, const PoolRun& run, SlidSum<kTerms> sum, const Lines& all,
                              std::byte* out) {
  const bool leads = run.leads, trails = run.trails;
  const E elements = codec;
  const Lines lines = all;
  const int64_t rows = lines.copies - (leads ? 1 : 0) - (trails ? 1 : 0), pitch = sum.pitch, step = lines.row;
  const bool reaches = lines.reaching > 0;
  for (int64_t v = 0; v < lines.volumes; ++v, sum.advance(lines.volume_from), out += lines.volume_to) {
    const auto down = [&](auto d, int64_t i, auto fits) {
      std::byte* at = out + i * E::kBytes;
      auto before = sum.along(d, i), last = before;
      if constexpr (kRows == 3) last = sum.along(d, pitch + i);
      if (leads) {
        store_row(elements, hn::Add(before, last), d, at, lines.count, fits);
        at += step;
      }
      int64_t from = (kRows - 1) * pitch + i;
      for (int64_t row = 0; row < rows; ++row, from += pitch, at += step) {
        const auto now = sum.along(d, from);
        if constexpr (kRows == 3) {
          store_row(elements, hn::Add(hn::Add(before, last), now), d, at, lines.count, fits);
          before = last;
          last = now;
        } else {
          store_row(elements, hn::Add(before, now), d, at, lines.count, fits);
          before = now;
        }
      }
      if (trails) store_row(elements, hn::Add(before, last), d, at, lines.count, fits);
    };
    in_row<E>(lines.count, reaches, down);
  }
}

template <int kTerms>
void slide_rows_of(const PoolVolumes& p, const float* quotients, int64_t count, std::byte* out) {
  const int64_t pitch = p.pitch;
  each_run(p, count, pitch, out,
           [&](auto elements, const PoolWindows&, const PoolRun& run, Lines lines, std::byte* to) {
             const PoolWindows& w = run.windows;
             const SlidSum<kTerms> sum{quotients + w.begin * pitch + p.pad, w.end - w.begin, pitch};
             if (run.slides && sum.rows == 3) return put_sliding<3>(elements, run, sum, lines, to);
             if (run.slides && sum.rows == 2) return put_sliding<2>(elements, run, sum, lines, to);
             if (run.slides) one_by_one(lines);
             put_copies(elements, sum, lines, to);
           });
}

void slide_rows(const PoolVolumes& p, const float* quotients, int64_t count, std::byte* out) {
  p.terms == 2 ? slide_rows_of<2>(p, quotients, count, out) : slide_rows_of<3>(p, quotients, count, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
