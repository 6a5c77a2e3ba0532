// SPDX-License-Identifier: Apache-2.0
// rows[n, p, c] = planes[n, c, p]. Bytes: each side once.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/layout/plane_rows.cuh"

namespace retrograd::kernels::cuda {
namespace {

// kVectors: slabs begin at 16 bytes and are whole vectors.
template <bool kVectors>
__global__ void __launch_bounds__(kCopyThreads)
    slab_to_rows_kernel(Slab s, const uint16_t* __restrict__ planes, uint16_t* __restrict__ rows) {
  extern __shared__ uint4 vectors[];
  auto* elements = reinterpret_cast<uint16_t*>(vectors);
  const int64_t image = blockIdx.x, channel0 = blockIdx.y * int64_t{s.block};
  const uint32_t there = s.there(image, channel0), count = there * s.places;
  const uint16_t* from = planes + image * s.outer_stride + channel0 * s.places;
  if constexpr (kVectors) {
    in_batches<4>(
        count / 8, [&](uint32_t i) { return reinterpret_cast<const uint4*>(from)[i]; },
        [&](uint32_t i, const uint4& value) { vectors[s.padded(i)] = value; });
  } else {
#pragma unroll 8
    for (uint32_t i = threadIdx.x; i < count; i += kCopyThreads) elements[s.padded_element(i)] = from[i];
  }
  __syncthreads();
  uint16_t* to = rows + image * s.places * s.filled + channel0;
  for (uint32_t i = threadIdx.x; i < s.places * s.of_chunks.divisor; i += kCopyThreads) {
    uint32_t chunk = i;
    const uint32_t place = s.of_chunks.split(chunk);
    if (channel0 + chunk * 8 >= s.filled) continue;
    const uint16_t* at = elements + s.at(chunk, place);
    uint32_t words[4];
#pragma unroll
    for (uint32_t j = 0; j < 4; ++j) {
      const uint32_t channel = chunk * 8 + 2 * j;
      const uint32_t low = channel < there ? at[2 * j * s.places] : 0;
      const uint32_t high = channel + 1 < there ? at[(2 * j + 1) * s.places] : 0;
      words[j] = low | high << 16;
    }
    *reinterpret_cast<uint4*>(to + place * s.filled + chunk * 8) = {words[0], words[1], words[2], words[3]};
  }
}

// Eight elements from any address; those outside of [begin, end) are not touched and come as zeros.
__device__ uint4 load_unaligned(const uint16_t* at, const uint16_t* begin, const uint16_t* end) {
  const uint32_t shift = reinterpret_cast<uintptr_t>(at) % 16 / 2;
  const uint16_t* aligned = at - shift;
  uint32_t w[8] = {};
  if (aligned >= begin && aligned + 16 <= end) {
    const uint4 low = reinterpret_cast<const uint4*>(aligned)[0];
    const uint4 high = reinterpret_cast<const uint4*>(aligned)[1];
    w[0] = low.x, w[1] = low.y, w[2] = low.z, w[3] = low.w;
    w[4] = high.x, w[5] = high.y, w[6] = high.z, w[7] = high.w;
#pragma unroll
    for (int i = 0; i < 6; ++i) w[i] = shift & 4 ? w[i + 2] : w[i];
#pragma unroll
    for (int i = 0; i < 5; ++i) w[i] = shift & 2 ? w[i + 1] : w[i];
#pragma unroll
    for (int i = 0; i < 4; ++i) w[i] = __funnelshift_r(w[i], w[i + 1], shift % 2 * 16);
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (at + i >= begin && at + i < end) w[i / 2] |= uint32_t{at[i]} << i % 2 * 16;
  }
  return {w[0], w[1], w[2], w[3]};
}

template <bool kVectors>
__global__ void __launch_bounds__(kCopyThreads)
    tile_to_rows_kernel(Tiles t, int64_t extent, const uint16_t* __restrict__ planes,
                        uint16_t* __restrict__ rows) {
  __shared__ uint4 tile[kTileSide * kTileVectors];
  auto* words = reinterpret_cast<uint32_t*>(tile);
  const int64_t image = blockIdx.x / t.count;
  const int64_t place0 = blockIdx.x % t.count * int64_t{kTileSide},
                channel0 = blockIdx.y * int64_t{kTileSide};
  // A thread takes eight places of two channels.
  const uint32_t vector = threadIdx.x % kTileVectors, pair = threadIdx.x / kTileVectors;
  static_assert(kCopyThreads == kTileSide / 2 * kTileVectors);
  uint4 both[2] = {};
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    const int64_t channel = channel0 + pair * 2 + j, place = place0 + vector * 8;
    if (image >= t.outer || channel >= t.channels || place >= t.places) continue;
    const uint16_t* at = planes + image * t.outer_stride + channel * t.channel_stride + place;
    both[j] = kVectors ? *reinterpret_cast<const uint4*>(at) : load_unaligned(at, planes, planes + extent);
  }
  const uint32_t first[4] = {both[0].x, both[0].y, both[0].z, both[0].w};
  const uint32_t second[4] = {both[1].x, both[1].y, both[1].z, both[1].w};
#pragma unroll
  for (uint32_t j = 0; j < 4; ++j) {
    words[tile_word(vector * 8 + 2 * j, pair)] = __byte_perm(first[j], second[j], 0x5410);
    words[tile_word(vector * 8 + 2 * j + 1, pair)] = __byte_perm(first[j], second[j], 0x7632);
  }
  __syncthreads();
#pragma unroll
  for (uint32_t i = threadIdx.x; i < kTileSide * kTileVectors; i += kCopyThreads) {
    const uint32_t chunk = i % kTileVectors, row = i / kTileVectors;
    const int64_t channel = channel0 + chunk * 8, place = place0 + row;
    if (place >= t.places || channel >= t.filled) continue;
    *reinterpret_cast<uint4*>(rows + (image * t.places + place) * t.filled + channel) =
        tile[tile_vector(row, chunk)];
  }
}

}  // namespace

