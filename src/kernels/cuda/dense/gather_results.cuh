// SPDX-License-Identifier: Apache-2.0
// From the sums of gather_product's tiles to the result: through shared memory, so that neighbouring lanes
// store neighbouring pixels or columns, in vectors of up to 16 bytes where these lie side by side.
#pragma once

#include <type_traits>

#include "kernels/cuda/dense/gather_tiles.cuh"
#include "kernels/cuda/dense/tile_repair.cuh"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/launch.cuh"

namespace retrograd::kernels::cuda::gather {

// Of a column: its channel in the group, and how far behind the first tap of a window its places lie.
struct ColumnPlace {
  int channel, beyond[3];
};
__device__ inline ColumnPlace column_place(const Product& p, int column) {
  if (!p.fold.on) return {column, {0, 0, 0}};
  auto inner = static_cast<uint32_t>(column);
  const uint32_t outer = p.fold.inner.split(inner);
  uint32_t w = p.fold.taps_fast ? inner : outer;
  uint32_t h = p.fold.kw.split(w);
  const uint32_t d = p.fold.kh.split(h);
  return {static_cast<int>(p.fold.taps_fast ? outer : inner),
          {static_cast<int>(d) * p.fold.dilation[0], static_cast<int>(h) * p.fold.dilation[1],
           static_cast<int>(w) * p.fold.dilation[2]}};
}

// Whether a sum of this thread is not finite.
template <int kDown, int kAcross>
__device__ bool is_suspect(const float (&sums)[kDown][kAcross][4]) {
  float zero = 0;
#pragma unroll
  for (int i = 0; i < kDown; ++i)
#pragma unroll
    for (int j = 0; j < kAcross; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) zero = fmaf(sums[i][j][e], 0.0f, zero);
  return zero != 0.0f;  // NaN is not 0 either
}

template <class C, int kDown, int kAcross>
__device__ void stage_sums(bool by_columns, const float (&sums)[kDown][kAcross][4], const float* bias,
                           int first_row, int first_column, float* staged) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < kDown; ++i)
#pragma unroll
    for (int j = 0; j < kAcross; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int row = first_row + i * 16 + lane / 4 + e / 2 * 8;
        const int column = first_column + j * 8 + lane % 4 * 2 + e % 2;
        staged[by_columns ? row * C::kColumnsPitch + column : column * C::kPlacesPitch + row] =
            bias == nullptr ? sums[i][j][e] : sums[i][j][e] + bias[column];
      }
}

template <int kBytes>
struct Words;
template <>
struct Words<16> {
  using Type = uint4;
};
template <>
struct Words<8> {
  using Type = uint2;
};
template <>
struct Words<4> {
  using Type = uint32_t;
};
template <>
struct Words<2> {
  using Type = uint16_t;
};

template <class C>
struct TileResults {
  const Product& p;
  const Residue& r;
  const int4* rows;
  const int64_t *row_offsets, *column_offsets;
  const int3* beyond;
  const float* staged;
  uint32_t m0;
  int n0, group;

  __device__ int live_rows() const {
    return static_cast<int>(min(r.places - m0, static_cast<uint32_t>(C::kM)));
  }
  __device__ int live_columns() const { return min(p.columns - n0, C::kN); }
  __device__ bool lies_in_x(int row, int column) const {
    const int4 place = rows[row];
    const int3 c = beyond[column];
    const auto inside = [&](int a, int at, int further) {
      return static_cast<unsigned>(at * p.result_step[a] + r.result_first[a] + further) <
             static_cast<unsigned>(p.fold.x[a]);
    };
    return inside(0, place.y, c.x) && inside(1, place.z, c.y) && inside(2, place.w, c.z);
  }

