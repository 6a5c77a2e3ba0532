// SPDX-License-Identifier: Apache-2.0
// Tiles of 64 pixels and 64 channels go through shared memory: read along pixels, written along channels in
// 16-byte chunks. Channels that lie side by side go straight to their chunks. Bytes: the source once, the
// rows once.
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/layout/channel_rows.h"
#include "kernels/cuda/layout/plane_rows.h"
#include "kernels/cuda/layout/relayout.h"
#include "kernels/cuda/layout/source.cuh"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 64;

struct Places {
  int64_t places, channels, filled, groups;
  int64_t sn, sc, sd, sh, sw;
  FastDiv w, h, d;
};

__device__ int64_t place_offset(const Places& p, int64_t place) {
  auto w = static_cast<uint32_t>(place);
  uint32_t h = p.w.split(w);
  uint32_t d = p.h.split(h);
  const uint32_t n = p.d.split(d);
  return n * p.sn + d * p.sd + h * p.sh + w * p.sw;
}

template <class S, class E>
__global__ void __launch_bounds__(kThreads) rows_kernel(Places p, Elements source, E* target) {
  constexpr int kChunk = 16 / sizeof(E);
  // The odd number of words a row keeps columns of the tile in different banks.
  constexpr int kPitch = kTile + 4 / sizeof(E);
  __shared__ __align__(16) E tile[kTile][kPitch];
  const int64_t place0 = blockIdx.x * int64_t{kTile}, channel0 = blockIdx.y * int64_t{kTile};
  const int64_t group = blockIdx.z;
  const int minor = static_cast<int>(threadIdx.x) % kTile, major = static_cast<int>(threadIdx.x) / kTile;
  const int64_t own = place0 + minor;
  if (own < p.places) {
    const int64_t at = place_offset(p, own);
#pragma unroll 8
    for (int c = major; c < kTile; c += kThreads / kTile) {
      const int64_t channel = channel0 + c;
      tile[minor][c] = from_float<E>(
          channel < p.channels ? read<S>(source, at + (group * p.channels + channel) * p.sc) : 0.0f);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kTile * (kTile / kChunk); i += kThreads) {
    const int chunk = i % (kTile / kChunk), row = i / (kTile / kChunk);
    const int64_t place = place0 + row, channel = channel0 + chunk * kChunk;
    if (place >= p.places || channel >= p.filled) continue;
    const auto* words = reinterpret_cast<const uint32_t*>(&tile[row][chunk * kChunk]);
    const uint4 pack{words[0], words[1], words[2], words[3]};
    *reinterpret_cast<uint4*>(target + (place * p.groups + group) * p.filled + channel) = pack;
  }
}

int64_t filled_to(int64_t channels, RowType type) {
  const int64_t chunk = chunk_elements(type);
  return (channels + chunk - 1) / chunk * chunk;
}

template <class S, class E>
void launch_rows(const Rows& rows, RowType type, void* target, Stream stream) {
  Places p;
  p.places = rows.batch * rows.spatial[0] * rows.spatial[1] * rows.spatial[2];
  p.channels = rows.channels;
  p.filled = filled_to(rows.channels, type);
  p.groups = rows.groups;
  const int64_t* strides = rows.source.strides;
  p.sn = strides[0], p.sc = strides[1], p.sd = strides[2], p.sh = strides[3], p.sw = strides[4];
  p.w = FastDiv(rows.spatial[2]);
  p.h = FastDiv(rows.spatial[1]);
  p.d = FastDiv(rows.spatial[0]);
  const Elements source{rows.source.data, rows.source.dtype, rows.rounding};
  start(rows_kernel<S, E>, {(p.places + kTile - 1) / kTile, (p.filled + kTile - 1) / kTile, p.groups},
        kThreads, 0, stream, p, source, target);
}

// Channels side by side, places and groups at one distance from each other: nothing but the pitch changes.
bool change_pitch(const Rows& rows, RowType type, void* target, Stream stream) {
  const Tensor& source = rows.source;
  if (source.dtype != dtype_of(type) || rows.rounding != OperandRounding::kNone || source.strides[1] != 1)
    return false;
  const int64_t sizes[4] = {rows.batch, rows.spatial[0], rows.spatial[1], rows.spatial[2]},
                strides[4] = {source.strides[0], source.strides[2], source.strides[3], source.strides[4]};
  int64_t places = 1, pitch = -1;
  for (int i = 3; i >= 0; places *= sizes[i--]) {
    if (sizes[i] == 1) continue;
    if (pitch < 0) pitch = strides[i];
    if (strides[i] != places * pitch || pitch < 0) return false;
  }
  if (rows.groups > 1 && pitch >= 0 && pitch != rows.groups * rows.channels) return false;
  const int64_t from = rows.groups > 1 || pitch < 0 ? rows.channels : pitch;
  return change_row_pitch({places * rows.groups, rows.channels, from, filled_to(rows.channels, type)},
                          source.dtype, source.data, target, stream);
}

// Rows of channels are patches of one place.
Conv one_place(const Rows& rows) {
  Conv conv{};
  conv.batch = rows.batch;
  conv.groups = rows.groups;
  conv.x_channels = rows.channels;
  for (int a = 0; a < 3; ++a)
    conv.axes[a] = {
        .x = rows.spatial[a], .y = rows.spatial[a], .kernel = 1, .stride = 1, .dilation = 1, .pad = 0};
  conv.x = rows.source;
  conv.rounding = rows.rounding;
  return conv;
}

}  // namespace

void make_rows(const Rows& given, RowType type, void* target, Stream stream) {
  Rows rows = given;
  // Groups without anything between them are one group: tiles of 64 channels are full.
  if (rows.channels % chunk_elements(type) == 0 && rows.channels * rows.groups <= kTile * int64_t{65535}) {
    rows.channels *= rows.groups;
    rows.groups = 1;
  }
  if (change_pitch(rows, type, target, stream)) return;
  if (rows.source.strides[1] == 1 && rows.channels > 1 && rows.channels <= kLongestPatch)
    return make_patch_rows(one_place(rows), type, target, stream);
  PlaneRows planes{rows.batch,
                   rows.channels,
                   {rows.spatial[0], rows.spatial[1], rows.spatial[2]},
                   0,
                   0,
                   rows.batch,
                   filled_to(rows.channels, type)};
  if (rows.groups == 1 && rows.rounding == OperandRounding::kNone && has_planes(rows.source, type, planes))
    return planes_to_rows(planes, rows.source.data, target, stream);
  if (type == RowType::kF32 && make_rows_of_planes(rows, static_cast<float*>(target), stream)) return;
  with_types(rows.source.dtype, type, [&](auto source, auto row) {
    launch_rows<decltype(source), decltype(row)>(rows, type, target, stream);
  });
}

}  // namespace retrograd::kernels::cuda
