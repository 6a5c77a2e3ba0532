// SPDX-License-Identifier: Apache-2.0
// Rows, and tiles of 64 x 64 elements; 16-bit planes to and from rows of whole chunks of channels by
// plane_rows.h, rows that are no whole vectors by row_pitch.h.

#include "base/checked.h"
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/layout/plane_rows.h"
#include "kernels/cuda/layout/relayout.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256, kEach = 8, kTile = 64;

struct Rows5 {
  uint32_t total;
  FastDiv sizes[5];  // the first is not divided by
  int64_t from[5], to[5];
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    copy_rows_kernel(const __grid_constant__ Rows5 p, const T* __restrict__ source, T* __restrict__ target) {
  const uint32_t first = blockIdx.x * (kThreads * kEach) + threadIdx.x;
  T values[kEach];
  int64_t at[kEach];
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    uint32_t i = first + k * kThreads;
    if (i >= p.total) continue;
    int64_t from = 0, to = 0;
#pragma unroll
    for (int axis = 4; axis > 0; --axis) {
      uint32_t index = i;
      i = p.sizes[axis].split(index);
      from += index * p.from[axis];
      to += index * p.to[axis];
    }
    values[k] = source[from + i * p.from[0]];
    at[k] = to + i * p.to[0];
  }
#pragma unroll
  for (int k = 0; k < kEach; ++k)
    if (first + k * kThreads < p.total) target[at[k]] = values[k];
}

struct Tiles {
  FastDiv inner_tiles, across_tiles, outer[2];  // the outermost axis is not divided by
  uint32_t inner, across;
  int64_t inner_from, inner_to, across_from, across_to;
  int64_t outer_from[3], outer_to[3];
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    copy_tiles_kernel(const __grid_constant__ Tiles p, const T* __restrict__ source, T* __restrict__ target) {
  __shared__ T tile[kTile][kTile + 4 / sizeof(T)];  // [inner][across]
  uint32_t across0 = blockIdx.x;
  uint32_t inner0 = p.across_tiles.split(across0);
  uint32_t two = p.inner_tiles.split(inner0);
  uint32_t one = p.outer[1].split(two);
  const uint32_t zero = p.outer[0].split(one);
  across0 *= kTile, inner0 *= kTile;
  source += zero * p.outer_from[0] + one * p.outer_from[1] + two * p.outer_from[2];
  target += zero * p.outer_to[0] + one * p.outer_to[1] + two * p.outer_to[2];
  const uint32_t lane = threadIdx.x % kTile, row0 = threadIdx.x / kTile;
  constexpr uint32_t kRows = kThreads / kTile;
#pragma unroll
  for (uint32_t row = row0; row < kTile; row += kRows)
    if (inner0 + row < p.inner && across0 + lane < p.across)
      tile[row][lane] = source[(inner0 + row) * p.inner_from + (across0 + lane) * p.across_from];
  __syncthreads();
#pragma unroll
  for (uint32_t row = row0; row < kTile; row += kRows)
    if (across0 + row < p.across && inner0 + lane < p.inner)
      target[(inner0 + lane) * p.inner_to + (across0 + row) * p.across_to] = tile[lane][row];
}

template <class T>
void copy_rows(const RelayoutPlan& plan, const void* source, void* target, Stream stream) {
  Rows5 p{};
  int64_t total = 1;
  const int first = 5 - plan.axes;
  for (int i = 0; i < plan.axes; ++i) {
    p.sizes[first + i] = FastDiv(plan.sizes[i]);
    p.from[first + i] = plan.from[i];
    p.to[first + i] = plan.to[i];
    total *= plan.sizes[i];
  }
  p.total = static_cast<uint32_t>(total);
  start(copy_rows_kernel<T>, ceil_div(total, kThreads * kEach), kThreads, 0, stream, p, source, target);
}

template <class T>
void copy_tiles(const RelayoutPlan& plan, const void* source, void* target, Stream stream) {
  const int inner = plan.axes - 1, across = plan.across;
  Tiles p{};
  p.inner = static_cast<uint32_t>(plan.sizes[inner]);
  p.across = static_cast<uint32_t>(plan.sizes[across]);
  p.inner_from = plan.from[inner], p.inner_to = plan.to[inner];
  p.across_from = plan.from[across], p.across_to = plan.to[across];
  const int64_t inner_tiles = (plan.sizes[inner] + kTile - 1) / kTile,
                across_tiles = (plan.sizes[across] + kTile - 1) / kTile;
  p.inner_tiles = FastDiv(inner_tiles);
  p.across_tiles = FastDiv(across_tiles);
  int64_t blocks = inner_tiles * across_tiles;
  int slot = 2;
  for (int i = inner - 1; i >= 0; --i) {
    if (i == across) continue;
    if (slot > 0) p.outer[slot - 1] = FastDiv(plan.sizes[i]);
    p.outer_from[slot] = plan.from[i];
    p.outer_to[slot] = plan.to[i];
    blocks *= plan.sizes[i];
    --slot;
  }
  start(copy_tiles_kernel<T>, blocks, kThreads, 0, stream, p, source, target);
}

// Dense channels last, in chunks of 16 bytes of 16-bit elements.
bool are_rows(const int64_t (&sizes)[5], const Tensor& tensor) {
  const auto& strides = tensor.strides;
  int64_t stride = sizes[1];
  bool dense = strides[1] == 1 && sizes[1] % 8 == 0 && is_aligned(tensor.data);
  for (const int axis : {4, 3, 2, 0}) {
    dense = dense && (sizes[axis] == 1 || strides[axis] == stride);
    stride *= sizes[axis];
  }
  return dense;
}
// The planes of which the other tensor are the rows.
bool find_planes(const int64_t (&sizes)[5], const Tensor& planes, const Tensor& rows, PlaneRows& shape) {
  if (planes.dtype != DType::kF16 && planes.dtype != DType::kBF16) return false;
  if (!are_rows(sizes, rows)) return false;
  shape = {sizes[0], sizes[1], {sizes[2], sizes[3], sizes[4]}, 0, 0, sizes[0], sizes[1]};
  return has_planes(planes, planes.dtype == DType::kF16 ? RowType::kF16 : RowType::kBF16, shape);
}

}  // namespace

