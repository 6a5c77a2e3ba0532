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

// From this many windows a place on, sums of groups of them are made first: 10
// additions for 25.
constexpr int64_t kManyTerms = 8;

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const float* at) {
  return load_codes(d, reinterpret_cast<const std::byte*>(at));
}
template <class D>
HWY_INLINE void store(hn::Vec<D> v, D d, float* at) {
  store_codes(v, d, reinterpret_cast<std::byte*>(at));
}

// Divides as the mathematics says; by a power of two a product is the same and
// several times quicker.
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
HWY_INLINE void divide_row(const PoolVolumes& p, const E& elements, const std::byte* HWY_RESTRICT in,
                           float outer, float* HWY_RESTRICT out) {
  const int64_t step = p.in.place * E::kBytes;
  if (p.counts == nullptr && p.in.place == p.unit) {
    const Divide divide(outer * p.count);
    return in_vectors(p.y * p.unit, [&](auto d, int64_t i) {
      store(divide(d, elements.load(d, in + i * E::kBytes)), d, out + i);
    });
  }
  if (p.unit == 1 && p.in.place == 1) {
    return in_vectors(p.y, [&](auto d, int64_t i) {
      const auto divisor = hn::Mul(load(d, p.counts + i), hn::Set(d, outer));
      store(hn::Div(elements.load(d, in + i * E::kBytes), divisor), d, out + i);
    });
  }
  for (int64_t j = 0; j < p.y; ++j, in += step, out += p.unit) {
    const Divide divide(outer * (p.counts == nullptr ? p.count : p.counts[j]));
    in_vectors(p.unit, [&](auto d, int64_t i) {
      store(divide(d, elements.load(d, in + i * E::kBytes)), d, out + i);
    });
  }
}

void divide_volume(const PoolVolumes& p, const std::byte* in, float* quotients) {
  const auto count = [](const PoolAxis& axis, int64_t i) {
    return axis.counts == nullptr ? axis.count : axis.counts[i];
  };
  with_elements(p.in.dtype, [&](auto elements) {
    float* row = quotients + p.front() * p.unit;
    for (int64_t d = 0; d < p.depths.y; ++d)
      for (int64_t h = 0; h < p.rows.y; ++h, row += p.pitch)
        divide_row(p, elements, in + (d * p.in.depth + h * p.in.row) * elements.kBytes,
                   count(p.depths, d) * count(p.rows, h), row);
  });
}

// out[i] = Σ_{t < terms} in[i − t·step]
template <class D>
HWY_INLINE hn::Vec<D> sum_back(D d, const float* in, int64_t step, int64_t terms) {
  auto sum = load(d, in);
  for (int64_t t = 1; t < terms; ++t) sum = hn::Add(sum, load(d, in - t * step));
  return sum;
}

// The sums that a row of results is made of: a(i) of all windows that hold
// every residue, b(i) with the one that holds the first `rest` of them only. i
// counts floats from window 0.
class WindowSums {
 public:
  // `groups`: a row of scratch, laid out as `sums` is.
  HWY_INLINE WindowSums(const PoolVolumes& p, const float* sums, float* groups)
      : sums_(sums), groups_(groups), unit_(p.unit), terms_(p.terms) {
    if (terms_ < kManyTerms) return;
    group_ = static_cast<int64_t>(std::sqrt(static_cast<double>(terms_)));
    const int64_t first = (group_ - terms_) * unit_;
    const int64_t last = std::min(p.y + p.back(), (p.x - 1 + p.pad) / p.stride + 1) * unit_;
    in_vectors(last - first, [&](auto d, int64_t i) {
      store(sum_back(d, sums_ + first + i, unit_, group_), d, groups + first + i);
    });
  }

  template <class D>
  HWY_INLINE hn::Vec<D> a(D d, int64_t i) const {
    if (terms_ == 1) return load(d, sums_ + i);
    if (terms_ == 0) return hn::Zero(d);
    if (group_ == 0) return sum_back(d, sums_ + i, unit_, terms_);
    const int64_t whole = terms_ / group_;
    auto sum = sum_back(d, groups_ + i, group_ * unit_, whole);
    if (whole * group_ < terms_)
      sum = hn::Add(sum, sum_back(d, sums_ + i - whole * group_ * unit_, unit_, terms_ - whole * group_));
    return sum;
  }
  template <class D>
  HWY_INLINE hn::Vec<D> b(D d, int64_t i, hn::Vec<D> a) const {
    return hn::Add(a, load(d, sums_ + i - terms_ * unit_));
  }

