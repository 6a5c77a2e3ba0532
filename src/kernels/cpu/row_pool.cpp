// SPDX-License-Identifier: Apache-2.0
// Average pooling along rows, once for every instruction set.
#include "kernels/cpu/row_pool.h"

#include <algorithm>
#include <bit>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/row_pool.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/elements-inl.h"
#include "kernels/cpu/targets.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {

// From this many windows a place on, sums of groups of them are made first: 10 additions for 25.
constexpr int64_t kManyTerms = 8;
static_assert(kLanes <= kMostPoolLanes);

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const float* at) {
  return load_codes(d, reinterpret_cast<const std::byte*>(at));
}
template <class D>
HWY_INLINE void store(hn::Vec<D> v, D d, float* at) {
  store_codes(v, d, reinterpret_cast<std::byte*>(at));
}

// Divides as the mathematics says; by a power of two a product is the same and several times quicker.
class Divide {
 public:
  explicit Divide(float divisor)
      : divisor_(divisor),
        reciprocal_(1 / divisor),
        power_of_two_((std::bit_cast<uint32_t>(divisor) & 0x7f'ffffu) == 0) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> v) const {
    return power_of_two_ ? hn::Mul(v, hn::Set(d, reciprocal_)) : hn::Div(v, hn::Set(d, divisor_));
  }

 private:
  float divisor_, reciprocal_;
  bool power_of_two_;
};

template <class E>
HWY_INLINE void divide_line(const E& elements, const std::byte* HWY_RESTRICT in, int64_t count,
                            const Divide& divide, float* HWY_RESTRICT out) {
  in_vectors(count,
             [&](auto d, int64_t i) { store(divide(d, elements.load(d, in + i * E::kBytes)), d, out + i); });
}

// `rows` lines that follow each other in memory, `pitch` floats apart in `out`. The vector of `d` with the
// last numbers of a line ends with zeros, for zeros or the next line come behind it.
template <class D, class E>
HWY_INLINE void divide_lines(D d, const E& elements, const std::byte* HWY_RESTRICT in, int64_t rows,
                             int64_t count, const Divide& divide, int64_t pitch, float* HWY_RESTRICT out) {
  const Floats<kLanes> full;
  constexpr auto kLast = static_cast<int64_t>(hn::MaxLanes(D()));
  const int64_t whole = count / kLanes * kLanes, reach = whole + kLast;
  const auto last = hn::FirstN(d, static_cast<size_t>(count - whole));
  int64_t row = 0;
  for (; rows * count - row * count >= reach; ++row, in += count * E::kBytes, out += pitch) {
    for (int64_t i = 0; i < whole; i += kLanes)
      store(divide(full, elements.load(full, in + i * E::kBytes)), full, out + i);
    const auto v = hn::IfThenElseZero(last, elements.load(d, in + whole * E::kBytes));
    store(divide(d, v), d, out + whole);
  }
  for (; row < rows; ++row, in += count * E::kBytes, out += pitch)
    divide_line(elements, in, count, divide, out);
}

template <class E>
HWY_INLINE void divide_row(const PoolVolumes& p, const E& elements, const std::byte* HWY_RESTRICT in,
                           float outer, float* HWY_RESTRICT out) {
  if (p.counts.each == nullptr && p.in.place == p.unit)
    return divide_line(elements, in, p.y * p.unit, Divide(outer * p.counts.all), out);
  if (p.unit == 1 && p.in.place == 1) {
    return in_vectors(p.y, [&](auto d, int64_t i) {
      const auto divisor = hn::Mul(load(d, p.counts.each + i), hn::Set(d, outer));
      store(hn::Div(elements.load(d, in + i * E::kBytes), divisor), d, out + i);
    });
  }
  for (int64_t j = 0; j < p.y; ++j, in += p.in.place * E::kBytes, out += p.unit)
    divide_line(elements, in, p.unit, Divide(outer * p.counts[j]), out);
}

void divide_volumes(const PoolVolumes& p, const std::byte* in, int64_t count, float* quotients) {
  const PoolTensor& t = p.in;
  const int64_t line = p.y * p.unit, plane = p.row_windows * line, volume = p.depth_windows * plane;
  const int64_t rows = count * p.depth_windows * p.row_windows, pitch = p.pitch * p.unit;
  const bool dense = t.place == p.unit && (p.row_windows == 1 || t.row == line) &&
                     (p.depth_windows == 1 || t.depth == plane) && (count == 1 || t.volume == volume);
  const bool same =
      p.depth_counts.each == nullptr && p.row_counts.each == nullptr && p.counts.each == nullptr;
  with_elements(t.dtype, [&](auto elements) {
    constexpr int64_t kBytes = decltype(elements)::kBytes;
    if (dense && same) {
      const Divide divide(p.depth_counts.all * p.row_counts.all * p.counts.all);
      if (pitch == line) return divide_line(elements, in, rows * line, divide, quotients);
      const int64_t last = line % kLanes;
      if (last == 0) {
        for (int64_t row = 0; row < rows; ++row)
          divide_line(elements, in + row * line * kBytes, line, divide, quotients + row * pitch);
        return;
      }
      if (last <= 4) return divide_lines(Floats<4>(), elements, in, rows, line, divide, pitch, quotients);
      if (last <= 8) return divide_lines(Floats<8>(), elements, in, rows, line, divide, pitch, quotients);
      return divide_lines(Floats<kLanes>(), elements, in, rows, line, divide, pitch, quotients);
    }
    for (int64_t v = 0; v < count; ++v)
      for (int64_t d = 0; d < p.depth_windows; ++d)
        for (int64_t h = 0; h < p.row_windows; ++h, quotients += pitch)
          divide_row(p, elements, in + (v * t.volume + d * t.depth + h * t.row) * kBytes,
                     p.depth_counts[d] * p.row_counts[h], quotients);
  });
}

// Σ_{t < terms} in[−t·step]
template <class D>
HWY_INLINE hn::Vec<D> sum_back(D d, const float* in, int64_t step, int64_t terms) {
  auto sum = load(d, in);
  for (int64_t t = 1; t < terms; ++t) sum = hn::Add(sum, load(d, in - t * step));
  return sum;
}

// What a row of results is made of: a(i), the sum of the windows that hold every residue, i floats from
// window 0 on. There may be none.
template <int kTerms>
class FewTerms {
 public:
  FewTerms(const PoolVolumes& p, float*) : unit_(p.unit) {}
  HWY_INLINE void start(const float* quotients) { row_ = quotients; }
  template <class D>
  HWY_INLINE hn::Vec<D> a(D d, int64_t i) const {
    if constexpr (kTerms == 0) return hn::Zero(d);
    return sum_back(d, row_ + i, unit_, kTerms);
  }

