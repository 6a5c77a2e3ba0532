// SPDX-License-Identifier: Apache-2.0
// Which kernel.
#include "kernels/cuda/pooling/pool_plan.h"

#include <algorithm>

#include "base/checked.h"
#include "kernels/cuda/pooling/pool_columns_plan.h"

namespace retrograd::kernels::cuda {
namespace {

bool is_disjoint(const Pool& pool) {
  for (const PoolAxis& a : pool.axes)
    if (a.pad != 0 || a.kernel != a.stride || a.y * a.stride > a.x + a.stride - 1) return false;
  return true;
}

bool is_sliding(const Pool& pool) {
  const auto& [d, h, w] = pool.axes;
  const auto three = [](const PoolAxis& a) { return a.kernel == 3 && a.pad == 1 && a.stride <= 2; };
  return d.kernel == 1 && d.stride == 1 && d.pad == 0 && three(h) && three(w) && h.stride == w.stride;
}

}  // namespace

PoolDivisor divisor_of(const Pool& pool) {
  if (pool.divisor_override != 0) return {true, 1.0f / static_cast<float>(pool.divisor_override)};
  double count = 1;
  for (const PoolAxis& a : pool.axes) {
    const bool unpadded = a.pad == 0 || pool.count_include_pad;
    if (!unpadded || (a.y - 1) * a.stride - a.pad + a.kernel > a.x + a.pad) return {false, 1.0f};
    count *= static_cast<double>(a.kernel);
  }
  return {true, static_cast<float>(1.0 / count)};
}

Windows windows_of(const Pool& pool) {
  Windows windows{};
  for (int i = 0; i < 3; ++i) {
    const PoolAxis& a = pool.axes[i];
    const auto pad = static_cast<int>(a.pad), x = static_cast<int>(a.x);
    windows.axes[i] = {x,
                       static_cast<int>(a.y),
                       static_cast<int>(a.kernel),
                       static_cast<int>(a.stride),
                       pad,
                       pool.count_include_pad ? -pad : 0,
                       pool.count_include_pad ? x + pad : x};
  }
  const PoolDivisor divisor = divisor_of(pool);
  windows.uniform = divisor.uniform;
  windows.scale = divisor.scale;
  return windows;
}

// Enough threads to fill a large GPU, but no fewer rows than make the lines that two bands need a small part.
VectorsCut vectors_cut(const Pool& pool) {
  constexpr int64_t kThreads = 1 << 18, kMostRows = 64;
  const auto& [d, h, w] = pool.axes;
  const int64_t reach_h = retrograd::ceil_div(h.kernel, h.stride),
                reach_w = retrograd::ceil_div(w.kernel, w.stride);
  VectorsCut cut{};
  if (reach_h > kVectorsReach || reach_w > kVectorsReach) return cut;
  cut.reach_h = static_cast<int>(reach_h);
  cut.reach_w = static_cast<int>(reach_w);
  cut.deep = d.kernel != 1 || d.stride != 1 || d.pad != 0 || d.x != d.y;
  const int64_t columns =
      pool.batch * d.x * w.x * pool.channels * static_cast<int64_t>(size_of(pool.x.dtype)) / 16;
  int64_t band = std::max(columns * h.x / kThreads, 2 * (reach_h - 1) * h.stride);
  band = std::clamp(band, int64_t{1}, kMostRows);
  if (h.stride < kMostRows) band = retrograd::ceil_div(band, h.stride) * h.stride;
  cut.band = static_cast<int>(std::min(band, h.x));
  return cut;
}

// The fewest planes of a whole number of 16-byte chunks, then as many of these as give every thread a column.
int staged_planes(const Pool& pool) {
  constexpr int kMostBytes = 40 << 10;  // of grad_output and of grad_input together
  const int64_t bytes = static_cast<int64_t>(size_of(pool.x.dtype)) * pool.axes[1].x * pool.axes[2].x;
  if (2 * bytes > kMostBytes) return 0;
  int planes = 1;
  while (planes * bytes % 16 != 0) planes *= 2;
  const int64_t all = pool.batch * pool.channels * pool.axes[0].x;
  while (planes * 2 * pool.axes[2].x <= 320 && planes * 4 * bytes <= kMostBytes && all % (planes * 2) == 0)
    planes *= 2;
  return 2 * planes * bytes <= kMostBytes && all % planes == 0 ? planes : 0;
}

const char* name_of(PoolKernel kernel) {
  switch (kernel) {
    case PoolKernel::kDisjoint:
      return "disjoint";
    case PoolKernel::kStaged:
      return "staged";
    case PoolKernel::kSliding:
      return "sliding";
    case PoolKernel::kColumns:
      return "columns";
    case PoolKernel::kVectors:
      return "vectors";
    case PoolKernel::kAny:
      break;
  }
  return "any";
}

bool has_pool_kernel(PoolKernel kernel, const Pool& pool, bool channels_last, int alignment) {
  const auto bytes = static_cast<int64_t>(size_of(pool.x.dtype));
  const bool vectors = pool.channels * bytes % 16 == 0 && alignment >= 16;
  const bool uniform = divisor_of(pool).uniform;
  switch (kernel) {
    case PoolKernel::kDisjoint:
      return uniform && is_disjoint(pool) && (!channels_last || vectors);
    case PoolKernel::kStaged:
      return !channels_last && uniform && is_sliding(pool) && pool.axes[2].stride == 1 &&
             (pool.axes[2].x % 2 != 0 || bytes == 2) && alignment >= 16 && staged_planes(pool) > 0;
    case PoolKernel::kSliding:
      return !channels_last && uniform && is_sliding(pool);
    case PoolKernel::kColumns:
      return !(channels_last && vectors) && columns_cut(pool, channels_last).planes > 0;
    case PoolKernel::kVectors:
      return channels_last && vectors && vectors_cut(pool).band > 0;
    case PoolKernel::kAny:
      break;
  }
  return true;
}

PoolKernel pool_kernel(const Pool& pool, bool channels_last, int alignment) {
  for (const PoolKernel kernel : {PoolKernel::kDisjoint, PoolKernel::kStaged, PoolKernel::kSliding,
                                  PoolKernel::kColumns, PoolKernel::kVectors})
    if (has_pool_kernel(kernel, pool, channels_last, alignment)) return kernel;
  return PoolKernel::kAny;
}

}  // namespace retrograd::kernels::cuda