bool has_planes(const Tensor& tensor, RowType type, PlaneRows& shape) {
  const int64_t(&s)[3] = shape.spatial;
  const int64_t* strides = tensor.strides;
  const bool same = (type == RowType::kF16 && tensor.dtype == DType::kF16) ||
                    (type == RowType::kBF16 && tensor.dtype == DType::kBF16);
  const bool side_by_side = (s[2] == 1 || strides[4] == 1) && (s[1] == 1 || strides[3] == s[2]) &&
                            (s[0] == 1 || strides[2] == s[1] * s[2]);
  if (!same || !side_by_side || strides[0] < 0 || shape.places() == 1 || shape.filled_channels % 8 != 0)
    return false;
  shape.outer_stride = strides[0];
  shape.channel_stride = shape.channels == 1 ? shape.places() : strides[1];
  const Tiles tiles = tiles_of(shape);
  if (tiles.count * shape.filled_outer >= int64_t{1} << 31 || shape.filled_channels >= 64 * 65535)
    return false;
  return shape.places() <= kSlabPlaces ? shape.channel_stride == shape.places()
                                       : shape.channel_stride >= shape.places();
}

void planes_to_rows(const PlaneRows& shape, const void* planes, void* rows, Stream stream) {
  const auto* from = static_cast<const uint16_t*>(planes);
  auto* to = static_cast<uint16_t*>(rows);
  if (shape.places() <= kSlabPlaces) {
    const Slab s = slab_of(shape);
    const Extent grid(shape.filled_outer, (s.filled + s.block - 1) / s.block);
    const auto kernel =
        slab_has_vectors(shape, planes) ? slab_to_rows_kernel<true> : slab_to_rows_kernel<false>;
    return start(kernel, grid, kCopyThreads, s.shared_bytes(), stream, s, from, to);
  }
  const Tiles t = tiles_of(shape);
  const int64_t extent = (t.outer - 1) * t.outer_stride + (t.channels - 1) * t.channel_stride + t.places;
  const auto kernel =
      tiles_have_vectors(shape, planes) ? tile_to_rows_kernel<true> : tile_to_rows_kernel<false>;
  start(kernel, {t.count * shape.filled_outer, (t.filled + kTileSide - 1) / kTileSide}, kCopyThreads, 0,
        stream, t, extent, from, to);
}

}  // namespace retrograd::kernels::cuda