 private:
  const float* HWY_RESTRICT sums_;
  const float* HWY_RESTRICT groups_;
  int64_t unit_, terms_;
  int64_t group_ = 0;
};

// Places of a row that belong to one window j, as r = 0 … stride − 1.
template <class Put>
HWY_INLINE void place_by_place(const PoolVolumes& p, const WindowSums& sums, int64_t begin, int64_t end,
                               const Put& put) {
  const int64_t rest = p.rest;
  if (begin == end) return;
  int64_t j = (begin + p.pad) / p.stride, r = (begin + p.pad) % p.stride;
  for (int64_t x = begin; x < end; ++x) {
    in_vectors(p.unit, [&](auto d, int64_t i) {
      const auto a = sums.a(d, j * p.unit + i);
      put(d, r < rest ? sums.b(d, j * p.unit + i, a) : a, x, i);
    });
    if (++r == p.stride) {
      r = 0;
      ++j;
    }
  }
}

// Whole groups of places, one for each window from `first` on, written by
// vectors of windows.
template <class D>
HWY_INLINE void interleave(D d, int64_t stride, int64_t rest, hn::Vec<D> a, hn::Vec<D> b, float* out) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t r = 0; r < stride; ++r) hn::Store(r < rest ? b : a, d, out + r);
#else
  if constexpr (hn::MaxLanes(D()) == 1) {
    for (int64_t r = 0; r < stride; ++r) store(r < rest ? b : a, d, out + r);
  } else if (stride == 2) {
    hn::StoreInterleaved2(rest > 0 ? b : a, a, d, out);
  } else if (stride == 3) {
    hn::StoreInterleaved3(rest > 0 ? b : a, rest > 1 ? b : a, a, d, out);
  } else {
    hn::StoreInterleaved4(rest > 0 ? b : a, rest > 1 ? b : a, rest > 2 ? b : a, a, d, out);
  }
#endif
}

HWY_INLINE void spread_groups(const PoolVolumes& p, const WindowSums& sums, float* HWY_RESTRICT out) {
  const int64_t rest = p.rest, first = p.first, groups = p.groups;
  if (p.stride <= 4) {
    return in_vectors(groups, [&](auto d, int64_t i) {
      const auto a = sums.a(d, first + i);
      interleave(d, p.stride, rest, a, rest > 0 ? sums.b(d, first + i, a) : a, out + i * p.stride);
    });
  }
  const Floats<1> one;
  for (int64_t g = 0; g < groups; ++g, out += p.stride) {
    const auto a = sums.a(one, first + g);
    const float full = hn::GetLane(a), more = rest > 0 ? hn::GetLane(sums.b(one, first + g, a)) : 0;
    in_vectors(rest, [&](auto d, int64_t i) { store(hn::Set(d, more), d, out + i); });
    in_vectors(p.stride - rest, [&](auto d, int64_t i) { store(hn::Set(d, full), d, out + rest + i); });
  }
}

// A row of single places, strided windows, as FP32.
HWY_INLINE void spread_line(const PoolVolumes& p, const WindowSums& sums, float* HWY_RESTRICT out) {
  const auto put = [out](auto d, auto v, int64_t x, int64_t) { store(v, d, out + x); };
  const int64_t lead = p.lead, behind = lead + p.groups * p.stride;
  place_by_place(p, sums, 0, lead, put);
  spread_groups(p, sums, out + lead);
  place_by_place(p, sums, behind, p.x, put);
}

template <class E>
HWY_INLINE void spread_row(const PoolVolumes& p, const E& elements, const WindowSums& sums,
                           float* HWY_RESTRICT line, std::byte* HWY_RESTRICT out) {
  const int64_t step = p.out.place * E::kBytes;
  if (p.stride == 1 && p.out.place == p.unit) {
    return in_vectors(p.x * p.unit, [&](auto d, int64_t i) {
      elements.store(sums.a(d, p.pad * p.unit + i), d, out + i * E::kBytes);
    });
  }
  if (p.unit > 1 || p.stride == 1) {
    return place_by_place(p, sums, 0, p.x, [&](auto d, auto v, int64_t x, int64_t i) {
      elements.store(v, d, out + x * step + i * E::kBytes);
    });
  }
  if constexpr (std::is_same_v<E, Elements<DType::kF32>>) {
    // Highway writes single lanes as objects of their type, which must be
    // aligned.
    if (p.out.place == 1 && reinterpret_cast<uintptr_t>(out) % alignof(float) == 0)
      return spread_line(p, sums, reinterpret_cast<float*>(out));
  }
  spread_line(p, sums, line);
  if (p.out.place == 1) {
    return in_vectors(p.x,
                      [&](auto d, int64_t i) { elements.store(load(d, line + i), d, out + i * E::kBytes); });
  }
  const Floats<1> one;
  for (int64_t x = 0; x < p.x; ++x) elements.store(load(one, line + x), one, out + x * step);
}

