// SPDX-License-Identifier: Apache-2.0
// Results as one stream of whole vectors, where windows lie side by side and fill the rows.
//
// Included once for every instruction set.
#include <algorithm>
#include <array>
#include <cstddef>

#include "kernels/cpu/elements-inl.h"
#include "kernels/cpu/pooling/pool_vectors-inl.h"
#include "kernels/cpu/pooling/row_pool.h"

#if defined(RETROGRAD_KERNELS_CPU_POOL_STREAM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETROGRAD_KERNELS_CPU_POOL_STREAM_INL_H_
#undef RETROGRAD_KERNELS_CPU_POOL_STREAM_INL_H_
#else
#define RETROGRAD_KERNELS_CPU_POOL_STREAM_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {

template <int kWidth>
HWY_INLINE auto lanes_of(const PoolStreamVector& vector) {
  const Floats<kWidth> d;
  return hn::IndicesFromVec(d, hn::LoadU(hn::RebindToSigned<decltype(d)>(), vector.lane.data()));
}
HWY_INLINE hn::Vec<Floats<kLanes>> stream_vector(const PoolStreamVector& vector, const float* quotients) {
  const Floats<kLanes> d;
  const auto lanes = lanes_of<kLanes>(vector);
  const auto first = hn::TableLookupLanes(load(d, quotients + vector.from), lanes);
  if (vector.turn == kLanes) return first;
  const auto second = hn::TableLookupLanes(load(d, quotients + vector.second), lanes);
  return hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(vector.turn)), first, second);
}

// `count` results from `quotients` on, `copies` times, `apart` bytes from one to the next.
template <int kCopies, class E>
HWY_NOINLINE void put_stream(const E& codec, const PoolStream& stream, const float* quotients, int64_t count,
                             int64_t depths, int64_t apart, std::byte* out) {
  const Floats<kLanes> d;
  const E elements = codec;
  const PoolStreamVector* const end = stream.vectors + stream.period;
  const int64_t advance = stream.advance, copies = kCopies > 0 ? kCopies : depths;
  int64_t vectors = count / kLanes;
  const PoolStreamVector* vector = stream.vectors;
  for (; vectors > 0; quotients += advance) {
    const PoolStreamVector* const stop = std::min(end, stream.vectors + vectors);
    for (vector = stream.vectors; vector != stop; ++vector, out += kLanes * E::kBytes) {
      const auto numbers = stream_vector(*vector, quotients);
      std::byte* at = out;
      for (int64_t copy = 0; copy < copies; ++copy, at += apart) elements.store(numbers, d, at);
    }
    vectors -= stop - stream.vectors;
    if (vectors == 0 && stop != end) break;
  }
  const int64_t left = count % kLanes;
  if (left == 0) return;
  if (vector == end) vector = stream.vectors;
  HWY_ALIGN std::array<float, kLanes> last;
  hn::Store(stream_vector(*vector, quotients), d, last.data());
  for (int64_t copy = 0; copy < copies; ++copy, out += apart)
    in_vectors(left, [&](auto tag, int64_t i) {
      elements.store(load(tag, last.data() + i), tag, out + i * E::kBytes);
    });
}

// Rows of whole vectors, which all take their lanes alike.
struct EvenRows {
  int64_t windows = 1, count = 0;  // rows of windows; results in a row
  int64_t step = 1;                // quotients of a vector
  int64_t rows = 1, row = 0;       // copies, and bytes from one to the next
  int64_t depths = 1, depth = 0;   // copies of all of them
};
// kRows, kDepths: 0 for any number.
template <int kWidth, int kRows, int kDepths, class E>
HWY_NOINLINE void put_even_rows(const E& codec, const PoolStreamVector& vector, const EvenRows& all,
                                const float* quotients, std::byte* out) {
  const Floats<kWidth> d;
  const E elements = codec;
  const EvenRows even = all;
  const int64_t rows = kRows > 0 ? kRows : even.rows, depths = kDepths > 0 ? kDepths : even.depths;
  const auto lanes = lanes_of<kWidth>(vector);
  for (int64_t w = 0; w < even.windows; ++w, out += rows * even.row)
    for (int64_t i = 0; i < even.count; i += kWidth, quotients += even.step) {
      const auto numbers = hn::TableLookupLanes(load(d, quotients), lanes);
      std::byte* plane = out + i * E::kBytes;
      for (int64_t z = 0; z < depths; ++z, plane += even.depth) {
        std::byte* at = plane;
        for (int64_t r = 0; r < rows; ++r, at += even.row) elements.store(numbers, d, at);
      }
    }
}
template <int kWidth, class E>
HWY_INLINE void put_even(const E& elements, const PoolStreamVector& vector, EvenRows even,
                         const float* quotients, std::byte* out) {
  even.step = kWidth / even.step;
  if (even.rows == 1 && even.depths == 1)
    return put_even_rows<kWidth, 1, 1>(elements, vector, even, quotients, out);
  if (even.rows == 2 && even.depths == 1)
    return put_even_rows<kWidth, 2, 1>(elements, vector, even, quotients, out);
  if (even.rows == 2 && even.depths == 2)
    return put_even_rows<kWidth, 2, 2>(elements, vector, even, quotients, out);
  put_even_rows<kWidth, 0, 0>(elements, vector, even, quotients, out);
}

// Some planes of one stream.
template <class E>
HWY_INLINE void put_planes(const PoolVolumes& p, const E& elements, const float* quotients, int64_t planes,
                           std::byte* out) {
  constexpr int kWidth = HWY_MIN(kLanes, 8);  // as fast as 16, and fits more rows
  EvenRows even{.windows = planes * p.row_windows,
                .count = p.x,
                .step = p.stride,
                .rows = p.rows / p.row_windows,
                .row = p.x * E::kBytes,
                .depths = p.depths / p.depth_windows,
                .depth = p.out.depth * E::kBytes};
  if (even.rows == 1) {  // one long row
    even.count *= even.windows;
    even.windows = 1;
  }
  const PoolStreamVector& first = *p.stream.vectors;
  if (even.count % kWidth == 0 && kWidth % p.stride == 0)
    return put_even<kWidth>(elements, first, even, quotients, out);
  const int64_t count = planes * p.rows * p.x;
  if (even.depths == 1) return put_stream<1>(elements, p.stream, quotients, count, 1, 0, out);
  put_stream<0>(elements, p.stream, quotients, count, even.depths, even.depth, out);
}

void stream_rows(const PoolVolumes& p, const float* quotients, int64_t count, std::byte* out) {
  const int64_t windows = p.row_windows * p.y, step = p.depths / p.depth_windows * p.out.depth;
  with_pool_elements(p.out.dtype, [&](auto elements) {
    if (p.depths == 1 && (count == 1 || p.out.volume == p.rows * p.x))
      return put_planes(p, elements, quotients, count, out);
    for (int64_t v = 0; v < count; ++v)
      for (int64_t d = 0; d < p.depth_windows; ++d, quotients += windows)
        put_planes(p, elements, quotients, 1, out + (v * p.out.volume + d * step) * elements.kBytes);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
