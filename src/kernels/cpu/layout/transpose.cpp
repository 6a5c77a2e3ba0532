// SPDX-License-Identifier: Apache-2.0
// Transposition in registers, once for every instruction set.
//
// Whole vectors are read, rather than quarters of them from four rows at once: planes of 32 × 32 lie 4 KiB
// apart, so the rows of a tile share one set of L1, and a line must give up all it holds while it is there.
#include "kernels/cpu/layout/transpose.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/layout/transpose.cpp"
#include "kernels/cpu/all_targets.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = RG_VECTORS;

// Columns that are finished for all rows before the next ones begin: what is written stays in L1 until its
// cache lines are full.
constexpr int64_t kColumnsAtOnce = 64;

struct Block {
  const float* in;
  int64_t in_stride;
  float* out;
  int64_t out_stride;
  int64_t rows, cols;
};

// memcpy: callers hand over rows of tensors, which may start at any byte.
void transpose_scalar(const Block& b) {
  for (int64_t r = 0; r < b.rows; ++r)
    for (int64_t c = 0; c < b.cols; ++c)
      std::memcpy(b.out + c * b.out_stride + r, b.in + r * b.in_stride + c, sizeof(float));
}

#if RG_HAS_LANES

template <int kLanes>
using Tag = hn::FixedTag<float, kLanes>;
template <int kLanes>
using Vector = hn::Vec<Tag<kLanes>>;

// Rows 0 to 3 of a tile; afterwards v_j holds columns j, 4 + j, 8 + j … of these four rows, four floats each.
template <int kLanes>
HWY_INLINE void turn_quads(const float* HWY_RESTRICT in, int64_t stride, Vector<kLanes>& v0,
                           Vector<kLanes>& v1, Vector<kLanes>& v2, Vector<kLanes>& v3) {
  const Tag<kLanes> d;
  const hn::Repartition<double, Tag<kLanes>> pairs;
  const auto r0 = hn::LoadU(d, in), r1 = hn::LoadU(d, in + stride);
  const auto r2 = hn::LoadU(d, in + 2 * stride), r3 = hn::LoadU(d, in + 3 * stride);
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, r0, r1));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, r0, r1));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, r2, r3));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, r2, r3));
  v0 = hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23));
  v1 = hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23));
  v2 = hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23));
  v3 = hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23));
}

HWY_INLINE void tile(Tag<4> d, const float* HWY_RESTRICT in, int64_t in_stride, float* HWY_RESTRICT out,
                     int64_t out_stride) {
  Vector<4> v0, v1, v2, v3;
  turn_quads<4>(in, in_stride, v0, v1, v2, v3);
  hn::StoreU(v0, d, out);
  hn::StoreU(v1, d, out + out_stride);
  hn::StoreU(v2, d, out + 2 * out_stride);
  hn::StoreU(v3, d, out + 3 * out_stride);
}

#if RG_VECTOR_BYTES >= 32
// Columns j and 4 + j, from rows 0 to 3 in `a` and 4 to 7 in `b`.
HWY_INLINE void store_halves(Vector<8> a, Vector<8> b, float* HWY_RESTRICT out, int64_t out_stride) {
  const Tag<8> d;
  hn::StoreU(hn::ConcatLowerLower(d, b, a), d, out);
  hn::StoreU(hn::ConcatUpperUpper(d, b, a), d, out + 4 * out_stride);
}

HWY_INLINE void tile(Tag<8>, const float* HWY_RESTRICT in, int64_t in_stride, float* HWY_RESTRICT out,
                     int64_t out_stride) {
  Vector<8> a0, a1, a2, a3, b0, b1, b2, b3;
  turn_quads<8>(in, in_stride, a0, a1, a2, a3);
  turn_quads<8>(in + 4 * in_stride, in_stride, b0, b1, b2, b3);
  store_halves(a0, b0, out, out_stride);
  store_halves(a1, b1, out + out_stride, out_stride);
  store_halves(a2, b2, out + 2 * out_stride, out_stride);
  store_halves(a3, b3, out + 3 * out_stride, out_stride);
}
#endif

