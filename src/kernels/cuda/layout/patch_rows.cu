// SPDX-License-Identifier: Apache-2.0
// rows[n, p, c, tap] = x[n, c, place(p, tap)], channels of x side by side
//
// A thread writes the same 16 bytes of kPlaces rows: where its columns lie in x it finds out once.
// Neighbouring lanes write neighbouring chunks of a row, then of the next row; reads that lie apart meet in
// L1, since the windows of a block's rows are neighbours. Bytes: the rows once, x about once.
#include "kernels/cuda/layout/patch_columns.h"
#include "kernels/cuda/layout/source.cuh"

namespace retrograd::kernels::cuda {
namespace {

using patches::Column;
using patches::Patches;

constexpr int kThreads = 256;
constexpr int kPlaces = 8;             // rows of a thread
constexpr int kMostLanes = 32;         // along a row
constexpr int64_t kManyChannels = 32;  // more of them lie nearer to each other than places do

template <class S, class E>
__global__ void __launch_bounds__(kThreads)
    patches_kernel(const __grid_constant__ Patches p, int lanes, E* target) {
  constexpr int kChunk = 16 / sizeof(E);
  const int chunk = static_cast<int>(blockIdx.y) * lanes + static_cast<int>(threadIdx.x) % lanes;
  const int64_t group = blockIdx.z;
  if (chunk >= p.chunks) return;
  Column columns[kChunk];
#pragma unroll
  for (int e = 0; e < kChunk; ++e) columns[e] = patches::column_of(p, group, chunk * kChunk + e);
  const uint32_t down = kThreads / lanes;
  uint32_t place = blockIdx.x * (down * kPlaces) + threadIdx.x / lanes;
  E* to = target + place * p.row + (group * p.chunks + chunk) * kChunk;
  for (int i = 0; i < kPlaces && place < p.places; ++i, place += down, to += down * p.row) {
    const patches::Place from(p, place);
    __align__(16) E values[kChunk];
#pragma unroll
    for (int e = 0; e < kChunk; ++e)
      values[e] =
          from_float<E>(from.reaches(p, columns[e]) ? read<S>(p.x, from.at + columns[e].offset) : 0.0f);
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(values);
  }
}

}  // namespace

void make_patch_rows(const Conv& conv, RowType type, void* target, Stream stream) {
  const Patches p = patches::patches_of(conv, type);
  if (p.taps > 1 && (conv.x.strides[1] != 1 || conv.x_channels <= kManyChannels))
    return make_patch_tiles(conv, type, target, stream);
  int lanes = 1;
  while (lanes < kMostLanes && lanes < p.chunks) lanes *= 2;
  const int64_t rows = kThreads / lanes * int64_t{kPlaces};
  with_types(conv.x.dtype, type, [&](auto source, auto row) {
    using E = decltype(row);
    start(patches_kernel<decltype(source), E>,
          {(p.places + rows - 1) / rows, (p.chunks + lanes - 1) / lanes, p.groups}, kThreads, 0, stream, p,
          lanes, target);
  });
}

}  // namespace retrograd::kernels::cuda
