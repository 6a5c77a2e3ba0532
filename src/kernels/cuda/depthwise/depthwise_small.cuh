// SPDX-License-Identifier: Apache-2.0
// Small planes of a 16-bit type in shared memory, a warp's own: rows of 16 columns with zeros around them, 48
// bytes apart, so that eight rows of a matrix are in different banks.
#pragma once

#include "kernels/cuda/dense/tile_mma.cuh"
#include "kernels/cuda/depthwise/depthwise_plan.h"

namespace retrograd::kernels::cuda {

constexpr int kSmallPieces = 2;  // of a lane
constexpr int kSmallPitch = 48;
constexpr int kSmallOutBytes = 2 * kSmallWidth * kSmallWidth + 8;  // of a plane without zeros

// With `margin` rows of zeros above, and as many below the sixteenth row.
__host__ __device__ constexpr int small_bytes(int margin) { return (16 + 2 * margin) * kSmallPitch; }

__device__ inline void store_shared(uint32_t shared, uint32_t word) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(shared), "r"(word) : "memory");
}
__device__ inline void store_shared(uint32_t shared, uint16_t half) {
  asm volatile("st.shared.b16 [%0], %1;" ::"r"(shared), "h"(half) : "memory");
}

// Planes of 14 x 14: a lane has eight bytes at a time from memory, words of rows.
struct FourteenPlane {
  using Piece = uint2;
  static constexpr int kPieces = kSmallWidth * kSmallWidth / 4;  // of a plane
  __device__ explicit FourteenPlane(const Conv& /*conv*/) {}
  __device__ static int width() { return kSmallWidth; }
  __device__ static int height() { return kSmallWidth; }
  __device__ static bool has(int lane, int piece) { return piece == 0 || lane + 32 * piece < kPieces; }
  // Where half a piece lies, from the first row on.
  __device__ static uint32_t offset(int piece, int half) {
    const int word = 2 * piece + half;
    return word / (kSmallWidth / 2) * kSmallPitch + word % (kSmallWidth / 2) * 4;
  }
  __device__ static void put(uint32_t first, uint32_t second, Piece piece) {
    store_shared(first, piece.x);
    store_shared(second, piece.y);
  }
};

// Planes of up to 64 places: a lane has an element at a time.
struct TinyPlane {
  using Piece = uint16_t;
  int wide, high;
  __device__ explicit TinyPlane(const Conv& conv)
      : wide(static_cast<int>(conv.axes[2].x)), high(static_cast<int>(conv.axes[1].x)) {}
  __device__ int width() const { return wide; }
  __device__ int height() const { return high; }
  __device__ bool has(int lane, int piece) const { return lane + 32 * piece < wide * high; }
  __device__ uint32_t offset(int piece, int /*half*/) const {
    return piece / wide * kSmallPitch + piece % wide * 2;
  }
  __device__ static void put(uint32_t first, uint32_t /*second*/, Piece piece) { store_shared(first, piece); }
};

// A lane's share of a plane.
template <class Plane>
struct SmallCopy {
  using Piece = typename Plane::Piece;
  Plane plane;
  uint32_t to[kSmallPieces][2];
  int lane;

  __device__ SmallCopy(const Plane& of_plane, int of_lane, uint32_t base, int margin)
      : plane(of_plane), lane(of_lane) {
#pragma unroll
    for (int i = 0; i < 2 * kSmallPieces; ++i)
      to[i / 2][i % 2] = base + margin * kSmallPitch + plane.offset(lane + 32 * (i / 2), i % 2);
  }
  __device__ void fetch(Piece (&values)[kSmallPieces], const void* source) const {
#pragma unroll
    for (int i = 0; i < kSmallPieces; ++i)
      if (plane.has(lane, i)) values[i] = static_cast<const Piece*>(source)[lane + 32 * i];
  }
  __device__ void put(const Piece (&values)[kSmallPieces]) const {
#pragma unroll
    for (int i = 0; i < kSmallPieces; ++i)
      if (plane.has(lane, i)) Plane::put(to[i][0], to[i][1], values[i]);
  }
  // From shared memory without zeros between rows.
  __device__ void take(void* target, const void* staged) const {
#pragma unroll
    for (int i = 0; i < kSmallPieces; ++i)
      if (plane.has(lane, i))
        static_cast<Piece*>(target)[lane + 32 * i] = static_cast<const Piece*>(staged)[lane + 32 * i];
  }
};

}  // namespace retrograd::kernels::cuda