 private:
  const float* row_ = nullptr;
  int64_t unit_;
};

class SomeTerms {
 public:
  SomeTerms(const PoolVolumes& p, float*) : unit_(p.unit), terms_(p.terms) {}
  HWY_INLINE void start(const float* quotients) { row_ = quotients; }
  template <class D>
  HWY_INLINE hn::Vec<D> a(D d, int64_t i) const {
    return sum_back(d, row_ + i, unit_, terms_);
  }

 private:
  const float* row_ = nullptr;
  int64_t unit_, terms_;
};

class ManyTerms {
 public:
  // `groups`: a row of scratch, laid out as the quotients are.
  ManyTerms(const PoolVolumes& p, float* groups)
      : groups_(groups),
        unit_(p.unit),
        terms_(p.terms),
        group_(static_cast<int64_t>(std::sqrt(static_cast<double>(p.terms)))),
        whole_(p.terms / group_),
        left_(p.terms % group_),
        first_((p.pad / p.stride - (whole_ - 1) * group_) * unit_),
        last_(((p.x - 1 + p.pad) / p.stride + 1) * unit_) {}
  HWY_INLINE void start(const float* quotients) {
    row_ = quotients;
    const Floats<kLanes> d;
    for (int64_t i = first_; i < last_; i += kLanes)
      store(sum_back(d, row_ + i, unit_, group_), d, groups_ + i);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> a(D d, int64_t i) const {
    auto sum = sum_back(d, groups_ + i, group_ * unit_, whole_);
    if (left_ > 0) sum = hn::Add(sum, sum_back(d, row_ + i - whole_ * group_ * unit_, unit_, left_));
    return sum;
  }

 private:
  const float* row_ = nullptr;
  float* groups_;
  int64_t unit_, terms_, group_, whole_, left_, first_, last_;
};

// Places side by side, by the table; whole vectors, so up to kLanes − 1 floats beyond a row are written.
template <bool kRest, class Sums>
void expand_by_phases(const PoolVolumes& p, Sums sums, const float* HWY_RESTRICT row, int64_t rows,
                      float* HWY_RESTRICT out) {
  const Floats<kLanes> d;
  const hn::RebindToSigned<decltype(d)> integers;
  const hn::RebindToUnsigned<decltype(d)> words;
  const int64_t places = p.x, stride = p.stride, terms = p.terms, pitch = p.pitch;
  const int64_t windows = kLanes / stride, residues = kLanes % stride;
  const int64_t first_window = p.pad / stride, first_residue = p.pad % stride;
  const PoolPhase* phases = p.phases;
  const auto lanes_of = [&](const PoolPhase& phase) HWY_ATTR {
    return hn::IndicesFromVec(d, hn::Load(integers, phase.window.data()));
  };
  const auto more_of = [&](const PoolPhase& phase)
                           HWY_ATTR { return hn::BitCast(d, hn::Load(words, phase.more.data())); };
  const auto expand = [&](auto lanes, auto more, int64_t j) HWY_ATTR {
    const auto a = hn::TableLookupLanes(sums.a(d, j), lanes);
    if constexpr (!kRest) return a;
    return hn::Add(a, hn::And(hn::TableLookupLanes(load(d, row + j - terms), lanes), more));
  };
  if (residues == 0 || places <= kLanes) {
    const auto lanes = lanes_of(phases[first_residue]);
    const auto more = more_of(phases[first_residue]);
    for (int64_t i = 0; i < rows; ++i, row += pitch, out += places) {
      sums.start(row);
      for (int64_t x = 0, j = first_window; x < places; x += kLanes, j += windows)
        store(expand(lanes, more, j), d, out + x);
    }
    return;
  }
  for (int64_t i = 0; i < rows; ++i, row += pitch, out += places) {
    sums.start(row);
    int64_t j = first_window, r = first_residue;
    for (int64_t x = 0; x < places; x += kLanes) {
      store(expand(lanes_of(phases[r]), more_of(phases[r]), j), d, out + x);
      const bool wraps = r + residues >= stride;
      j += windows + (wraps ? 1 : 0);
      r += residues - (wraps ? stride : 0);
    }
  }
}

// Places that lie in the same windows, run by run.
template <class Sums>
HWY_INLINE void expand_by_runs(const PoolVolumes& p, const Sums& sums, const float* HWY_RESTRICT row,
                               float* HWY_RESTRICT out) {
  const int64_t unit = p.unit;
  int64_t j = p.pad / p.stride, r = p.pad % p.stride;
  for (int64_t x = 0; x < p.x;) {
    const int64_t run = std::min((r < p.rest ? p.rest : p.stride) - r, p.x - x);
    const auto sum = [&](auto d, int64_t i) {
      const auto a = sums.a(d, j * unit + i);
      return r < p.rest ? hn::Add(a, load(d, row + (j - p.terms) * unit + i)) : a;
    };
    if (unit == 1) {
      const float value = hn::GetLane(sum(Floats<1>(), 0));
      in_vectors(run, [&](auto d, int64_t i) { store(hn::Set(d, value), d, out + x + i); });
    } else {
      in_vectors(unit, [&](auto d, int64_t i) {
        const auto v = sum(d, i);
        for (int64_t place = 0; place < run; ++place) store(v, d, out + (x + place) * unit + i);
      });
    }
    x += run;
    r += run;
    if (r == p.stride) {
      r = 0;
      ++j;
    }
  }
}

template <class Sums>
void expand_rows(const PoolVolumes& p, const float* quotients, int64_t rows, float* groups, float* expanded) {
  Sums sums(p, groups);
  const int64_t line = p.x * p.unit, pitch = p.pitch * p.unit, shift = p.pad * p.unit;
  if (p.unit == 1 && p.stride > 1 && p.stride <= kMostPoolPhases) {
    return p.rest > 0 ? expand_by_phases<true>(p, sums, quotients, rows, expanded)
                      : expand_by_phases<false>(p, sums, quotients, rows, expanded);
  }
  const bool slides = p.stride == 1;
  for (int64_t i = 0; i < rows; ++i, quotients += pitch, expanded += line) {
    sums.start(quotients);
    if (slides) {
      in_vectors(line, [&](auto d, int64_t at) { store(sums.a(d, shift + at), d, expanded + at); });
    } else {
      expand_by_runs(p, sums, quotients, expanded);
    }
  }
}

void expand(const PoolVolumes& p, const float* quotients, int64_t rows, float* groups, float* expanded) {
  if (p.terms == 0) return expand_rows<FewTerms<0>>(p, quotients, rows, groups, expanded);
  if (p.terms == 1) return expand_rows<FewTerms<1>>(p, quotients, rows, groups, expanded);
  if (p.terms == 2) return expand_rows<FewTerms<2>>(p, quotients, rows, groups, expanded);
  if (p.terms == 3) return expand_rows<FewTerms<3>>(p, quotients, rows, groups, expanded);
  if (p.terms < kManyTerms) return expand_rows<SomeTerms>(p, quotients, rows, groups, expanded);
  expand_rows<ManyTerms>(p, quotients, rows, groups, expanded);
}

// Σ of some rows, place by place.
template <int kRows>
struct RowSum {
  std::array<const float*, kRows> rows;
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, int64_t i) const {
    auto sum = load(d, rows[0] + i);
    for (size_t r = 1; r < kRows; ++r) sum = hn::Add(sum, load(d, rows[r] + i));
    return sum;
  }
  HWY_INLINE void advance(int64_t floats) {
    for (const float*& row : rows) row += floats;
  }
};
struct BoxSum {
  const float* first;
  int64_t depths, rows, plane, line;
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, int64_t i) const {
    auto sum = hn::Zero(d);
    for (int64_t z = 0; z < depths; ++z)
      for (int64_t y = 0; y < rows; ++y) sum = hn::Add(sum, load(d, first + z * plane + y * line + i));
    return sum;
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
  for (int64_t v = 0; v < lines.volumes; ++v, sum.advance(lines.from), out += lines.to) {
    const auto put = [&](auto d, int64_t i) {
      const auto numbers = sum(d, i);
      std::byte* at = out + i * E::kBytes;
      for (int64_t copy = 0; copy < copies; ++copy, at += lines.row) elements.store(numbers, d, at);
    };
    if (lines.reaches) {
      put(Floats<kLanes>(), 0);
    } else {
      in_vectors(lines.count, put);
    }
  }
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
                   [&](auto d, int64_t i) { elements.store(sum(d, from + i), d, at + i * E::kBytes); });
      }
}

