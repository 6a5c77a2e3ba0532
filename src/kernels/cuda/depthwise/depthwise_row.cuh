// SPDX-License-Identifier: Apache-2.0
// A piece of a plane's row as FP32, with zeros around the plane: an aligned pack, and the few elements that a
// kernel reaches beyond it on either side.
#pragma once

#include "kernels/cuda/pack.cuh"

namespace retrograd::kernels::cuda {

// Elements moved at once to get `count` beside a pack of `main`.
__host__ __device__ constexpr int side_pack(int count, int main) {
  const int wanted = count < 1 ? 1 : count <= 2 ? count : 4;
  return wanted < main ? wanted : main;
}

// Elements column − kLeft to column + kMain + kRight − 1 of a row, as they lie in memory; column and width
// are multiples of kMain. Loading and converting are apart so that loads can be on their way meanwhile.
template <class T, int kLeft, int kMain, int kRight>
struct RowPiece {
  static constexpr int kLeftPack = side_pack(kLeft, kMain), kRightPack = side_pack(kRight, kMain);
  static constexpr int kLefts = kLeft == 0 ? 0 : (kLeft + kLeftPack - 1) / kLeftPack,
                       kRights = kRight == 0 ? 0 : (kRight + kRightPack - 1) / kRightPack;
  Pack<T, kMain> main;
  Pack<T, kLeft == 0 ? 1 : kLeftPack> left[kLefts == 0 ? 1 : kLefts];
  Pack<T, kRight == 0 ? 1 : kRightPack> right[kRights == 0 ? 1 : kRights];

  __device__ void load(const T* plane, int row, bool live, int column, int width) {
    const T* at = plane + static_cast<int64_t>(row) * width + column;
    get(main, at, live, column, width);
#pragma unroll
    for (int i = 0; i < kLefts; ++i)
      get(left[i], at - (i + 1) * kLeftPack, live, column - (i + 1) * kLeftPack, width);
#pragma unroll
    for (int i = 0; i < kRights; ++i)
      get(right[i], at + kMain + i * kRightPack, live, column + kMain + i * kRightPack, width);
  }
  __device__ void expand(float (&values)[kLeft + kMain + kRight]) const {
#pragma unroll
    for (int i = 0; i < kMain; ++i) values[kLeft + i] = to_float(main.values[i]);
#pragma unroll
    for (int i = 0; i < kLeft; ++i)
      values[kLeft - 1 - i] = to_float(left[i / kLeftPack].values[kLeftPack - 1 - i % kLeftPack]);
#pragma unroll
    for (int i = 0; i < kRight; ++i)
      values[kLeft + kMain + i] = to_float(right[i / kRightPack].values[i % kRightPack]);
  }

 private:
  template <class P>
  __device__ static void get(P& pack, const T* at, bool live, int column, int width) {
    pack = P{};
    if (live && static_cast<unsigned>(column) < static_cast<unsigned>(width))
      pack = *reinterpret_cast<const P*>(at);
  }
};

template <class T, int kLeft, int kMain, int kRight>
__device__ void load_row(const T* plane, int row, bool live, int column, int width,
                         float (&values)[kLeft + kMain + kRight]) {
  RowPiece<T, kLeft, kMain, kRight> piece;
  piece.load(plane, row, live, column, width);
  piece.expand(values);
}

}  // namespace retrograd::kernels::cuda