#if RG_VECTOR_BYTES >= 64
// Columns j, 4 + j, 8 + j and 12 + j, from rows 0, 4, 8, 12 and the three after each.
HWY_INLINE void store_quarters(Vector<16> a, Vector<16> b, Vector<16> c, Vector<16> e,
                               float* HWY_RESTRICT out, int64_t out_stride) {
  const Tag<16> d;
  const auto even_ab = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a);
  const auto odd_ab = hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a));
  const auto even_ce = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(e), c);
  const auto odd_ce = hn::OddEvenBlocks(e, hn::SwapAdjacentBlocks(c));
  hn::StoreU(hn::ConcatLowerLower(d, even_ce, even_ab), d, out);
  hn::StoreU(hn::ConcatLowerLower(d, odd_ce, odd_ab), d, out + 4 * out_stride);
  hn::StoreU(hn::ConcatUpperUpper(d, even_ce, even_ab), d, out + 8 * out_stride);
  hn::StoreU(hn::ConcatUpperUpper(d, odd_ce, odd_ab), d, out + 12 * out_stride);
}

HWY_INLINE void tile(Tag<16>, const float* HWY_RESTRICT in, int64_t in_stride, float* HWY_RESTRICT out,
                     int64_t out_stride) {
  Vector<16> a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, e0, e1, e2, e3;
  turn_quads<16>(in, in_stride, a0, a1, a2, a3);
  turn_quads<16>(in + 4 * in_stride, in_stride, b0, b1, b2, b3);
  turn_quads<16>(in + 8 * in_stride, in_stride, c0, c1, c2, c3);
  turn_quads<16>(in + 12 * in_stride, in_stride, e0, e1, e2, e3);
  store_quarters(a0, b0, c0, e0, out, out_stride);
  store_quarters(a1, b1, c1, e1, out + out_stride, out_stride);
  store_quarters(a2, b2, c2, e2, out + 2 * out_stride, out_stride);
  store_quarters(a3, b3, c3, e3, out + 3 * out_stride, out_stride);
}
#endif

// For at least kLanes rows and columns. A last tile that would hang over the edge starts earlier instead and
// writes some places again.
template <int kLanes>
void transpose_tiles(const Block& b) {
  for (int64_t first = 0; first < b.cols; first += kColumnsAtOnce)
    for (int64_t row = 0; row < b.rows; row += kLanes) {
      const int64_t r = std::min(row, b.rows - kLanes);
      for (int64_t col = first; col < std::min(first + kColumnsAtOnce, b.cols); col += kLanes) {
        const int64_t c = std::min(col, b.cols - kLanes);
        tile(Tag<kLanes>(), b.in + r * b.in_stride + c, b.in_stride, b.out + c * b.out_stride + r,
             b.out_stride);
      }
    }
}

#endif  // RG_HAS_LANES

void transpose(const float* in, int64_t in_stride, float* out, int64_t out_stride, int64_t rows,
               int64_t cols) {
  const Block block{in, in_stride, out, out_stride, rows, cols};
  [[maybe_unused]] const int64_t fewest = std::min(rows, cols);
#if RG_HAS_LANES
#if RG_VECTOR_BYTES >= 64
  if (fewest >= 16) return transpose_tiles<16>(block);
#endif
#if RG_VECTOR_BYTES >= 32
  if (fewest >= 8) return transpose_tiles<8>(block);
#endif
  if (fewest >= 4) return transpose_tiles<4>(block);
#endif
  transpose_scalar(block);
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {

RG_EXPORT(RG_WIDEST, transpose)

void transpose(const float* in, int64_t in_stride, float* out, int64_t out_stride, int64_t rows,
               int64_t cols) {
  chosen_transpose()(in, in_stride, out, out_stride, rows, cols);
}

}  // namespace retrograd::kernels::cpu
#endif