struct Windows {
  int64_t d0, d1, h0, h1;
  bool operator==(const Windows&) const = default;
};

// Σ of the rows of quotients in `w`; one alone is taken where it lies.
HWY_INLINE const float* add_rows(const PoolVolumes& p, const float* quotients, const Windows& w,
                                 float* HWY_RESTRICT sums) {
  const int64_t start = p.front() * p.unit, pitch = p.pitch, count = p.y * p.unit;
  if (w.d0 >= w.d1 || w.h0 >= w.h1) {
    std::fill_n(sums + start, count, 0.0F);
    return sums + start;
  }
  const float* first = quotients + (w.d0 * p.rows.y + w.h0) * pitch + start;
  if (w.d1 - w.d0 == 1 && w.h1 - w.h0 == 1) return first;
  in_vectors(count, [&](auto d, int64_t i) {
    auto sum = hn::Zero(d);
    for (int64_t z = 0; z < w.d1 - w.d0; ++z) {
      const float* at = first + z * p.rows.y * pitch + i;
      for (int64_t y = 0; y < w.h1 - w.h0; ++y, at += pitch) sum = hn::Add(sum, load(d, at));
    }
    store(sum, d, sums + start + i);
  });
  return sums + start;
}

void pool_volume(const PoolVolumes& p, const std::byte* in, std::byte* out, float* scratch) {
  float* line = scratch;
  float* sums = line + p.x;
  float* groups = sums + p.pitch;
  float* quotients = groups + p.pitch;
  divide_volume(p, in, quotients);
  with_elements(p.out.dtype, [&](auto elements) {
    Windows last{-1, -1, -1, -1};
    const float* row = sums;
    for (int64_t d = 0; d < p.depths.x; ++d)
      for (int64_t h = 0; h < p.rows.x; ++h) {
        const Windows windows{p.depths.begin[d] - p.depths.first, p.depths.end[d] - p.depths.first,
                              p.rows.begin[h] - p.rows.first, p.rows.end[h] - p.rows.first};
        if (!(windows == last)) row = add_rows(p, quotients, windows, sums);
        last = windows;
        const WindowSums row_sums(p, row, groups + p.front() * p.unit);
        spread_row(p, elements, row_sums, line, out + (d * p.out.depth + h * p.out.row) * elements.kBytes);
      }
  });
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

HWY_EXPORT(pool_volume);
HWY_EXPORT(pool_fill);

struct Chosen {
  void (*volume)(const PoolVolumes&, const std::byte*, std::byte*, float*);
  void (*fill)(const PoolFill&, const std::byte*, std::byte*, int64_t);
};
const Chosen& chosen() {
  static const Chosen instance{RG_CHOSEN(pool_volume), RG_CHOSEN(pool_fill)};
  return instance;
}

}  // namespace

void clear_pool_scratch(const PoolVolumes& p, int64_t quotient_rows, float* scratch) {
  scratch += p.x;
  const int64_t pitch = p.pitch, front = p.front() * p.unit, back = p.back() * p.unit;
  for (int64_t row = 0; row < quotient_rows + 2; ++row) {
    std::fill_n(scratch + row * pitch, front, 0.0F);
    std::fill_n(scratch + (row + 1) * pitch - back, back, 0.0F);
  }
}
void pool_volume(const PoolVolumes& volumes, const std::byte* in, std::byte* out, float* scratch) {
  chosen().volume(volumes, in, out, scratch);
}
void pool_fill(const PoolFill& fill, const std::byte* in, std::byte* out, int64_t volumes) {
  chosen().fill(fill, in, out, volumes);
}

}  // namespace retrograd::kernels::cpu
#endif