template <class E, class Sum>
HWY_INLINE void put_run(const PoolVolumes& p, const E& elements, const PoolRun& run, Sum sum, Lines lines,
                        std::byte* out) {
  if (p.out.place != p.unit) return put_places(p, elements, run, sum, lines, out);
  if (!run.slides) {
    lines.copies = run.rows;
    if (run.rows == 1) return put_lines<1>(elements, sum, lines, out);
    if (run.rows == 2) return put_lines<2>(elements, sum, lines, out);
    return put_lines<0>(elements, sum, lines, out);
  }
  if (p.out.row == lines.count) {
    lines.count *= run.rows;
    lines.reaches = lines.reaches && lines.count < kLanes;
    return put_lines<1>(elements, sum, lines, out);
  }
  const int64_t line = lines.count;
  for (int64_t i = 0; i < run.rows; ++i, sum.advance(line), out += lines.row)
    put_lines<1>(elements, sum, lines, out);
}

// Run by run, each for all volumes: what a run is need not be found out for every few vectors.
void add_rows(const PoolVolumes& p, const float* expanded, int64_t count, std::byte* out) {
  const PoolTensor& t = p.out;
  const int64_t line = p.x * p.unit, plane = p.row_windows * line, slice = p.rows * line;
  // What lies behind a row of a volume is written later, to the end of the slice or of the volume.
  const bool dense_rows = t.place == p.unit && (p.rows == 1 || t.row == line);
  const bool dense_slices = dense_rows && (p.depths == 1 || t.depth == slice);
  with_elements(t.dtype, [&](auto elements) {
    constexpr int64_t kBytes = decltype(elements)::kBytes;
    Lines lines{line, 1, t.row * kBytes, count, p.depth_windows * plane, t.volume * kBytes, false};
    for (int64_t d = 0; d < p.depths; ++d) {
      const PoolWindows& depth = p.over_depth[d];
      const int64_t end = dense_slices ? (p.depths - d) * slice : dense_rows ? slice : 0;
      for (const PoolRun* run = p.runs; run != p.runs + p.run_count; ++run) {
        const PoolWindows& w = run->windows;
        const BoxSum box{expanded + depth.begin * plane + w.begin * line, depth.end - depth.begin,
                         w.end - w.begin, plane, line};
        lines.reaches = line < kLanes && (run->first + run->rows - 1) * line + kLanes <= end;
        std::byte* to = out + (d * t.depth + run->first * t.row) * kBytes;
        with_sum(box, [&](const auto& sum) { put_run(p, elements, *run, sum, lines, to); });
      }
    }
  });
}

