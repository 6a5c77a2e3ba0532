// SPDX-License-Identifier: Apache-2.0
// Copies of rows, once for every instruction set.
#include "kernels/cpu/row_copy.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/row_copy.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/targets.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;

// Where a masked store touches nothing beside the mask, and is quick.
constexpr bool kMasks = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3;

// Rows shorter than a vector.
void copy_short_rows(const float* in, int64_t in_stride, float* out, int64_t out_stride, int64_t rows,
                     int64_t count) {
  const D d;
  if constexpr (kMasks) {
    const auto inside = hn::FirstN(d, static_cast<size_t>(count));
    for (int64_t r = 0; r < rows; ++r)
      hn::BlendedStore(hn::MaskedLoad(inside, d, in + r * in_stride), inside, d, out + r * out_stride);
  } else {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t x = 0; x < count; ++x) out[r * out_stride + x] = in[r * in_stride + x];
  }
}

HWY_INLINE void copy_each(const float* in, int64_t in_stride, float* out, int64_t out_stride, int64_t rows,
                          int64_t count) {
  const D d;
  const int64_t n = static_cast<int64_t>(hn::Lanes(d));
  if (count < n) return copy_short_rows(in, in_stride, out, out_stride, rows, count);
  // The last vector ends with the row, so it overlaps the one before.
  const int64_t last = count - n;
  for (int64_t r = 0; r < rows; ++r, in += in_stride, out += out_stride) {
    for (int64_t x = 0; x < last; x += n) hn::StoreU(hn::LoadU(d, in + x), d, out + x);
    hn::StoreU(hn::LoadU(d, in + last), d, out + last);
  }
}

void copy_rows(const float* in, int64_t in_stride, float* out, int64_t out_stride, int64_t rows,
               int64_t count) {
  copy_each(in, in_stride, out, out_stride, rows, count);
}

void copy_rows_apart(const float* in, int64_t in_stride, float* out, int64_t out_stride, int64_t rows,
                     int64_t count) {
  const D d;
  const int64_t n = static_cast<int64_t>(hn::Lanes(d));
  const int64_t end = (rows - 1) * out_stride + count;
  // Zeros that reach into the next row are written over by it.
  for (int64_t r = 0; r < rows; ++r) {
    copy_each(in + r * in_stride, 0, out + r * out_stride, 0, 1, count);
    if (r + 1 == rows) return;
    const int64_t stop = (r + 1) * out_stride;
    int64_t x = r * out_stride + count;
    for (; x < stop && x + n <= end; x += n) hn::StoreU(hn::Zero(d), d, out + x);
    for (; x < stop; ++x) out[x] = 0;
  }
}

void take_every(const float* in, int64_t step, float* out, int64_t count) {
  int64_t x = 0;
#if HWY_TARGET != HWY_SCALAR
  const D d;
  const int64_t n = static_cast<int64_t>(hn::Lanes(d));
  if (step == 2)
    for (; x + n < count; x += n)
      hn::StoreU(hn::ConcatEven(d, hn::LoadU(d, in + 2 * x + n), hn::LoadU(d, in + 2 * x)), d, out + x);
  if (step == 4)
    for (; x + n < count; x += n) {
      const float* from = in + 4 * x;
      const auto low = hn::ConcatEven(d, hn::LoadU(d, from + n), hn::LoadU(d, from));
      const auto high = hn::ConcatEven(d, hn::LoadU(d, from + 3 * n), hn::LoadU(d, from + 2 * n));
      hn::StoreU(hn::ConcatEven(d, high, low), d, out + x);
    }
#endif
  for (; x < count; ++x) out[x] = in[x * step];
}

// Positions j to j + n of all ways.
HWY_INLINE void weave_vectors(const WovenRows& w, const float* in, int64_t j, float* out) {
  const D d;
  const auto way = [&](int64_t i) HWY_ATTR { return hn::LoadU(d, in + i * w.way_stride + j); };
  if (w.ways == 2) hn::StoreInterleaved2(way(0), way(1), d, out + j * 2);
  if (w.ways == 3) hn::StoreInterleaved3(way(0), way(1), way(2), d, out + j * 3);
  if (w.ways == 4) hn::StoreInterleaved4(way(0), way(1), way(2), way(3), d, out + j * 4);
}

void weave_rows(const WovenRows& w) {
  if (w.ways == 1)
    return copy_each(w.in + w.begin, w.in_stride, w.out + w.begin, w.out_stride, w.rows, w.end - w.begin);
  // Positions of which every way is stored; at each end there may be one of which some are.
  const int64_t first = std::min((w.begin + w.ways - 1) / w.ways, w.end / w.ways), stop = w.end / w.ways;
  const int64_t n = static_cast<int64_t>(hn::Lanes(D()));
  for (int64_t r = 0; r < w.rows; ++r) {
    const float* in = w.in + r * w.in_stride;
    float* out = w.out + r * w.out_stride;
    int64_t j = first;
    if (w.ways <= 4 && first + n <= stop) {
      for (; j + n < stop; j += n) weave_vectors(w, in, j, out);
      weave_vectors(w, in, stop - n, out);  // overlaps the one before
      j = stop;
    }
    for (int64_t i = 0; i < w.ways; ++i)
      for (int64_t at = j; at < stop; ++at) out[at * w.ways + i] = in[i * w.way_stride + at];
    const auto one = [&](int64_t p) { out[p] = in[p % w.ways * w.way_stride + p / w.ways]; };
    for (int64_t p = w.begin; p < std::min(first * w.ways, w.end); ++p) one(p);
    for (int64_t p = std::max(stop * w.ways, w.begin); p < w.end; ++p) one(p);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {
namespace {

HWY_EXPORT(copy_rows);
HWY_EXPORT(copy_rows_apart);
HWY_EXPORT(take_every);
HWY_EXPORT(weave_rows);

struct Chosen {
  void (*copy)(const float*, int64_t, float*, int64_t, int64_t, int64_t);
  void (*copy_apart)(const float*, int64_t, float*, int64_t, int64_t, int64_t);
  void (*take)(const float*, int64_t, float*, int64_t);
  void (*weave)(const WovenRows&);
};
const Chosen& chosen() {
  static const Chosen instance{RG_CHOSEN(copy_rows), RG_CHOSEN(copy_rows_apart), RG_CHOSEN(take_every),
                               RG_CHOSEN(weave_rows)};
  return instance;
}

}  // namespace

void copy_rows(const float* in, int64_t in_stride, float* out, int64_t out_stride, int64_t rows,
               int64_t count) {
  chosen().copy(in, in_stride, out, out_stride, rows, count);
}
void copy_rows_apart(const float* in, int64_t in_stride, float* out, int64_t out_stride, int64_t rows,
                     int64_t count) {
  chosen().copy_apart(in, in_stride, out, out_stride, rows, count);
}
void take_every(const float* in, int64_t step, float* out, int64_t count) {
  chosen().take(in, step, out, count);
}
void weave_rows(const WovenRows& rows) { chosen().weave(rows); }

}  // namespace retrograd::kernels::cpu
#endif
