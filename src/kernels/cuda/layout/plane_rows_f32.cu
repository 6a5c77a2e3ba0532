// SPDX-License-Identifier: Apache-2.0
// Rows of FP32 channels from planes: tiles of 64 pixels and 64 channels, written 16 bytes at a time, read so
// where planes begin at 16 bytes.
// Four neighbouring pixels of a channel keep together in shared memory, and lie so that four channels of
// eight chunks and four pixels are in different banks.
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/layout/channel_rows.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256, kTile = 64;
constexpr int64_t kFewestPlaces = 24;  // of an image, read one by one: tiles of fewer are mostly empty

struct Planes {
  const float* data;
  OperandRounding rounding;
  int64_t places, channels, filled, groups, image_stride, channel_stride;
  unsigned tiles;  // of the places of an image
};

__device__ int place_at(int channel, int place) { return channel * kTile + (place ^ (channel / 4 % 8 * 4)); }

// kFours: 16 bytes of a plane at a time.
template <bool kFours>
__global__ void __launch_bounds__(kThreads) planes_kernel(const __grid_constant__ Planes p, float* target) {
  __shared__ __align__(16) float tile[kTile * kTile];
  const int64_t image = blockIdx.x / p.tiles, place0 = int64_t{blockIdx.x % p.tiles} * kTile;
  const int64_t channel0 = blockIdx.y * int64_t{kTile}, group = blockIdx.z;
  const float* from =
      p.data + image * p.image_stride + (group * p.channels + channel0) * p.channel_stride + place0;
  if constexpr (kFours) {
    const int along = static_cast<int>(threadIdx.x) % 16 * 4, down = static_cast<int>(threadIdx.x) / 16;
#pragma unroll
    for (int i = 0; i < kTile; i += kThreads / 16) {
      const int channel = down + i;
      float4 value{0, 0, 0, 0};
      if (place0 + along < p.places && channel0 + channel < p.channels)
        value = *reinterpret_cast<const float4*>(from + channel * p.channel_stride + along);
      if (p.rounding != OperandRounding::kNone) {
        value.x = round_operand(p.rounding, value.x), value.y = round_operand(p.rounding, value.y);
        value.z = round_operand(p.rounding, value.z), value.w = round_operand(p.rounding, value.w);
      }
      *reinterpret_cast<float4*>(tile + place_at(channel, along)) = value;
    }
  } else {
    const int along = static_cast<int>(threadIdx.x) % kTile, down = static_cast<int>(threadIdx.x) / kTile;
    float values[kTile * kTile / kThreads];
#pragma unroll
    for (int i = 0; i < kTile * kTile / kThreads; ++i) {
      const int channel = down + i * (kThreads / kTile);
      const bool inside = place0 + along < p.places && channel0 + channel < p.channels;
      values[i] = inside ? from[channel * p.channel_stride + along] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kTile * kTile / kThreads; ++i)
      tile[place_at(down + i * (kThreads / kTile), along)] = round_operand(p.rounding, values[i]);
  }
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int chunk = warp % 2 * 8 + lane % 8;
  if (channel0 + chunk * 4 >= p.filled) return;
  float* const to =
      target + ((image * p.places + place0) * p.groups + group) * p.filled + channel0 + chunk * 4;
#pragma unroll
  for (int i = 0; i < kTile; i += kThreads / 16) {
    const int place = warp / 2 * 4 + lane / 8 + i;
    if (place0 + place >= p.places) break;
    const float4 value{tile[place_at(chunk * 4, place)], tile[place_at(chunk * 4 + 1, place)],
                       tile[place_at(chunk * 4 + 2, place)], tile[place_at(chunk * 4 + 3, place)]};
    *reinterpret_cast<float4*>(to + place * p.groups * p.filled) = value;
  }
}

}  // namespace

bool make_rows_of_planes(const Rows& rows, float* target, Stream stream) {
  const int64_t* s = rows.source.strides;
  const int64_t places = rows.spatial[0] * rows.spatial[1] * rows.spatial[2];
  const bool is_plane = (rows.spatial[2] == 1 || s[4] == 1) &&
                        (rows.spatial[1] == 1 || s[3] == rows.spatial[2]) &&
                        (rows.spatial[0] == 1 || s[2] == rows.spatial[1] * rows.spatial[2]);
  const bool in_fours = places % 4 == 0 && s[0] % 4 == 0 && s[1] % 4 == 0 && is_aligned(rows.source.data);
  const int64_t tiles = (places + kTile - 1) / kTile;
  if (rows.source.dtype != DType::kF32 || !is_plane || (!in_fours && places < kFewestPlaces) ||
      rows.channels < 8 || tiles * rows.batch >= int64_t{1} << 31)
    return false;
  Planes p;
  p.data = static_cast<const float*>(rows.source.data);
  p.rounding = rows.rounding;
  p.places = places;
  p.channels = rows.channels;
  p.filled = (rows.channels + 3) / 4 * 4;
  p.groups = rows.groups;
  p.image_stride = s[0];
  p.channel_stride = s[1];
  p.tiles = static_cast<unsigned>(tiles);
  const auto kernel = in_fours ? planes_kernel<true> : planes_kernel<false>;
  start(kernel, {tiles * rows.batch, (p.filled + kTile - 1) / kTile, p.groups}, kThreads, 0, stream, p,
        target);
  return true;
}

}  // namespace retrograd::kernels::cuda