void pool_volumes(const PoolVolumes& p, const std::byte* in, std::byte* out, int64_t count, float* scratch) {
  const auto in_bytes = static_cast<int64_t>(size_of(p.in.dtype));
  const auto out_bytes = static_cast<int64_t>(size_of(p.out.dtype));
  const int64_t rows = p.depth_windows * p.row_windows;
  float* groups = scratch + p.front * p.unit;
  float* quotients = scratch + p.row_floats() + p.front * p.unit;
  float* expanded = scratch + p.row_floats() + p.quotient_floats();
  for (int64_t v = 0; v < count; v += p.at_once) {
    const int64_t now = std::min(p.at_once, count - v);
    divide_volumes(p, in + v * p.in.volume * in_bytes, now, quotients);
    expand(p, quotients, now * rows, groups, expanded);
    add_rows(p, expanded, now, out + v * p.out.volume * out_bytes);
  }
}

void pool_fill(const PoolFill& f, const std::byte* in, std::byte* out, int64_t volumes) {
  const Divide divide(f.divisor);
  const Floats<1> one;
  with_elements(f.in_type, [&](auto from) {
    with_elements(f.out_type, [&](auto to) {
      for (int64_t v = 0; v < volumes; ++v) {
        const float value = hn::GetLane(divide(one, from.load(one, in + v * f.in_stride * from.kBytes)));
        std::byte* at = out + v * f.size * to.kBytes;
        in_vectors(f.size, [&](auto d, int64_t i) { to.store(hn::Set(d, value), d, at + i * to.kBytes); });
      }
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {
namespace {

HWY_EXPORT(pool_volumes);
HWY_EXPORT(pool_fill);

struct Chosen {
  void (*volumes)(const PoolVolumes&, const std::byte*, std::byte*, int64_t, float*);
  void (*fill)(const PoolFill&, const std::byte*, std::byte*, int64_t);
};
const Chosen& chosen() {
  static const Chosen instance{RG_CHOSEN(pool_volumes), RG_CHOSEN(pool_fill)};
  return instance;
}

}  // namespace

void PoolVolumes::derive() {
  terms = kernel / stride;
  rest = kernel % stride;
  const int64_t first = pad / stride - (terms - 1) - (rest > 0 ? 1 : 0), last = (x - 1 + pad) / stride;
  front = std::max<int64_t>(-first, 0);
  pitch = y + std::max(front, last + 1 - y);
}
void list_pool_phases(int64_t stride, int64_t kernel, PoolPhase* phases) {
  for (int64_t r = 0; r < stride; ++r)
    for (int64_t lane = 0; lane < kMostPoolLanes; ++lane) {
      const auto i = static_cast<size_t>(lane);
      phases[r].window[i] = static_cast<int32_t>((r + lane) / stride);
      phases[r].more[i] = (r + lane) % stride < kernel % stride ? ~0u : 0u;
    }
}
void clear_pool_scratch(const PoolVolumes& p, float* scratch) {
  const int64_t zeros = (p.pitch - p.y) * p.unit, pitch = p.pitch * p.unit;
  // The zeros behind a row are those before the next one.
  float* row = scratch + p.row_floats() + (p.front - (p.pitch - p.y)) * p.unit;
  std::fill_n(scratch + p.row_floats(), p.front * p.unit, 0.0F);
  for (int64_t i = 1; i <= p.window_rows(); ++i) std::fill_n(row + i * pitch, zeros, 0.0F);
}
void pool_volumes(const PoolVolumes& volumes, const std::byte* in, std::byte* out, int64_t count,
                  float* scratch) {
  chosen().volumes(volumes, in, out, count, scratch);
}
void pool_fill(const PoolFill& fill, const std::byte* in, std::byte* out, int64_t volumes) {
  chosen().fill(fill, in, out, volumes);
}

}  // namespace retrograd::kernels::cpu
#endif
