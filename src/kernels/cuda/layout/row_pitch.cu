// SPDX-License-Identifier: Apache-2.0
// A thread writes aligned vectors of 16 bytes: the end of a row and the beginning of the next, each shifted
// together out of the two aligned vectors of the source that cover it. Most have one of the two: the other's
// loads are left out, not branched around. Bytes: both sides once.
#include "base/checked.h"
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/layout/relayout.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256, kEach = 4;
constexpr int kVector = 8;  // of 2 bytes, in which everything below is counted

struct Args {
  uint32_t rows, length, total;  // total: of the target
  FastDiv to;
  int64_t from, source;  // source: all of it
};

// Eight halves from `shift` on.
__device__ uint4 shifted(uint4 first, uint4 second, unsigned shift) {
  uint32_t w[8] = {first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w};
  if ((shift & 4) != 0) {
#pragma unroll
    for (int i = 0; i < 6; ++i) w[i] = w[i + 2];
  }
  if ((shift & 2) != 0) {
#pragma unroll
    for (int i = 0; i < 5; ++i) w[i] = w[i + 1];
  }
  const unsigned bits = (shift & 1) * 16;
  return {__funnelshift_r(w[0], w[1], bits), __funnelshift_r(w[1], w[2], bits),
          __funnelshift_r(w[2], w[3], bits), __funnelshift_r(w[3], w[4], bits)};
}

// Where the two vectors that cover eight halves would leave the source.
__device__ uint4 collected(const Args& p, const uint16_t* source, uint32_t row, uint32_t column) {
  uint32_t words[4] = {};
  for (int i = 0; i < kVector; ++i) {
    const bool there = column < p.length && row < p.rows;
    const uint32_t value = there ? source[row * p.from + column] : 0;
    words[i / 2] |= value << (i % 2 * 16);
    if (++column == p.to.divisor) column = 0, ++row;
  }
  return {words[0], words[1], words[2], words[3]};
}

// Of halves 2i and 2i + 1, those before `count`.
__device__ uint32_t first_halves(int i, int count) {
  return count >= 2 * i + 2 ? ~0u : count == 2 * i + 1 ? 0xffffu : 0u;
}

// Halves [0, first) of one vector, zeros, and from `second` on those of the other.
__device__ uint4 joined(uint4 one, int first, uint4 other, int second) {
  const auto word = [&](int i, uint32_t a, uint32_t b) {
    return (a & first_halves(i, first)) | (b & ~first_halves(i, second));
  };
  return {word(0, one.x, other.x), word(1, one.y, other.y), word(2, one.z, other.z), word(3, one.w, other.w)};
}

__device__ uint4 vector_at(const Args& p, const uint16_t* source, uint32_t at) {
  uint32_t column = at;
  const uint32_t row = p.to.split(column);
  // So many halves of this row, and so many before the next one's.
  const int first = static_cast<int>(p.length - column), second = static_cast<int>(p.to.divisor - column);
  const bool crosses = second < kVector;
  const int64_t from = row * p.from + column, next = (row + 1) * p.from - second;
  const int64_t last = crosses ? (next > from ? next : from) : from,
                least = crosses && next < from ? next : from;
  if (least < 0 || (last & -int64_t{kVector}) + 2 * kVector > p.source)
    return collected(p, source, row, column);
  const auto load = [&](int64_t begin) {
    const auto* const vectors = reinterpret_cast<const uint4*>(source + (begin & -int64_t{kVector}));
    return shifted(vectors[0], vectors[1], static_cast<unsigned>(begin & (kVector - 1)));
  };
  const uint4 one = load(from);
  const uint4 other = crosses ? load(next) : uint4{};
  return joined(one, first, other, second);
}

__global__ void __launch_bounds__(kThreads)
    pitch_kernel(const __grid_constant__ Args p, const uint16_t* __restrict__ source,
                 uint16_t* __restrict__ target) {
  const uint32_t first = (blockIdx.x * (kThreads * kEach) + threadIdx.x) * kVector;
  uint4 vectors[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i)
    if (const uint32_t at = first + i * (kThreads * kVector); at < p.total)
      vectors[i] = vector_at(p, source, at);
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const uint32_t at = first + i * (kThreads * kVector);
    if (at + kVector <= p.total) {
      *reinterpret_cast<uint4*>(target + at) = vectors[i];
    } else if (at < p.total) {
      const auto* const elements = reinterpret_cast<const uint16_t*>(vectors + i);
      for (uint32_t e = 0; e < p.total - at; ++e) target[at + e] = elements[e];
    }
  }
}

}  // namespace

bool change_row_pitch(const RowPitch& pitch, DType type, const void* source, void* target, Stream stream) {
  constexpr int64_t kMost = (int64_t{1} << 31) - kThreads * kEach * kVector;
  const auto halves = static_cast<int64_t>(size_of(type) / 2);
  const int64_t total = pitch.rows * pitch.to * halves;
  const bool fills = pitch.to >= pitch.length && (pitch.to - pitch.length) * halves < kVector;
  if (halves == 0 || pitch.length * halves < kVector || !fills || total > kMost) return false;
  if (!is_aligned(source) || !is_aligned(target)) return false;
  const Args p{static_cast<uint32_t>(pitch.rows),
               static_cast<uint32_t>(pitch.length * halves),
               static_cast<uint32_t>(total),
               FastDiv(pitch.to * halves),
               pitch.from * halves,
               ((pitch.rows - 1) * pitch.from + pitch.length) * halves};
  start(pitch_kernel, ceil_div(total, kThreads * kEach * kVector), kThreads, 0, stream, p, source, target);
  return true;
}

}  // namespace retrograd::kernels::cuda