void relayout(const int64_t (&sizes)[5], const Tensor& source, const Tensor& target, Stream stream) {
  if (PlaneRows shape; find_planes(sizes, source, target, shape))
    return planes_to_rows(shape, source.data, target.data, stream);
  else if (find_planes(sizes, target, source, shape))
    return rows_to_planes(shape, source.data, target.data, stream);
  RelayoutPlan plan = relayout_plan(sizes, source.strides, target.strides);
  const int bytes = static_cast<int>(size_of(source.dtype));
  if (plan.across != plan.axes - 1) {
    if (bytes == 4) return copy_tiles<uint32_t>(plan, source.data, target.data, stream);
    if (bytes == 2) return copy_tiles<uint16_t>(plan, source.data, target.data, stream);
    return copy_tiles<uint8_t>(plan, source.data, target.data, stream);
  }
  const RowPitch pitch{plan.sizes[0], plan.sizes[1], plan.from[0], plan.to[0]};
  const bool packs =
      plan.axes == 2 && plan.from[1] == 1 && plan.to[1] == 1 && pitch.to == pitch.length && pitch.from >= 0;
  const int vector = bytes * widen(plan, bytes, alignment_of({source.data, target.data}));
  if (packs && vector < 16 && change_row_pitch(pitch, source.dtype, source.data, target.data, stream)) return;
  if (vector == 16) return copy_rows<uint4>(plan, source.data, target.data, stream);
  if (vector == 8) return copy_rows<uint2>(plan, source.data, target.data, stream);
  if (vector == 4) return copy_rows<uint32_t>(plan, source.data, target.data, stream);
  if (vector == 2) return copy_rows<uint16_t>(plan, source.data, target.data, stream);
  copy_rows<uint8_t>(plan, source.data, target.data, stream);
}

}  // namespace retrograd::kernels::cuda