  // kRun columns of a place, or places of a column, a thread.
  template <class T, int kRun, bool kByColumns>
  __device__ void store_as() const {
    constexpr int kFast = kByColumns ? C::kN : C::kM, kSlow = kByColumns ? C::kM : C::kN,
                  kPitch = kByColumns ? C::kColumnsPitch : C::kPlacesPitch;
    const int fast_live = kByColumns ? live_columns() : live_rows(),
              slow_live = kByColumns ? live_rows() : live_columns();
    T* const result = static_cast<T*>(p.result.data);
#pragma unroll 4
    for (int e = static_cast<int>(threadIdx.x); e < kSlow * (kFast / kRun); e += C::kThreads) {
      const int slow = e / (kFast / kRun), fast = e % (kFast / kRun) * kRun;
      if (slow >= slow_live || fast >= fast_live) continue;
      const int row = kByColumns ? slow : fast, column = kByColumns ? fast : slow;
      if (p.fold.checked && !lies_in_x(row, column)) continue;
      const float* const from = staged + slow * kPitch + fast;
      alignas(16) float sums[kRun];
      if constexpr (kRun % 4 == 0) {
#pragma unroll
        for (int i = 0; i < kRun; i += 4)
          *reinterpret_cast<float4*>(sums + i) = *reinterpret_cast<const float4*>(from + i);
      } else {
#pragma unroll
        for (int i = 0; i < kRun; ++i) sums[i] = from[i];
      }
      alignas(16) T values[kRun];
#pragma unroll
      for (int i = 0; i < kRun; ++i) values[i] = from_float<T>(sums[i]);
      using Vector = typename Words<kRun * sizeof(T)>::Type;
      *reinterpret_cast<Vector*>(result + row_offsets[row] + column_offsets[column]) =
          *reinterpret_cast<const Vector*>(values);
    }
  }
  template <class T>
  __device__ void store_in() const {
    constexpr int kMost = 16 / sizeof(T);
    if (p.by_columns) {
      if (p.run == kMost) return store_as<T, kMost, true>();
      if (p.run == kMost / 2) return store_as<T, kMost / 2, true>();
      return store_as<T, 1, true>();
    }
    if (p.run == kMost) return store_as<T, kMost, false>();
    store_as<T, 1, false>();
  }
  __device__ void store_bytes() const {
    for (int e = static_cast<int>(threadIdx.x); e < C::kM * C::kN; e += C::kThreads) {
      const int row = e / C::kN, column = e % C::kN;
      if (row >= live_rows() || column >= live_columns()) continue;
      if (p.fold.checked && !lies_in_x(row, column)) continue;
      store_any(p.result.dtype, p.result.data, row_offsets[row] + column_offsets[column],
                sum_at(row, column));
    }
  }
  __device__ float sum_at(int row, int column) const {
    return staged[p.by_columns ? row * C::kColumnsPitch + column : column * C::kPlacesPitch + row];
  }
  // T: the result's type where the kernel knows it, which saves most of the code; void: any.
  template <class T>
  __device__ void store() const {
    if constexpr (!std::is_void_v<T>) return store_in<T>();
    switch (p.result.dtype) {
      case DType::kF32:
        return store_in<float>();
      case DType::kF16:
        return store_in<__half>();
      case DType::kBF16:
        return store_in<__nv_bfloat16>();
      case DType::kHiF8:
      case DType::kE4M3:
        return store_bytes();
    }
  }
  // As repair_tile asks for it.
  struct Again {
    const TileResults& t;
    int rows, columns;

    struct Row {
      const TileResults& t;
      int number;
      bool there;
      Place place;

      __device__ Index5 index(int column) const {
        const Product& p = t.p;
        const ColumnPlace c = column_place(p, t.n0 + column);
        int64_t at[3];
#pragma unroll
        for (int a = 0; a < 3; ++a)
          at[a] = int64_t{place.at[a]} * p.result_step[a] + t.r.result_first[a] + c.beyond[a];
        const int64_t channels = p.forward ? p.conv.y_channels : p.conv.x_channels;
        return {place.n, t.group * channels + c.channel, at[0], at[1], at[2]};
      }
      __device__ bool is_there(int column) const {
        return there && (!t.p.fold.checked || t.lies_in_x(number, column));
      }
      __device__ bool is_nan(int column) const { return is_there(column) && isnan(t.sum_at(number, column)); }
      __device__ bool is_settled(int column) const {
        return is_there(column) && !isnan(t.sum_at(number, column));
      }
      __device__ void store(int column, float sum) const {
        store_any(t.p.result.dtype, t.p.result.data, t.row_offsets[number] + t.column_offsets[column], sum);
      }
    };
    __device__ Row row(int number) const {
      return {t, number, number < rows, place_of(t.r, min(t.m0 + number, t.r.places - 1))};
    }
  };
  // What a product with padding, or a split, may have made NaN, once more.
  __device__ __noinline__ void repair() const {
    repair_tile(p.conv, p.forward ? Result::kForward : Result::kGradInput, group,
                are_split(p.conv, p.forward ? p.conv.x : p.conv.y, p.conv.w), !p.fold.on,
                static_cast<int>(threadIdx.x) / 32, C::kThreads / 32,
                Again{*this, live_rows(), live_columns()});
  }
};

}  // namespace retrograd::kernels::cuda::gather
